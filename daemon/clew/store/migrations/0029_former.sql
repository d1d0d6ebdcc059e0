-- Whose a direct chat was before its person went: nobody else goes on where they stopped.
ALTER TABLE chats ADD COLUMN former TEXT;
CREATE TRIGGER people_leave BEFORE DELETE ON people
BEGIN UPDATE chats SET former = OLD.id WHERE person = OLD.id; END;
