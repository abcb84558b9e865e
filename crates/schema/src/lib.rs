//! JSON Schema over frozen values: input checks with defaults, output checks. No remote references.
