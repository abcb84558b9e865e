-- Runs, registers, plans. What is signed stands in the log; these rows are checked against it.
CREATE TABLE run (
    run        TEXT PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    starter    TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    token_ttl  INTEGER NOT NULL,
    parent     TEXT    NOT NULL
);
CREATE INDEX run_of_tenant ON run (tenant, run);
CREATE INDEX run_children ON run (parent) WHERE parent <> '';

CREATE TABLE tool (
    tenant     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    digest     BLOB NOT NULL,
    definition BLOB NOT NULL,
    PRIMARY KEY (tenant, tool)
);

CREATE TABLE rule_set (
    tenant TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    bytes  BLOB NOT NULL
);

CREATE TABLE idempotency (
    tenant TEXT NOT NULL,
    caller TEXT NOT NULL,
    method TEXT NOT NULL,
    key    TEXT NOT NULL,
    body   BLOB NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (tenant, caller, method, key)
);

CREATE TABLE plan (
    plan     TEXT PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    run      TEXT    NOT NULL,
    digest   BLOB    NOT NULL UNIQUE,
    header   BLOB    NOT NULL,
    effects  BLOB    NOT NULL,
    entry    INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    open     INTEGER NOT NULL,
    approval TEXT    NOT NULL,
    decision BLOB
);
CREATE INDEX plan_open ON plan (run) WHERE open = 1;

CREATE TABLE action (
    plan           TEXT    NOT NULL,
    position       INTEGER NOT NULL,
    tool           TEXT    NOT NULL,
    action         BLOB    NOT NULL,
    definition     BLOB    NOT NULL,
    digest         BLOB    NOT NULL,
    effect_digest  BLOB    NOT NULL,
    wire_digest    BLOB    NOT NULL,
    verdict        TEXT    NOT NULL,
    state          TEXT    NOT NULL,
    rule           TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    message        TEXT    NOT NULL,
    instead        TEXT    NOT NULL,
    filled         TEXT    NOT NULL,
    attempt        INTEGER NOT NULL,
    asked          INTEGER NOT NULL,
    retry_at       INTEGER NOT NULL,
    ready_at       INTEGER NOT NULL,
    on_hold        INTEGER NOT NULL,
    previous_abort BLOB    NOT NULL,
    receipt        BLOB    NOT NULL,
    result         BLOB    NOT NULL,
    PRIMARY KEY (plan, position)
);

CREATE TABLE cursor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at  INTEGER NOT NULL
);
