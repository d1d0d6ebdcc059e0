-- A file that was uploaded becomes one of its message.

DROP TRIGGER attachments_move;
CREATE TRIGGER attachments_move BEFORE UPDATE OF state ON attachments
WHEN OLD.state <> NEW.state AND OLD.state || ' → ' || NEW.state NOT IN (
  'waiting → fetched', 'waiting → failed', 'fetched → ready', 'fetched → failed', 'uploaded → fetched'
)
BEGIN SELECT raise(ABORT, 'a file does not move so'); END;
