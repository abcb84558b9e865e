-- An operator lets the connector move one sealed value to another of its keys, for a short time.
CREATE TABLE reseal (
    tenant     TEXT    NOT NULL,
    credential TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    kid        TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, credential)
);
