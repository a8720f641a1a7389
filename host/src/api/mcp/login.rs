//! Logins at MCP servers over the API: begin, complete, remove.
//!
//! No answer has a field for a token. See [`crate::reach::mcp::oauth`].

use super::super::{Body, Caller, Reply};
use super::one;
use crate::registry::mcp::{Server, login};
use crate::store::error::Error;
use crate::store::refusal::Denied;
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::operator::{McpLoginAnswer, McpLoginBegun, McpServer, McpServerLogin, NewMcpLogin};
use ironclaw_contract::seam::change::McpOauth;
use ironclaw_state::ReadTx;

/// `POST /v1/mcp/{server}/login`
pub async fn begin_login(
    Caller { api, person: by, .. }: Caller,
    Path(server): Path<String>,
    Body(new): Body<NewMcpLogin>,
) -> Reply<McpLoginBegun> {
    let begun = api.servers.logins.begin(&server, &new.redirect_uri, by.id).await.map_err(Denied::<Error>::from)?;
    let expires_at = ironclaw_ledger::rfc3339(begun.until);
    Ok(Json(McpLoginBegun { issuer: begun.issuer, url: begun.url.into(), expires_at }))
}

/// `POST /v1/mcp/{server}/login/finish`
pub async fn finish_login(
    Caller { api, person: by, .. }: Caller,
    Path(server): Path<String>,
    Body(answer): Body<McpLoginAnswer>,
) -> Reply<McpServer> {
    api.servers.logins.finish(&server, &answer.address, by.id).await.map_err(Denied::<Error>::from)?;
    api.servers.forget_failures(&server);
    Ok(Json(one(&api, server, None).await?))
}

/// `POST /v1/mcp/{server}/logout`
pub async fn log_out(Caller { api, person: by, .. }: Caller, Path(server): Path<String>) -> Reply<McpServer> {
    if let Some(removed) = api.servers.logins.remove(&server, by.id).await.map_err(Denied::<Error>::from)? {
        // The old tokens may stay valid at the issuer, so no copy of them stays.
        api.state().checkpoint().await.map_err(Error::from)?;
        api.record.forget_snapshots().await.map_err(Error::from)?;
        api.servers.logins.revoke(removed).await.map_err(Denied::<Error>::from)?;
    }
    Ok(Json(one(&api, server, None).await?))
}

/// Returns the login at a server with an issuer.
pub(super) fn view(tx: &ReadTx<'_>, server: &Server) -> Result<Option<McpServerLogin>, ironclaw_state::Error> {
    let Some(oauth) = server.described.oauth.clone() else { return Ok(None) };
    let McpOauth { issuer, scopes, client_id, client_secret } = *oauth;
    let login = login::find(tx, server.name())?;
    let active = login.as_ref().filter(|login| login.wrapped.is_some());
    Ok(Some(McpServerLogin {
        issuer,
        scopes,
        client_id,
        client_secret,
        state: if active.is_some() { "active" } else { "needed" }.to_owned(),
        expires_at: active.and_then(|login| login.expires_at).map(ironclaw_ledger::rfc3339),
        reason: login.and_then(|login| login.reason),
    }))
}
