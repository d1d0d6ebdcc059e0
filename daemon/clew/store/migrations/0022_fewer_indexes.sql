-- Every index of a table is a page written for each row of it. The first one nobody asks; what the second one found is a few thousand rows,
-- looked through in the background.

DROP INDEX outbox_address;
DROP INDEX cache_entries_expires;
