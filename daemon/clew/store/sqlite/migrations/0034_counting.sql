-- Words of the newest messages, not yet counted in document_frequency: a message's words stand on as many pages of the file as it has words.
CREATE TABLE counting (number INTEGER PRIMARY KEY, terms TEXT NOT NULL, step INTEGER NOT NULL) STRICT;
-- An index that is built anew just now has no such table, and is begun again.
DELETE FROM meta WHERE key = 'rebuilding';
DROP TABLE IF EXISTS new_messages_fts;
DROP TABLE IF EXISTS new_document_frequency;
DROP TABLE IF EXISTS new_places;
