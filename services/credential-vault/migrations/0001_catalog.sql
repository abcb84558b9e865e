-- Catalog and leases. Values are ciphertext that this zone cannot open.
CREATE TABLE credential (
    tenant     TEXT    NOT NULL,
    credential TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, credential)
);

CREATE TABLE sealed_value (
    tenant     TEXT    NOT NULL,
    credential TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    value      BLOB    NOT NULL,
    PRIMARY KEY (tenant, credential, version)
);

CREATE TABLE pin (
    tenant      TEXT    NOT NULL,
    credential  TEXT    NOT NULL,
    tool        TEXT    NOT NULL,
    tool_digest BLOB    NOT NULL,
    destination TEXT    NOT NULL,
    attestation INTEGER NOT NULL,
    PRIMARY KEY (tenant, credential, tool)
);

CREATE TABLE lease (
    lease       TEXT    PRIMARY KEY,
    tenant      TEXT    NOT NULL,
    credential  TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    plan_digest BLOB    NOT NULL,
    position    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    returned    INTEGER NOT NULL,
    -- A warrant serves once: one lease per attempt and credential, for ever.
    UNIQUE (tenant, plan_digest, position, attempt, credential)
);
