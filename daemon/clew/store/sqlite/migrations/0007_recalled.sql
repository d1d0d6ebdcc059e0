-- Which messages an excerpt quotes, not only the best of them: repeats are told by it.

ALTER TABLE recalled ADD COLUMN quoted TEXT NOT NULL DEFAULT '[]';           -- JSON: ids
