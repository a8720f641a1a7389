//! The requests about MCP servers.
//!
//! Never connects to a server: the host does. See `commands::mcp`.

use super::{Client, LOOK_TIMEOUT, parse, segment, to_body};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{McpLoginAnswer, McpLoginBegun, McpLook, McpServer, NewMcpLogin};

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

    /// Begins a login at a server; returns the page of its issuer.
    pub async fn begin_mcp_login(&self, server: &str, new: &NewMcpLogin) -> Result<McpLoginBegun, Error> {
        let path = format!("mcp/{}/login", segment(server));
        parse(&self.ask(Method::POST, &path, Some(to_body(new)?), LOOK_TIMEOUT).await?)
    }

    /// Completes a login at a server.
    pub async fn finish_mcp_login(&self, server: &str, answer: &McpLoginAnswer) -> Result<McpServer, Error> {
        let path = format!("mcp/{}/login/finish", segment(server));
        parse(&self.ask(Method::POST, &path, Some(to_body(answer)?), LOOK_TIMEOUT).await?)
    }

    /// Removes the login at a server.
    pub async fn log_out_of_mcp_server(&self, server: &str) -> Result<McpServer, Error> {
        let path = format!("mcp/{}/logout", segment(server));
        parse(&self.ask(Method::POST, &path, None, LOOK_TIMEOUT).await?)
    }
}
