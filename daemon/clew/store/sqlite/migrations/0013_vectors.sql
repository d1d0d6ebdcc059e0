-- What messages mean, as vectors of one embedding model, written behind the talk. `meta` has its row `vectors`: which model, how far.

CREATE TABLE vectors (
  message INTEGER PRIMARY KEY REFERENCES messages (number) ON DELETE CASCADE,
  vector BLOB NOT NULL                              -- a signed byte for each dimension, empty where there is nothing to embed, or it was taken back
) STRICT;

-- What was taken back or forgotten has none any more.
CREATE TRIGGER vectors_forget AFTER INSERT ON retractions
BEGIN UPDATE vectors SET vector = x'' WHERE message = (SELECT number FROM messages WHERE id = NEW.message); END;
