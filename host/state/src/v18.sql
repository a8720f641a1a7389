-- The layer with the packages of an MCP server.
ALTER TABLE mcp_servers ADD COLUMN layer TEXT; -- digest; null: no packages
