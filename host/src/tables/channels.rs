//! Channels with their wirings, and MCP servers with their grants. Tables: `channels`, `wirings`, `mcp_servers`, `mcp_grants`.
