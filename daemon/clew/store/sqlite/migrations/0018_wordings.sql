-- What others (MCP servers) said of a tool when somebody was asked about it: a fingerprint, empty where the tool is nobody else's. A yes
-- for good is one to that.
ALTER TABLE approvals ADD COLUMN wording TEXT NOT NULL DEFAULT '';
ALTER TABLE standing_approvals ADD COLUMN wording TEXT NOT NULL DEFAULT '';
