-- The search index knows the order of each chat: neighbours are neighbours in number. Filled when it is built anew, see `indexing`.

CREATE TABLE places (
  place INTEGER PRIMARY KEY,                        -- chat << 40 | n, counted up in the chat: row of the search index
  message INTEGER NOT NULL UNIQUE REFERENCES messages (number)
) STRICT;

DROP TABLE messages_fts;
-- Contentless: it holds index_text(message), and words for the day and month (UTC) on which it was written.
CREATE VIRTUAL TABLE messages_fts USING fts5(text, day, content='', tokenize='porter unicode61 remove_diacritics 2');
