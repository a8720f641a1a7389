//! The requests about MCP servers.
//!
//! Never connects to a server: the host does. See `commands::mcp`.

use super::{Client, LOOK_TIMEOUT, parse, segment, to_body};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{McpLook, McpServer};

impl Client {
    /// Returns every MCP server of the catalogue.
    pub async fn mcp_servers(&self) -> Result<Vec<McpServer>, Error> {
        self.get("mcp").await
    }

    /// Returns one MCP server.
    pub async fn mcp_server(&self, server: &str) -> Result<McpServer, Error> {
        self.get(&format!("mcp/{}", segment(server))).await
    }

    /// Makes the host ask a server for its listing; returns the server with the table of its tools for these manifests.
    pub async fn look_at_mcp_server(&self, server: &str, look: &McpLook) -> Result<McpServer, Error> {
        let path = format!("mcp/{}/look", segment(server));
        parse(&self.ask(Method::POST, &path, Some(to_body(look)?), LOOK_TIMEOUT).await?)
    }
}
