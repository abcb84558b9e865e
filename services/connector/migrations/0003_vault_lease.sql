-- Leases of dynamic secrets at Vault, one for each lease of the attempt; empty: none.
ALTER TABLE journal ADD COLUMN vault_leases TEXT NOT NULL DEFAULT '';
