-- Whose a direct chat was before its person went: nobody else goes on where they stopped, who gets a chat of their own at that address.
ALTER TABLE chats ADD COLUMN former TEXT;
ALTER TABLE chats DROP COLUMN since;
CREATE TRIGGER people_leave BEFORE DELETE ON people
BEGIN UPDATE chats SET former = OLD.id WHERE person = OLD.id; END;
