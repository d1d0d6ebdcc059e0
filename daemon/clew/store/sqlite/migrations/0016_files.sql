-- Files that came with messages: their bytes lie in a folder beside this file, by their SHA-256. Nothing of them was fetched before.

ALTER TABLE attachments RENAME TO attachments_before;
CREATE TABLE attachments (
  number INTEGER PRIMARY KEY,                       -- their order in their message
  id TEXT NOT NULL UNIQUE,
  message TEXT REFERENCES messages (id) ON DELETE CASCADE,
  inbox INTEGER,                                    -- null: imported, or uploaded and not sent yet
  address TEXT NOT NULL,                            -- where it was sent, and may be seen
  state TEXT NOT NULL CHECK (state IN ('waiting', 'fetched', 'ready', 'failed', 'left', 'uploaded')),
  name TEXT NOT NULL,
  mime TEXT NOT NULL,                               -- as it was declared
  size INTEGER NOT NULL,                            -- bytes: as declared, then as they are
  ref TEXT NOT NULL DEFAULT '',                     -- by which its platform gives it, empty once it has
  voice INTEGER NOT NULL DEFAULT 0 CHECK (voice IN (0, 1)), -- what is said in it are its sender's words
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at REAL NOT NULL,
  hash TEXT NOT NULL DEFAULT '',                    -- of its bytes, once they are stored
  file TEXT NOT NULL DEFAULT '',                    -- JSON: the block that stands for it in its message
  words TEXT NOT NULL DEFAULT '',                   -- what was said in it
  at REAL NOT NULL
) STRICT;
INSERT INTO attachments (id, message, inbox, address, state, name, mime, size, ref, next_at, at)
  SELECT b.id, b.message, b.inbox, i.address, CASE WHEN i.state = 'new' AND i.kind = 'message' THEN 'waiting' ELSE 'left' END, b.name, b.mime,
    b.size, CASE WHEN i.state = 'new' AND i.kind = 'message' THEN b.ref ELSE '' END, 0, i.received
  FROM attachments_before AS b JOIN inbox AS i ON i.id = b.inbox ORDER BY b.rowid;
DROP TABLE attachments_before;
CREATE INDEX attachments_open ON attachments (inbox) WHERE state IN ('waiting', 'fetched');
CREATE INDEX attachments_inbox ON attachments (inbox) WHERE inbox IS NOT NULL;
CREATE INDEX attachments_message ON attachments (message) WHERE message IS NOT NULL;
CREATE INDEX attachments_hash ON attachments (hash) WHERE hash != '';

CREATE TRIGGER attachments_move BEFORE UPDATE OF state ON attachments
WHEN OLD.state <> NEW.state AND OLD.state || ' → ' || NEW.state NOT IN (
  'waiting → fetched', 'waiting → failed', 'fetched → ready', 'fetched → failed'
)
BEGIN SELECT raise(ABORT, 'a file does not move so'); END;

CREATE TABLE refused_files (                        -- files that a model did not take: it is given words in their place
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (session, provider, model, hash)
) STRICT, WITHOUT ROWID;
