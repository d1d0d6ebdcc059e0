-- Which process sends a delivery: several may work on one database, and one that was thought gone must not have the last word.
ALTER TABLE outbox ADD COLUMN owner TEXT COLLATE "C" NOT NULL DEFAULT '';
-- Leases end by the server's clock, whatever those of its clients say. That of a transaction would stand still in it.
CREATE FUNCTION wall_clock() RETURNS double precision LANGUAGE sql VOLATILE AS
  $$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;
