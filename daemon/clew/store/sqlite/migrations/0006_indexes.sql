-- Every index of a table is a page written for each row: those that nobody asks go, and those that few rows need hold these alone.

DROP INDEX IF EXISTS turns_running;                 -- turns_open holds the same turns
DROP INDEX IF EXISTS model_calls_turn;
DROP INDEX IF EXISTS messages_turn;
CREATE INDEX messages_turn ON messages (turn) WHERE role = 'user';
DROP INDEX IF EXISTS outbox_turn;
CREATE INDEX IF NOT EXISTS outbox_draft ON outbox (turn) WHERE state = 'draft';
