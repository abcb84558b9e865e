//! End-to-end tests over real processes.
