//! The example of the reference page.
