-- Where common words stand in full segments of a chat, as bits: see `lanes`. Filled in the background; what is not here the search index knows.

CREATE TABLE lanes (
  segment INTEGER NOT NULL,                         -- place >> 13
  term TEXT NOT NULL,                               -- as in document_frequency; empty: this segment is done
  lane BLOB NOT NULL,                               -- deflated
  PRIMARY KEY (segment, term)
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_done ON lanes (segment) WHERE term = '';
