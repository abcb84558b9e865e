//! End-to-end tests over real processes live in `tests/tests/`; golden files in `tests/golden/`.
