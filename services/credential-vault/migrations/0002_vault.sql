-- A version is either ciphertext kept here or a place in Vault.
ALTER TABLE sealed_value ADD COLUMN backend TEXT NOT NULL DEFAULT 'sealed';
-- Of a lease that Vault knows about, until it is revoked there.
ALTER TABLE lease ADD COLUMN vault_lease TEXT NOT NULL DEFAULT '';
CREATE INDEX lease_open ON lease (expires_at) WHERE returned = 0;
