-- The outcome names the warrant that the attempt ran under by digest too.
ALTER TABLE journal ADD COLUMN warrant_digest BLOB NOT NULL DEFAULT x'';
