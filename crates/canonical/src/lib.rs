//! Canonical bytes, digests, words and the one display renderer (docs/spec/canonical-v1.md). Pure; knows no service, no clock and no I/O.
