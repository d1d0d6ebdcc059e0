-- What was spent, by whom, where and when: a row for each day and month, which grows call by call. It outlives the calls themselves.
ALTER TABLE model_calls ADD COLUMN expected INTEGER;  -- tokens that the provider held of the prompt by clew's own record; null without markers
ALTER TABLE model_calls ADD COLUMN ttl REAL;          -- seconds for which what was marked is held; null without markers

CREATE TABLE spending (
  kind TEXT NOT NULL CHECK (kind IN ('all', 'person', 'chat', 'model', 'purpose')),
  subject TEXT NOT NULL,                              -- person, address, provider and model, or purpose; empty for all
  period TEXT NOT NULL,                               -- 2026-11-30 or 2026-11, in the subject's zone
  calls INTEGER NOT NULL DEFAULT 0,
  input INTEGER NOT NULL DEFAULT 0,
  output INTEGER NOT NULL DEFAULT 0,
  cache_read INTEGER NOT NULL DEFAULT 0,
  cache_write INTEGER NOT NULL DEFAULT 0,
  micros INTEGER NOT NULL DEFAULT 0,                  -- millionths of a dollar
  unpriced INTEGER NOT NULL DEFAULT 0,                -- tokens of models without a price
  replies INTEGER NOT NULL DEFAULT 0,
  reply_ms INTEGER NOT NULL DEFAULT 0,                -- what calls for replies took together
  PRIMARY KEY (kind, subject, period)
) STRICT, WITHOUT ROWID;

CREATE TABLE spending_mark (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  upto INTEGER NOT NULL                               -- rowid of the newest call that is in the sums
) STRICT;
INSERT INTO spending_mark (one, upto) VALUES (1, 0);

-- What calls that are being made may come to. A row goes with the call's own, or when it expires.
CREATE TABLE reservations (
  id TEXT PRIMARY KEY,                                -- of the call
  person TEXT NOT NULL,
  chat TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  micros INTEGER NOT NULL,
  expires REAL NOT NULL
) STRICT, WITHOUT ROWID;
