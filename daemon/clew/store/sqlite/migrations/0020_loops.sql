-- Who answers in a chat as no person does: how often in a row, and until when they are not answered for it.
CREATE TABLE loops (
  chat INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
  person TEXT NOT NULL,
  length INTEGER NOT NULL,
  rests_until REAL NOT NULL,
  PRIMARY KEY (chat, person)
) STRICT, WITHOUT ROWID;
