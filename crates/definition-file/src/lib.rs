//! The YAML form of a tool definition.
