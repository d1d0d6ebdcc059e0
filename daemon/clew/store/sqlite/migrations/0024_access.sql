-- Who is let in: the names that people are given, identities that were linked by a code, guesses at codes; browsers that are logged in.
ALTER TABLE people ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE access_requests ADD COLUMN told REAL;     -- when the owner was told of it
ALTER TABLE chats ADD COLUMN since REAL NOT NULL DEFAULT 0; -- of a direct chat that was another person's: from when on it is this one's

CREATE TABLE identities_new (
  identity TEXT PRIMARY KEY,                          -- transport:sender
  person TEXT NOT NULL REFERENCES people ON DELETE CASCADE,
  origin TEXT NOT NULL CHECK (origin IN ('config', 'local', 'paired', 'linked')),
  created REAL NOT NULL,
  seen REAL                                           -- when it wrote last, to the hour
) STRICT;
INSERT INTO identities_new (identity, person, origin, created) SELECT identity, person, origin, created FROM identities;
DROP TABLE identities;
ALTER TABLE identities_new RENAME TO identities;
CREATE INDEX identities_person ON identities (person);

CREATE TABLE link_codes (                             -- whoever sends the code from an unknown identity is the person too
  hash TEXT PRIMARY KEY,
  person TEXT NOT NULL UNIQUE REFERENCES people ON DELETE CASCADE,
  address TEXT NOT NULL,                              -- where it was asked for, and where its use is told
  instant INTEGER NOT NULL CHECK (instant IN (0, 1)), -- what is said there counts as sent when it is committed
  expires REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE guesses (                                -- what might have been a code and was none
  who TEXT PRIMARY KEY,                               -- an identity, empty for all of them
  tries INTEGER NOT NULL,
  since REAL NOT NULL
) STRICT, WITHOUT ROWID;
