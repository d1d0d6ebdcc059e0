-- Jobs from the API; pauses of those that fail; runs with the session and the delivery that they came to; lanes of their own.

ALTER TABLE jobs RENAME TO jobs_before;
CREATE TABLE jobs (
  name TEXT PRIMARY KEY,
  origin TEXT NOT NULL CHECK (origin IN ('config', 'cli', 'chat', 'api')),
  person TEXT,                                      -- whose job it is; null: whose chat it speaks in
  spec TEXT NOT NULL,                               -- JSON: the schedule entry
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  next_at REAL,                                     -- null: never again
  failures INTEGER NOT NULL DEFAULT 0,              -- in a row
  rests_until REAL,                                 -- instants before it are let pass
  created REAL NOT NULL
) STRICT;
INSERT INTO jobs (name, origin, person, spec, enabled, next_at, created)
  SELECT name, origin, person, spec, enabled, next_at, created FROM jobs_before;
DROP TABLE jobs_before;

ALTER TABLE job_runs RENAME TO job_runs_before;
CREATE TABLE job_runs (
  job TEXT NOT NULL,
  instant REAL NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('fired', 'missed', 'skipped', 'done', 'silent', 'failed', 'stopped')),
  turn TEXT,
  session TEXT,
  delivery TEXT,                                    -- outbox id of what it said
  note TEXT NOT NULL DEFAULT '',
  at REAL NOT NULL,                                 -- when it was fired or noted
  ended REAL,
  PRIMARY KEY (job, instant)
) STRICT, WITHOUT ROWID;
INSERT INTO job_runs (job, instant, outcome, turn, note, at) SELECT job, instant, outcome, turn, note, at FROM job_runs_before;
DROP TABLE job_runs_before;

-- A run's session. `run`: it is shown by its job's history, and its words reach others through the chat alone.
-- parent: it goes on from this session's view up to row `fork_seq`, and its own rows are numbered from there.
ALTER TABLE sessions ADD COLUMN run INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN parent TEXT REFERENCES sessions ON DELETE SET NULL;
ALTER TABLE sessions ADD COLUMN fork_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;

CREATE TABLE job_sessions (                         -- sessions that jobs name, one for each chat they speak in
  chat INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
  name TEXT NOT NULL,
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  PRIMARY KEY (chat, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_sessions_session ON job_sessions (session);

ALTER TABLE inbox ADD COLUMN runs_in TEXT;          -- of a job: chat, isolated, or the name of a session
DROP INDEX IF EXISTS inbox_waiting;
CREATE INDEX inbox_waiting ON inbox (chat, id) WHERE state = 'new' AND kind <> 'job';
CREATE INDEX inbox_jobs ON inbox (id) WHERE state = 'new' AND kind = 'job';

CREATE TRIGGER job_runs_move BEFORE UPDATE OF outcome ON job_runs
WHEN OLD.outcome <> NEW.outcome AND OLD.outcome || ' → ' || NEW.outcome NOT IN (
  'fired → done', 'fired → silent', 'fired → skipped', 'fired → failed', 'fired → stopped', 'missed → fired'
)
BEGIN SELECT raise(ABORT, 'a run does not move so'); END;
