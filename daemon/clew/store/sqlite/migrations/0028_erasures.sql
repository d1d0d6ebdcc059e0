-- What was erased for good: it is erased again where an older copy of this file is put in its place, see `erased`.

CREATE TABLE erasures (
  id TEXT PRIMARY KEY,
  what TEXT NOT NULL CHECK (what IN ('person', 'session', 'messages')),
  keys TEXT NOT NULL,                               -- JSON: of whom or of what; of a person digests alone, once it is done
  counts TEXT NOT NULL DEFAULT '{}',                -- JSON: what went, by kind
  begun REAL NOT NULL,
  done REAL,                                        -- null while it goes on
  noted INTEGER NOT NULL DEFAULT 0 CHECK (noted IN (0, 1)) -- it stands in the file beside the database, which no backup brings back
) STRICT;
CREATE INDEX erasures_open ON erasures (id) WHERE done IS NULL OR NOT noted;
