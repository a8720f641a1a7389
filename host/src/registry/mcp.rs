//! The catalogue of MCP servers: what people registered, what each server lists, what people confirmed, and the tools that agents have.
//!
//! Never contacts a server and never holds the value of a secret: a header names the secret. See [`crate::gateway`], and [`listing`] for
//! the pins.

pub mod address;
pub mod hosts;
pub mod issuer;
pub mod login;
pub mod looser;
pub mod own_text;
mod place;
mod proposed;
mod registration;
mod server_tools;

use super::{Agent, destinations, egress, skills};
use crate::registry::secrets::SecretName;
use crate::registry::tools::RUN_COMMAND;
use crate::registry::tools::catalogue::{Catalogue, CommandReach, ServerTool, Terms};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{McpConfirm, McpRegister};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::server::{self, Tools};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::mcp as table;
use ironclaw_text::excerpt::quoted;
use listing::Listing;

pub use place::{Place, origin, service};
pub use proposed::{Likeness, Proposed, proposed};
pub use server_tools::{lost_declarations, tool_of};

pub use registration::{Credential, Login, Registration, registration};

pub use ironclaw_store::tables::mcp::{Grant, Server, grants_of, holders, listing, server as find, servers};

/// Servers of one host.
pub const SERVERS_MAX: i64 = 64;

/// Returns the tools in a listing with their manifests, and those that no agent can get.
///
/// # Errors
/// Refuses manifests that do not fit the listing.
pub fn tools(server: &str, listing: &Listing, manifest: Option<&str>) -> Result<Tools, Refusal> {
    server::tool_manifests(server, &listing.tools, manifest).map_err(|error| {
        let refusal = Refusal::new(DenialCode::McpManifest, error.to_string());
        refusal.hint(format!("`ironctl mcp show {server} --manifest` prints the present manifests"))
    })
}

/// Refuses one more MCP server than the catalogue may have.
pub fn check_room(tx: &ReadTx<'_>, name: &str) -> Result<(), Denied> {
    if table::count_servers(tx)? < SERVERS_MAX || find(tx, name)?.is_some() {
        return Ok(());
    }
    let remedy = "remove one: `ironctl mcp list`, `ironctl mcp remove NAME`";
    let bound = Bound::new("MCP servers of this host", SERVERS_MAX, SERVERS_MAX, remedy);
    Err(Refusal::over(DenialCode::McpServersTooMany, bound).into())
}

pub fn catalogue(tx: &ReadTx<'_>, agent: &Agent) -> Result<Catalogue, ironclaw_state::Error> {
    let may_run = agent.enabled_tools.iter().any(|tool| tool == RUN_COMMAND);
    let reach = match may_run {
        true => egress::command_reach(tx, agent.id)?,
        false => CommandReach::Jail,
    };
    let catalogue = Catalogue::new(&agent.enabled_tools, reach, server_tools::tools_of(tx, agent.id)?);
    let catalogue = catalogue.with_destinations(destinations::has_any(tx, agent.id)?);
    Ok(catalogue.with_skills(!skills::trusted(tx, agent.id)?.is_empty()))
}

/// Returns the terms of a tool for an agent; `None` if there is no such tool, or if it is of a server and the agent does not have it.
pub fn terms(tx: &ReadTx<'_>, agent: AgentId, tool: &str) -> Result<Option<Terms>, ironclaw_state::Error> {
    match Terms::for_built_in(tool) {
        Some(terms) => Ok(Some(terms)),
        None => Ok(Catalogue::new(&[], CommandReach::Jail, server_tools::tools_of(tx, agent)?).terms(tool)),
    }
}

/// Returns whether an agent may call a tool with this pin now, and people confirmed that the tool only reads.
pub fn only_reads(tx: &ReadTx<'_>, agent: AgentId, tool: &str, pin: &Digest) -> Result<bool, ironclaw_state::Error> {
    let catalogue = Catalogue::new(&[], CommandReach::Jail, server_tools::tools_of(tx, agent)?);
    let is_it = |known: &&ServerTool| known.manifest.name == tool && known.pin == *pin;
    Ok(catalogue.server_tools().into_iter().any(|known| is_it(&known) && known.manifest.class == Class::Read))
}

/// Returns the tools that remain of a grant after its server is registered again: none if anything but the offered tools differs, because
/// people approved the old server; otherwise those that the server may still offer.
pub fn left_of(grant: &Grant, was: &McpRegister, becomes: &McpRegister) -> Vec<String> {
    if *was != (McpRegister { tools: was.tools.clone(), ..becomes.clone() }) {
        return Vec::new();
    }
    let is_offered =
        |tool: &&String| becomes.tools.is_empty() || becomes.tools.iter().any(|named| named.name == **tool);
    grant.tools.iter().filter(is_offered).cloned().collect()
}

/// Returns the names of the secrets that a server or its issuer gets: in headers, in variables of its command, and as a client.
pub fn secrets_of(server: &McpRegister) -> impl Iterator<Item = &str> {
    let of_headers = server.headers.iter().map(|header| header.secret.as_str());
    let of_client = server.oauth.iter().filter_map(|oauth| oauth.client_secret.as_deref());
    of_headers.chain(server.environment.iter().filter_map(|one| one.secret.as_deref())).chain(of_client)
}

/// Returns the names of the servers with a secret, for people.
pub fn using_secret(tx: &ReadTx<'_>, name: &SecretName) -> Result<Vec<String>, ironclaw_state::Error> {
    let is_it = |secret: &str| secret.parse::<SecretName>().is_ok_and(|secret| secret == *name);
    let using = servers(tx)?.into_iter().filter(|server| secrets_of(&server.described).any(is_it));
    Ok(using.map(|server| format!("MCP server {}", server.name())).collect())
}

/// Records the listing of a server. An equal listing only moves its time. Returns whether it differs from the confirmed one.
pub fn record_listing(tx: &mut WriteTx<'_>, name: &str, listing: &Listing) -> Result<bool, ironclaw_state::Error> {
    let Some(server) = find(tx, name)? else { return Ok(false) };
    let (text, now) = (listing.text(), tx.now());
    let differs = server.confirmed.as_ref().is_some_and(|(confirmed, _)| *confirmed != text);
    if differs && server.seen.as_ref().is_none_or(|(seen, _)| *seen != text) {
        let confirmed = server.confirmed.as_ref().map(|(text, _)| Digest::of(text.as_bytes()).to_string());
        Entry::new(LedgerEvent::McpChanged)
            .with("server", name.to_owned())
            .with("before", confirmed.unwrap_or_default())
            .with("after", listing.digest().to_string())
            .append(tx)?;
    }
    table::set_seen(tx, name, &text, now)?;
    Ok(differs)
}

/// Returns the last listing of the server that a confirmation names, with manifests that fit it.
///
/// # Errors
/// Refuses an unknown server, one without a listing, another listing than that of the digest, one without a tool that an agent can get, and
/// manifests that do not fit.
pub fn confirmable(tx: &ReadTx<'_>, wanted: &McpConfirm) -> Result<Listing, Denied> {
    let McpConfirm { server, digest, manifest } = wanted;
    let Some(found) = find(tx, server)? else { return Err(unknown(server).into()) };
    let Some(listing) = found.seen()? else {
        let message = format!("the host has no listing of MCP server {server}");
        let refusal = Refusal::new(DenialCode::McpUnseen, message);
        return Err(refusal.hint(format!("`ironctl mcp test {server}` asks it for one")).into());
    };
    if listing.digest() != *digest {
        let message = format!("MCP server {server} lists something else than the digest names");
        let refusal = Refusal::new(DenialCode::McpDigest, message);
        return Err(refusal.hint(format!("read its tools and take their digest: `ironctl mcp show {server}`")).into());
    }
    if tools(server, &listing, manifest.as_deref())?.manifests.is_empty() {
        let message = format!("MCP server {server} lists no tool that an agent can get");
        let refusal = Refusal::new(DenialCode::McpListing, message);
        return Err(refusal.hint(format!("`ironctl mcp show {server}` has the reason for each tool")).into());
    }
    Ok(listing)
}

/// Returns whether an operator listed result paths for a server at an origin.
pub fn has_result_paths(tx: &ReadTx<'_>, at: &str) -> Result<bool, ironclaw_state::Error> {
    let has = |manifest: &str| manifest.contains("results");
    Ok(servers(tx)?.iter().any(|server| server.manifest.as_deref().is_some_and(has) && origin(&server.described) == at))
}

/// Returns the refusal for a server that is not in the catalogue.
pub fn unknown(server: &str) -> Refusal {
    let refusal = Refusal::new(DenialCode::McpServerUnknown, format!("there is no MCP server {}", quoted(server)));
    refusal.hint("`ironctl mcp list` shows the known servers; `ironctl mcp add` adds one")
}
