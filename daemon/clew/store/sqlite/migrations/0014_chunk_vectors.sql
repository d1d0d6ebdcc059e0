-- What pieces of documents mean, as vectors of one embedding model. `meta` has its row `chunk_vectors`: which model.

CREATE TABLE chunk_vectors (
  chunk INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
  vector BLOB NOT NULL                              -- a signed byte for each dimension, empty where there is nothing to embed
) STRICT;
