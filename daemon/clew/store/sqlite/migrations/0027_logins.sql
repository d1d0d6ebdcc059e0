-- Browsers that are logged in, and links to log in with. Of both a hash is kept.
CREATE TABLE logins (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,                          -- of what the browser keeps
  mark TEXT NOT NULL,                                 -- made with http.token: another token ends it
  person TEXT NOT NULL REFERENCES people ON DELETE CASCADE,
  how TEXT NOT NULL CHECK (how IN ('token', 'link')),
  agent TEXT NOT NULL,                                -- what the browser calls itself
  created REAL NOT NULL,
  seen REAL NOT NULL,
  expires REAL NOT NULL
) STRICT;
CREATE INDEX logins_person ON logins (person, created);

CREATE TABLE login_links (
  hash TEXT PRIMARY KEY,
  person TEXT NOT NULL REFERENCES people ON DELETE CASCADE,
  expires REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX login_links_person ON login_links (person);
