-- A renewal of tokens changes `made_at`. A person who logs in again, perhaps with another account, changes this time.
ALTER TABLE mcp_logins ADD COLUMN begun_at INTEGER NOT NULL DEFAULT 0;
UPDATE mcp_logins SET begun_at = made_at;
