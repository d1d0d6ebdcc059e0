-- Who says a message is found too. The index is built anew at the start that follows.

DROP TABLE messages_fts;
-- Contentless: it holds index_text(message), words for the day and month (UTC) on which it was written, and index_text(who wrote it).
CREATE VIRTUAL TABLE messages_fts USING fts5(text, day, speaker, content='', tokenize='porter unicode61 remove_diacritics 2');
