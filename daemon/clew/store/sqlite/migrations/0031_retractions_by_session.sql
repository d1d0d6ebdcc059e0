-- A retraction knows its session: every turn asks whether something of its window was taken back, and it asked all of them.

ALTER TABLE retractions ADD COLUMN session TEXT;
UPDATE retractions SET session = (SELECT session FROM messages WHERE id = message);
CREATE INDEX retractions_session ON retractions (session, shown);
DROP INDEX retractions_shown;

CREATE TRIGGER retractions_placed AFTER INSERT ON retractions
BEGIN
  UPDATE retractions SET session = (SELECT session FROM messages WHERE id = NEW.message) WHERE message = NEW.message;
END;
