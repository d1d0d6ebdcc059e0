-- Every index of a table is a page written for each row of it. What this one found is a few thousand rows, looked through in the background.

DROP INDEX cache_entries_expires;
