-- How what is stored may move from state to state, and no other way. docs/operation.md has the same table for people.

CREATE TRIGGER inbox_moves BEFORE UPDATE OF state ON inbox
WHEN OLD.state <> NEW.state AND OLD.state || ' → ' || NEW.state NOT IN (
  'new → claimed', 'new → refused', 'claimed → answered', 'claimed → failed'
)
BEGIN SELECT raise(ABORT, 'an arrival does not move so'); END;

CREATE TRIGGER turns_move BEFORE UPDATE OF state ON turns
WHEN OLD.state <> NEW.state AND OLD.state || ' → ' || NEW.state NOT IN (
  'running → waiting', 'waiting → running', 'running → done', 'running → failed', 'running → stopped'
)
BEGIN SELECT raise(ABORT, 'a turn does not move so'); END;

-- Models that give every call of a turn the same id begin it anew.
CREATE TRIGGER tool_calls_move BEFORE UPDATE OF state ON tool_calls
WHEN OLD.state <> NEW.state AND OLD.state || ' → ' || NEW.state NOT IN (
  'started → done', 'started → denied', 'started → interrupted', 'done → started', 'denied → started', 'interrupted → started'
)
BEGIN SELECT raise(ABORT, 'a tool call does not move so'); END;

CREATE TRIGGER outbox_moves BEFORE UPDATE OF state ON outbox
WHEN OLD.state <> NEW.state AND OLD.state || ' → ' || NEW.state NOT IN (
  'draft → pending', 'pending → sending', 'sending → pending', 'sending → sent', 'sending → unknown', 'sending → dead',
  'unknown → pending', 'dead → pending'
)
BEGIN SELECT raise(ABORT, 'a reply does not move so'); END;

CREATE TRIGGER job_runs_move BEFORE UPDATE OF outcome ON job_runs
WHEN OLD.outcome <> NEW.outcome AND OLD.outcome || ' → ' || NEW.outcome NOT IN ('fired → done', 'fired → failed', 'missed → fired')
BEGIN SELECT raise(ABORT, 'a run does not move so'); END;
