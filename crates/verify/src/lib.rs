//! The offline verifier of ledger exports. Shares only messages and signature checks with the writers.
