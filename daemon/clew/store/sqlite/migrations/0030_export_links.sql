-- Links by which a person fetches one of their threads, once. Of each a hash is kept.
CREATE TABLE export_links (
  hash TEXT PRIMARY KEY,
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  person TEXT NOT NULL REFERENCES people ON DELETE CASCADE,
  expires REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX export_links_session ON export_links (session);
CREATE INDEX export_links_person ON export_links (person);
