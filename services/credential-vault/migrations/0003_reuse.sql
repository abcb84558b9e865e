-- What a later action needs to know of a lease whose secret the connector keeps open.
ALTER TABLE lease ADD COLUMN run TEXT NOT NULL DEFAULT '';
ALTER TABLE lease ADD COLUMN reuse INTEGER NOT NULL DEFAULT 1;
ALTER TABLE lease ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN reuse_of TEXT NOT NULL DEFAULT '';
