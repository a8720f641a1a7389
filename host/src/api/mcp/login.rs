//! The view of a login at an MCP server.
//!
//! No answer has a field for a token. See [`crate::reach::mcp::oauth`].

use crate::registry::mcp::issuer::name_in;
use crate::registry::mcp::{Server, login};
use ironclaw_contract::seam::change::McpOauth;
use ironclaw_operator::{McpLoginState, McpServerLogin};
use ironclaw_state::ReadTx;

/// Returns the login at a server with an issuer.
pub(super) fn view(tx: &ReadTx<'_>, server: &Server) -> Result<Option<McpServerLogin>, ironclaw_state::Error> {
    let Some(oauth) = server.described.oauth.clone() else { return Ok(None) };
    let McpOauth { issuer, scopes, client_id, client_secret } = *oauth;
    let login = login::find(tx, server.name())?;
    let active = login.as_ref().filter(|login| login.wrapped.is_some());
    let name = name_in(&issuer);
    Ok(Some(McpServerLogin {
        issuer: name.to_owned(),
        accepts_unannounced_s256: name != issuer,
        scopes,
        client_id,
        client_secret,
        state: if active.is_some() { McpLoginState::Active } else { McpLoginState::Needed },
        expires_at: active.and_then(|login| login.expires_at).map(ironclaw_ledger::rfc3339),
        reason: login.and_then(|login| login.reason),
    }))
}
