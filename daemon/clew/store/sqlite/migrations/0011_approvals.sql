-- A question to a person is about calls, which have their rows in common with others of the same question; it ends at a time. What is
-- answered for good stands for a tool, a chat, and the person on whose behalf it was called there.

ALTER TABLE approvals ADD COLUMN asking TEXT NOT NULL DEFAULT '';            -- the question
ALTER TABLE approvals ADD COLUMN tool TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN arguments TEXT NOT NULL DEFAULT '{}';       -- JSON, as the call has them
ALTER TABLE approvals ADD COLUMN expires REAL NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN behalf TEXT NOT NULL DEFAULT '';            -- the person whose message the call arose from
ALTER TABLE approvals ADD COLUMN outbox TEXT NOT NULL DEFAULT '';            -- the question as it was sent
ALTER TABLE approvals ADD COLUMN how TEXT NOT NULL DEFAULT '';               -- said, passed, expired, stopped
CREATE INDEX approvals_asked ON approvals (chat, person);
CREATE INDEX approvals_asking ON approvals (asking);
CREATE INDEX approvals_turn ON approvals (turn);
CREATE INDEX approvals_outbox ON approvals (outbox);
CREATE INDEX approvals_due ON approvals (expires) WHERE state = 'open';

CREATE TABLE standing_approvals (
  chat INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
  person TEXT NOT NULL,                             -- on whose behalf, empty for a scheduled prompt of nobody
  tool TEXT NOT NULL,
  by TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (chat, person, tool)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER approvals_move BEFORE UPDATE OF state ON approvals
WHEN OLD.state <> NEW.state AND OLD.state <> 'open'
BEGIN SELECT raise(ABORT, 'a question does not move so'); END;

-- A call that needs a yes is proposed, waits, and is started or denied.
DROP TRIGGER tool_calls_move;
CREATE TRIGGER tool_calls_move BEFORE UPDATE OF state ON tool_calls
WHEN OLD.state <> NEW.state AND OLD.state || ' → ' || NEW.state NOT IN (
  'started → done', 'started → denied', 'started → interrupted', 'done → started', 'denied → started', 'interrupted → started',
  'proposed → waiting', 'proposed → denied', 'proposed → started', 'waiting → started', 'waiting → denied',
  'done → proposed', 'denied → proposed', 'interrupted → proposed'
)
BEGIN SELECT raise(ABORT, 'a tool call does not move so'); END;
