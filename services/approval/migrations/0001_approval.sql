-- Frozen plans that wait for people. Digests are kept for look-up only: they are
-- recomputed from the bytes, and the bytes are held against the zone's own signed entries.
CREATE TABLE approval (
  approval        TEXT    NOT NULL PRIMARY KEY,
  tenant          TEXT    NOT NULL,
  plan_digest     BLOB    NOT NULL,
  agent           TEXT    NOT NULL,
  header          BLOB    NOT NULL,
  rule_set_digest BLOB    NOT NULL,
  request_digest  BLOB    NOT NULL,
  opened_at       INTEGER NOT NULL,
  expires_at      INTEGER,
  window_s        INTEGER NOT NULL,
  quorum          INTEGER NOT NULL,
  state           INTEGER NOT NULL,
  decision        BLOB,
  window_ends_at  INTEGER,
  UNIQUE (tenant, plan_digest)
) STRICT;
CREATE INDEX approval_by_tenant ON approval (tenant, approval);
CREATE INDEX approval_due ON approval (expires_at) WHERE state = 1 AND expires_at IS NOT NULL;

CREATE TABLE action (
  approval      TEXT    NOT NULL REFERENCES approval (approval),
  position      INTEGER NOT NULL,
  action        BLOB    NOT NULL,
  definition    BLOB    NOT NULL,
  wire_digest   BLOB    NOT NULL,
  tool          TEXT    NOT NULL,
  held          INTEGER NOT NULL,
  rule          TEXT    NOT NULL,
  PRIMARY KEY (approval, position)
) STRICT;

CREATE TABLE item (
  approval     TEXT    NOT NULL REFERENCES approval (approval),
  position     INTEGER NOT NULL,
  tenant       TEXT    NOT NULL,
  agent        TEXT    NOT NULL,
  tool         TEXT    NOT NULL,
  state        TEXT    NOT NULL,
  reason       TEXT    NOT NULL,
  attempt      INTEGER NOT NULL, -- that it is or was reserved for; 0: none
  closed       INTEGER NOT NULL, -- highest attempt that is closed
  reservation  BLOB,
  withdrawal   TEXT    NOT NULL, -- asked for while it was reserved
  approved_at  INTEGER,
  ends_at      INTEGER,          -- end of the window while it is APPROVED
  opened_entry INTEGER NOT NULL, -- own log entry that opened it
  last_entry   INTEGER NOT NULL, -- own log entry of its state
  PRIMARY KEY (approval, position)
) STRICT;
CREATE INDEX item_last_approved ON item (tenant, agent, tool, approved_at) WHERE approved_at IS NOT NULL;
CREATE INDEX item_due ON item (ends_at) WHERE state = 'APPROVED';

CREATE TABLE event (
  sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  body     BLOB    NOT NULL
) STRICT;

CREATE TABLE reviewer (
  tenant      TEXT    NOT NULL,
  person      TEXT    NOT NULL,
  enrolled_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, person)
) STRICT;
CREATE INDEX reviewer_by_person ON reviewer (person);
