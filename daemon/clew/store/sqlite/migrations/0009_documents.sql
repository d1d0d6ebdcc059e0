-- Documents. None could be added before, so their tables are made anew: with scopes, an index, and what a prompt shows of them.

DROP TABLE chunks;
DROP TABLE documents;

CREATE TABLE document_scopes (
  id INTEGER PRIMARY KEY,
  scope TEXT NOT NULL UNIQUE                        -- user:PERSON | project:NAME | project:ADDRESS
) STRICT;

CREATE TABLE documents (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  scope INTEGER NOT NULL REFERENCES document_scopes,
  source TEXT NOT NULL,                             -- an absolute path or a URL
  name TEXT NOT NULL,                               -- what it is cited by
  title TEXT NOT NULL,
  kind TEXT NOT NULL,
  origin TEXT NOT NULL CHECK (origin IN ('hand', 'config')),
  hash TEXT NOT NULL,                               -- of its bytes
  size INTEGER NOT NULL,                            -- bytes
  stamp TEXT NOT NULL,                              -- of a watched file: its size and time of change
  chunks INTEGER NOT NULL,
  added REAL NOT NULL,
  updated REAL NOT NULL,
  ready INTEGER NOT NULL CHECK (ready IN (0, 1))    -- 0: on its way in or out, seen by nobody
) STRICT;
CREATE UNIQUE INDEX documents_once ON documents (scope, source) WHERE ready = 1;
CREATE INDEX documents_unready ON documents (number) WHERE ready = 0;

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,             -- never used twice: a prompt knows what it shows by it
  document INTEGER NOT NULL REFERENCES documents (number),
  place TEXT NOT NULL,
  text TEXT NOT NULL                                -- redacted
) STRICT;
CREATE INDEX chunks_document ON chunks (document);

-- Chunks under their ids: index_text of what they are cited by, of their words, and the scope as an indexed term, as in notes_fts.
CREATE VIRTUAL TABLE chunks_fts USING fts5(name, text, scope, tokenize='porter unicode61 remove_diacritics 2');

ALTER TABLE prompt_state ADD COLUMN documents TEXT NOT NULL DEFAULT '';      -- the block of passages, as it stands behind recall
ALTER TABLE prompt_state ADD COLUMN passages TEXT NOT NULL DEFAULT '[]';     -- JSON: what the block is made of
