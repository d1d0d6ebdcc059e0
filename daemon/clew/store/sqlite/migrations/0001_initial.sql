-- Times are seconds since the epoch, UTC. JSON columns say so in their comment.

-- Who and where ---------------------------------------------------------------------------------------------------

CREATE TABLE people (
  id TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'guest')),
  timezone TEXT,
  origin TEXT NOT NULL CHECK (origin IN ('config', 'local', 'paired')),
  created REAL NOT NULL
) STRICT;

CREATE TABLE identities (
  identity TEXT PRIMARY KEY,                       -- transport:sender
  person TEXT NOT NULL REFERENCES people ON DELETE CASCADE,
  origin TEXT NOT NULL CHECK (origin IN ('config', 'local', 'paired')),
  created REAL NOT NULL
) STRICT;
CREATE INDEX identities_person ON identities (person);

CREATE TABLE chats (
  id INTEGER PRIMARY KEY,
  address TEXT NOT NULL UNIQUE,
  transport TEXT NOT NULL,
  direct INTEGER NOT NULL CHECK (direct IN (0, 1)),
  person TEXT REFERENCES people ON DELETE SET NULL, -- whose direct chat it is
  session TEXT,                                     -- the session that a new message joins
  created REAL NOT NULL
) STRICT;
CREATE INDEX chats_person ON chats (person);

CREATE TABLE chat_members (
  chat INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
  person TEXT NOT NULL REFERENCES people ON DELETE CASCADE,
  joined REAL NOT NULL,
  left_at REAL,
  PRIMARY KEY (chat, person, joined)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_members_person ON chat_members (person);

CREATE TABLE access_requests (
  identity TEXT PRIMARY KEY,
  address TEXT NOT NULL,
  name TEXT NOT NULL,
  code TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('open', 'approved', 'denied')),
  messages INTEGER NOT NULL,                        -- how often the sender wrote
  created REAL NOT NULL,
  answered REAL
) STRICT;

-- What was said ---------------------------------------------------------------------------------------------------

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  chat INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
  title TEXT NOT NULL DEFAULT '',
  created REAL NOT NULL
) STRICT;
CREATE INDEX sessions_chat ON sessions (chat);

CREATE TABLE messages (
  number INTEGER PRIMARY KEY,                       -- row of the search index
  id TEXT NOT NULL UNIQUE,
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  chat INTEGER NOT NULL REFERENCES chats,           -- where it was written: its scope
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  blocks TEXT NOT NULL,                             -- JSON
  sender TEXT NOT NULL,                             -- person, empty for the model
  sender_name TEXT NOT NULL,
  turn TEXT NOT NULL,
  metadata TEXT NOT NULL,                           -- JSON: client id, job, address, model, stop reason
  at REAL NOT NULL,
  UNIQUE (session, seq)
) STRICT;
CREATE INDEX messages_turn ON messages (turn);

CREATE TRIGGER messages_append_only BEFORE UPDATE ON messages
BEGIN SELECT raise(ABORT, 'messages are append-only'); END;

CREATE TABLE pins (
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  message TEXT NOT NULL,
  by TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (session, message)
) STRICT, WITHOUT ROWID;

CREATE TABLE edits (
  id INTEGER PRIMARY KEY,
  message TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  text TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;

CREATE TABLE retractions (
  message TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  reason TEXT NOT NULL CHECK (reason IN ('undo', 'deleted')),
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attachments (
  id TEXT PRIMARY KEY,
  message TEXT REFERENCES messages (id) ON DELETE CASCADE,
  inbox INTEGER,
  name TEXT NOT NULL,
  mime TEXT NOT NULL,
  size INTEGER NOT NULL,
  ref TEXT NOT NULL,
  path TEXT,
  text TEXT
) STRICT;

-- Contentless: it holds index_text(message) and the scope of the message as an indexed term. A row is deleted with the text it was built from.
CREATE VIRTUAL TABLE messages_fts USING fts5(text, scope, content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE document_frequency (term TEXT PRIMARY KEY, messages INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- What the model sees ---------------------------------------------------------------------------------------------

CREATE TABLE compactions (
  id TEXT PRIMARY KEY,
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  parent TEXT REFERENCES compactions ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('summary', 'shorten')),
  from_seq INTEGER NOT NULL,                        -- first message demoted by this one
  to_seq INTEGER NOT NULL,                          -- last message covered; the window is what comes after it
  shortened TEXT NOT NULL DEFAULT '[]',             -- JSON: ids of results shortened in the view
  held TEXT NOT NULL DEFAULT '[]',                  -- JSON: ids of pinned messages that stand verbatim in the summary
  ledger TEXT NOT NULL,                             -- JSON: input of the next revision
  text TEXT NOT NULL,                               -- what the model sees
  trigger TEXT NOT NULL,
  prompt_version TEXT NOT NULL,
  model_call TEXT,
  report TEXT NOT NULL,                             -- JSON
  messages INTEGER NOT NULL,                        -- length of the window after it, summary counted as one
  covered INTEGER NOT NULL,                         -- rows demoted by this one
  created REAL NOT NULL,
  undone_at REAL,
  hold_until_seq INTEGER
) STRICT;
CREATE INDEX compactions_session ON compactions (session, created);

CREATE TABLE compaction_state (                     -- failures in a row, over turns and restarts
  session TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
  failures INTEGER NOT NULL,
  last_error TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE prompt_state (
  session TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
  notes TEXT NOT NULL,
  recall TEXT NOT NULL,                             -- the block, byte for byte
  excerpts TEXT NOT NULL,                           -- JSON: what the block shows
  recall_turn TEXT NOT NULL,                        -- the turn it was last decided for
  compaction TEXT,                                  -- the compaction it was last decided under
  last_call REAL NOT NULL                           -- start of the last model call
) STRICT, WITHOUT ROWID;

CREATE TABLE cache_entries (
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  hash TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  ttl REAL NOT NULL,
  expires REAL NOT NULL,
  PRIMARY KEY (provider, model, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX cache_entries_expires ON cache_entries (expires);

-- In, through, out ------------------------------------------------------------------------------------------------

CREATE TABLE cursors (transport TEXT PRIMARY KEY, value TEXT NOT NULL, at REAL NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE inbox (
  id INTEGER PRIMARY KEY,
  external_id TEXT NOT NULL UNIQUE,
  client_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('message', 'command', 'control', 'answer', 'edit', 'delete', 'notice', 'job')),
  state TEXT NOT NULL CHECK (state IN ('new', 'claimed', 'answered', 'refused', 'failed', 'context')),
  transport TEXT NOT NULL,
  address TEXT NOT NULL,
  chat INTEGER REFERENCES chats ON DELETE CASCADE,
  person TEXT,
  sender_name TEXT NOT NULL,
  text TEXT NOT NULL,
  reply_to TEXT,
  context TEXT NOT NULL,                            -- JSON, opaque to us
  job TEXT,
  instant REAL,
  turn TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  received REAL NOT NULL,
  sent_at REAL,
  expires REAL,
  UNIQUE (job, instant)
) STRICT;
CREATE INDEX inbox_waiting ON inbox (chat, id) WHERE state = 'new';
CREATE INDEX inbox_turn ON inbox (turn);

CREATE TABLE turns (
  id TEXT PRIMARY KEY,
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  chat INTEGER NOT NULL REFERENCES chats,
  kind TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'done', 'failed', 'stopped')),
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,                           -- fences: a claim with an older one has lost its lease
  lease_until REAL NOT NULL,
  first_seq INTEGER,                                -- its first user message
  stop_requested_at REAL,
  started REAL NOT NULL,
  ended REAL,
  error TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX turns_open ON turns (session) WHERE state IN ('running', 'waiting');
CREATE INDEX turns_running ON turns (lease_until) WHERE state = 'running';
CREATE INDEX turns_session ON turns (session, started);

CREATE TABLE model_calls (
  id TEXT PRIMARY KEY,
  purpose TEXT NOT NULL,
  session TEXT REFERENCES sessions ON DELETE CASCADE,
  turn TEXT,
  compaction TEXT,
  payer TEXT NOT NULL,                              -- the person
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost REAL,                                        -- money, null where no price is known
  segments TEXT NOT NULL,                           -- JSON: [kind, hash, estimated tokens] of each part of the prefix
  marks TEXT NOT NULL,                              -- JSON: where cache markers stood
  started REAL NOT NULL,
  first_byte REAL,
  ended REAL NOT NULL,
  error TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX model_calls_session ON model_calls (session, started);
CREATE INDEX model_calls_turn ON model_calls (turn);

CREATE TABLE tool_calls (
  turn TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  arguments TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('proposed', 'waiting', 'denied', 'started', 'done', 'interrupted')),
  started REAL,
  ended REAL,
  PRIMARY KEY (turn, call_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  turn TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  call_id TEXT NOT NULL,
  chat INTEGER NOT NULL REFERENCES chats,
  person TEXT NOT NULL,
  question TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'yes', 'no')),
  asked REAL NOT NULL,
  answered REAL
) STRICT;
CREATE INDEX approvals_open ON approvals (chat) WHERE state = 'open';

CREATE TABLE recalled (
  turn TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  message TEXT NOT NULL,
  score REAL NOT NULL,
  why TEXT NOT NULL,                                -- JSON: matched terms
  shown INTEGER NOT NULL CHECK (shown IN (0, 1)),
  PRIMARY KEY (turn, message)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL CHECK (state IN ('draft', 'pending', 'sending', 'sent', 'unknown', 'dead')),
  transport TEXT NOT NULL,
  address TEXT NOT NULL,
  session TEXT NOT NULL,
  turn TEXT NOT NULL,
  text TEXT NOT NULL,
  parts TEXT NOT NULL,                              -- JSON: planned before the first send
  sent_parts INTEGER NOT NULL DEFAULT 0,
  repeated INTEGER NOT NULL DEFAULT 0 CHECK (repeated IN (0, 1)), -- sent again after an unknown outcome
  in_reply_to TEXT NOT NULL,
  answers TEXT NOT NULL,                            -- JSON
  context TEXT NOT NULL,                            -- JSON, as it came in
  preview_ref TEXT,
  ref TEXT NOT NULL DEFAULT '',
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at REAL NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  created REAL NOT NULL,
  settled REAL
) STRICT;
CREATE INDEX outbox_open ON outbox (transport, address, number) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_pending ON outbox (transport, next_at) WHERE state = 'pending';
CREATE INDEX outbox_troubled ON outbox (state) WHERE state IN ('unknown', 'dead');
CREATE INDEX outbox_turn ON outbox (turn);
CREATE INDEX outbox_address ON outbox (address, number);

CREATE TABLE timeline (                             -- what was said at an address, both ways, in the order of commits
  seq INTEGER PRIMARY KEY AUTOINCREMENT,            -- never used twice: clients ask for what is behind the last one they saw
  address TEXT NOT NULL,
  inbox INTEGER REFERENCES inbox ON DELETE CASCADE,
  outbox INTEGER REFERENCES outbox ON DELETE CASCADE
) STRICT;
CREATE INDEX timeline_address ON timeline (address, seq);

-- Clock -----------------------------------------------------------------------------------------------------------

CREATE TABLE jobs (
  name TEXT PRIMARY KEY,
  origin TEXT NOT NULL CHECK (origin IN ('config', 'cli', 'chat')),
  person TEXT,
  spec TEXT NOT NULL,                               -- JSON: the schedule entry
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  next_at REAL,                                     -- null: never again
  created REAL NOT NULL
) STRICT;

CREATE TABLE job_runs (
  job TEXT NOT NULL,
  instant REAL NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('fired', 'missed', 'done', 'failed')),
  turn TEXT,
  note TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,
  PRIMARY KEY (job, instant)
) STRICT, WITHOUT ROWID;

-- Notes and documents ---------------------------------------------------------------------------------------------

CREATE TABLE entities (
  id INTEGER PRIMARY KEY,
  scope TEXT NOT NULL,                              -- user:ID | project:NAME | cross:ID
  name TEXT NOT NULL,
  normalised TEXT NOT NULL,
  type TEXT NOT NULL,
  created REAL NOT NULL,
  UNIQUE (scope, normalised)
) STRICT;

CREATE TABLE observations (
  id INTEGER PRIMARY KEY,
  entity INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE,
  text TEXT NOT NULL,
  valid_from REAL NOT NULL,
  valid_to REAL,
  expires REAL,
  source TEXT,                                      -- message id
  speaker TEXT NOT NULL
) STRICT;
CREATE INDEX observations_entity ON observations (entity);

CREATE TABLE relations (
  source INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE,
  target INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE,
  type TEXT NOT NULL,
  created REAL NOT NULL,
  PRIMARY KEY (source, target, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE preferences (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE note_changes (
  id INTEGER PRIMARY KEY,
  scope TEXT NOT NULL,
  change TEXT NOT NULL,                             -- JSON
  by TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;

CREATE TABLE documents (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  hash TEXT NOT NULL,
  added REAL NOT NULL
) STRICT;

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,
  document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
  place TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;

-- Limits ----------------------------------------------------------------------------------------------------------

CREATE TABLE budgets (
  subject TEXT NOT NULL,
  period TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  money REAL NOT NULL,
  PRIMARY KEY (subject, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  until REAL NOT NULL
) STRICT, WITHOUT ROWID;
