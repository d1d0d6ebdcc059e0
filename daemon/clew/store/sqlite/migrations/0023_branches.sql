-- Threads that branched off others: `sessions.parent` and `fork_seq` without `run`. Of what the window held at row `fork_seq` a branch has
-- copies, under the same numbers; its first compaction is the summary that stood in front of them, and what that covers is the parent's.

CREATE TABLE private_spans (                        -- what is said in a session while it is private: nobody else's prompt sees it, nothing is noted of it
  session TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
  from_seq INTEGER NOT NULL,                        -- the last row in front of it
  until_seq INTEGER,                                -- the last row of it, null while it goes on
  PRIMARY KEY (session, from_seq)
) STRICT, WITHOUT ROWID;
