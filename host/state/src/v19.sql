-- The logins of people at MCP servers with OAuth.
CREATE TABLE mcp_logins (
  server TEXT PRIMARY KEY NOT NULL REFERENCES mcp_servers (name) ON DELETE CASCADE,
  wrapped BLOB,                -- the tokens; null: a person has to log in again
  reason TEXT,                 -- of the end of the login
  made_at INTEGER NOT NULL,    -- the time of the tokens
  expires_at INTEGER,          -- null: the issuer names no end
  renew_at INTEGER             -- null: never
) STRICT, WITHOUT ROWID;
