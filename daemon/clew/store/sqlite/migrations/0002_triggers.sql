-- What decides when a window is compacted.

CREATE TABLE token_ratios (                         -- tokens that a model reported for one that was estimated
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  ratio REAL NOT NULL,
  PRIMARY KEY (provider, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE boundaries (                           -- where a thread is best cut: taken by the background when due
  session TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
  reason TEXT NOT NULL CHECK (reason IN ('quiet', 'task', 'topic')),
  seq INTEGER NOT NULL,                             -- last message in front of the boundary
  due REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX boundaries_due ON boundaries (due);

CREATE INDEX model_calls_summaries ON model_calls (started) WHERE purpose = 'summary';

-- The newest standing compaction and the newest undone one are looked up for every turn, in the order of their commits.
CREATE INDEX compactions_standing ON compactions (session) WHERE undone_at IS NULL;
CREATE INDEX compactions_undone ON compactions (session, hold_until_seq) WHERE undone_at IS NOT NULL;
