-- The transcript is append-only but for the words of what was forgotten for good: its row stays in its place, empty.

DROP TRIGGER messages_append_only;
CREATE TRIGGER messages_append_only BEFORE UPDATE ON messages
WHEN NOT (
  NEW.blocks = '[]' AND NEW.metadata = '{}' AND NEW.sender_name = '' AND NEW.sender IN (OLD.sender, '')
  AND NEW.number = OLD.number AND NEW.id = OLD.id AND NEW.session = OLD.session AND NEW.seq = OLD.seq AND NEW.chat = OLD.chat
  AND NEW.role = OLD.role AND NEW.turn = OLD.turn AND NEW.at = OLD.at
  AND EXISTS (SELECT 1 FROM retractions WHERE message = OLD.id AND reason = 'deleted' AND shown = 0)
)
BEGIN SELECT raise(ABORT, 'messages are append-only'); END;
