-- The journal is the one fence against a second dispatch: one row per action, its attempt counted here.
CREATE TABLE journal_id (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT NOT NULL
);

CREATE TABLE journal (
    tenant        TEXT    NOT NULL,
    plan_digest   BLOB    NOT NULL,
    position      INTEGER NOT NULL,
    run           TEXT    NOT NULL,
    tool          TEXT    NOT NULL,
    attempt       INTEGER NOT NULL CHECK (attempt BETWEEN 1 AND 5),
    state         TEXT    NOT NULL,
    action_digest BLOB    NOT NULL,
    wire_digest   BLOB    NOT NULL,
    warrant       TEXT    NOT NULL,
    held          INTEGER NOT NULL,
    reads         INTEGER NOT NULL,
    process       TEXT    NOT NULL,
    start_by      INTEGER NOT NULL,
    settle_at     INTEGER NOT NULL,
    leases        TEXT    NOT NULL,
    outcome       BLOB,
    result        BLOB,
    PRIMARY KEY (tenant, plan_digest, position)
);
CREATE INDEX journal_open ON journal (state) WHERE state IN ('PREPARED', 'DISPATCHED');

CREATE TABLE cancellation (
    tenant TEXT NOT NULL,
    kind   TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, value)
);
