-- Lines of groups that are kept though they are not for clew; edits and deletions in whatever order they come.
ALTER TABLE inbox ADD COLUMN overheard INTEGER NOT NULL DEFAULT 0 CHECK (overheard IN (0, 1));
ALTER TABLE inbox ADD COLUMN edits TEXT;              -- the external id of the message that an edit changes
ALTER TABLE inbox ADD COLUMN message TEXT;            -- the row of the transcript that it became
CREATE INDEX inbox_edits ON inbox (edits) WHERE edits IS NOT NULL;
CREATE TABLE deletions (                              -- of messages that have not come, or are being answered
  external_id TEXT PRIMARY KEY,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE retractions ADD COLUMN shown INTEGER NOT NULL DEFAULT 0 CHECK (shown IN (0, 1)); -- it stands in its prompt until that changes
CREATE INDEX retractions_shown ON retractions (message) WHERE shown = 1;
