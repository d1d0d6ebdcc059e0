-- Which process sends a delivery: several may work on one database, and one that was thought gone must not have the last word.
ALTER TABLE outbox ADD COLUMN owner TEXT NOT NULL DEFAULT '';
