//! Signed statements: DSSE envelopes, purpose-bound keys, the trust bundle. Knows no transport and no store.
