-- Which journal was asked about an action: what another one may have begun is never begun again.
ALTER TABLE action ADD COLUMN journal TEXT NOT NULL DEFAULT '';
