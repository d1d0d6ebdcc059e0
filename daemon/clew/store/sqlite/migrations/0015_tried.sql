-- When a delivery was tried last: it tells one that is put off from one that a clock which went back has put off.
ALTER TABLE outbox ADD COLUMN tried REAL NOT NULL DEFAULT 0;
