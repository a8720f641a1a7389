-- An MCP server as the change describes it, its last listing, and the listing that people confirmed with its manifests.
ALTER TABLE mcp_servers ADD COLUMN described TEXT NOT NULL DEFAULT '{}'; -- the payload of its `mcp_register`
UPDATE mcp_servers SET described = json_object('name', name, 'url', url, 'tools', json(tools), 'headers', json(headers));
ALTER TABLE mcp_servers DROP COLUMN url;
ALTER TABLE mcp_servers DROP COLUMN tools;
ALTER TABLE mcp_servers DROP COLUMN headers;
ALTER TABLE mcp_servers ADD COLUMN seen TEXT;          -- canonical listing
ALTER TABLE mcp_servers ADD COLUMN seen_at INTEGER;
ALTER TABLE mcp_servers ADD COLUMN confirmed TEXT;     -- canonical listing
ALTER TABLE mcp_servers ADD COLUMN manifest TEXT;      -- TOML; null: the strictest for every tool
ALTER TABLE mcp_servers ADD COLUMN confirmed_at INTEGER;
