-- Notes. Nothing could be noted before, so their tables are made anew: with validity, sources, an index and a history that can be undone.

DROP TABLE relations;
DROP TABLE observations;
DROP TABLE entities;
DROP TABLE preferences;
DROP TABLE note_changes;

CREATE TABLE projects (                             -- from the config: chats that share notes
  address TEXT PRIMARY KEY,
  name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE note_scopes (
  id INTEGER PRIMARY KEY,
  scope TEXT NOT NULL UNIQUE,                       -- user:PERSON | project:NAME | project:ADDRESS | cross:PERSON
  version INTEGER NOT NULL DEFAULT 0,               -- grows with every change
  breaks INTEGER NOT NULL DEFAULT 0                 -- grows where something noted before holds no longer, or a person changed it by hand
) STRICT;

CREATE TABLE entities (
  id INTEGER PRIMARY KEY AUTOINCREMENT,             -- an undone deletion brings rows back under their numbers
  scope INTEGER NOT NULL REFERENCES note_scopes ON DELETE CASCADE,
  name TEXT NOT NULL,
  key TEXT NOT NULL,                                -- the name as it is compared
  type TEXT NOT NULL,
  created REAL NOT NULL,
  UNIQUE (scope, key)
) STRICT;

CREATE TABLE observations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  entity INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE,
  text TEXT NOT NULL,
  key TEXT NOT NULL,                                -- the text as it is compared
  slot TEXT NOT NULL,                               -- what it says something of that has one value at a time, empty for nothing
  valid_from REAL NOT NULL,
  valid_to REAL,
  expires REAL,
  source TEXT,                                      -- message id
  speaker TEXT NOT NULL
) STRICT;
CREATE INDEX observations_entity ON observations (entity);
CREATE UNIQUE INDEX observations_once ON observations (entity, key) WHERE valid_to IS NULL;

CREATE TABLE relations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  entity INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE,
  target INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE,
  type TEXT NOT NULL,
  key TEXT NOT NULL,
  slot TEXT NOT NULL,
  valid_from REAL NOT NULL,
  valid_to REAL,
  source TEXT,
  speaker TEXT NOT NULL
) STRICT;
CREATE INDEX relations_entity ON relations (entity);
CREATE INDEX relations_target ON relations (target);
CREATE UNIQUE INDEX relations_once ON relations (entity, target, key) WHERE valid_to IS NULL;

CREATE TABLE preferences (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope INTEGER NOT NULL REFERENCES note_scopes ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  at REAL NOT NULL,
  UNIQUE (scope, key)
) STRICT;

CREATE TABLE note_changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  scope INTEGER NOT NULL REFERENCES note_scopes ON DELETE CASCADE,
  summary TEXT NOT NULL,
  rows TEXT NOT NULL,                               -- JSON: [table, row before, row after] of each row it changed, in order
  by TEXT NOT NULL,
  at REAL NOT NULL,
  undone_by INTEGER
) STRICT;
CREATE INDEX note_changes_scope ON note_changes (scope, id);

-- Entities, observations and relations under 4 × id + 0, 1 and 2. The scope is an indexed term, as in messages_fts.
CREATE VIRTUAL TABLE notes_fts USING fts5(name, text, scope, tokenize='porter unicode61 remove_diacritics 2');

ALTER TABLE prompt_state ADD COLUMN notes_key TEXT NOT NULL DEFAULT '';      -- what the block was made of: scopes, their breaks, its bounds
ALTER TABLE prompt_state ADD COLUMN notes_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE prompt_state ADD COLUMN notes_until REAL;                        -- when the first note in it expires
