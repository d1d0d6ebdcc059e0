-- SQLite gets this table now; here it has been from the beginning.
COMMENT ON TABLE counting IS 'words of the newest messages, not yet counted in document_frequency';
