//! The catalogue of MCP servers, the confirmation of their tools, and the access of agents to them.

use super::{approved_entry, changed_entry};
use crate::gateway::decide::proof::Approved;
use crate::registry::allowances;
use crate::registry::mcp::{check_room, confirmable, find, grants_of, holders, left_of, login};
use crate::registry::mounts::own;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::change::{McpConfirm, McpRegister};
use ironclaw_judge::manifest::server;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::mcp as table;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Adds a server with the layer of its packages and the addresses that people read to the catalogue, replaces the one of the same name, or removes it. Grants that no longer fit
/// are reduced; none fits another layer. Returns the number of agents that lose a tool.
///
/// # Errors
/// Refuses a server beyond the bound.
pub fn register(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    wanted: &McpRegister,
    layer: Option<Digest>,
    addresses: &[IpAddr],
) -> Result<usize, Denied> {
    let was = find(tx, &wanted.name)?;
    check_room(tx, &wanted.name)?;
    let mut losing = 0;
    for held in holders(tx, &wanted.name)? {
        let same_layer = was.as_ref().filter(|was| was.layer == layer);
        let left = same_layer.map(|was| left_of(&held, &was.described, wanted)).unwrap_or_default();
        if left != held.tools {
            grant(tx, approved, held.agent, &wanted.name, &left)?;
            losing += 1;
        }
    }
    if let Some(was) = &was {
        login::remove_unless_same(tx, &was.described, wanted)?;
    }
    let before = was.as_ref().map(|was| canonical::to_string(&was.described)).unwrap_or_default();
    let after = match wanted.remove {
        true => {
            table::delete_server(tx, &wanted.name)?;
            String::new()
        }
        false if was.is_some_and(|was| was.described == *wanted && was.layer == layer) => before.clone(),
        false => {
            let now = tx.now();
            table::put_server(tx, wanted, layer.as_ref(), now)?;
            canonical::to_string(wanted)
        }
    };
    let writable =
        wanted.mounts.iter().filter(|mount| mount.read_only != Some(true)).map(|mount| mount.source.as_str());
    own::record_written(tx, &format!("MCP server {}", wanted.name), writable)?;
    if !wanted.remove {
        table::set_addresses(tx, &wanted.name, addresses)?;
    }
    approved_entry(LedgerEvent::McpRegistered, approved)
        .with("server", wanted.name.clone())
        .with("before", Digest::of(before.as_bytes()).to_string())
        .with("after", Digest::of(after.as_bytes()).to_string())
        .with("layer", layer)
        .append(tx)?;
    Ok(losing)
}

/// Confirms the last listing of a server with its manifests, and the persons who call text of its tools theirs. Grants keep the tools that agents can still get. Returns the number of agents that
/// lose a tool.
///
/// # Errors
/// Refuses if the last listing is not the one of the digest.
pub fn confirm(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    wanted: &McpConfirm,
    mine: &BTreeMap<String, PersonId>,
) -> Result<usize, Denied> {
    let tools = confirmable(tx, wanted)?.strictest(&wanted.server).manifests;
    let before = find(tx, &wanted.server)?.and_then(|server| server.confirmed);
    let mut losing = 0;
    for held in holders(tx, &wanted.server)? {
        let left: Vec<String> = held.tools.iter().filter(|tool| tools.contains_key(*tool)).cloned().collect();
        if left != held.tools {
            grant(tx, approved, held.agent, &wanted.server, &left)?;
            losing += 1;
        }
    }
    let now = tx.now();
    table::confirm_server(tx, &wanted.server, wanted.manifest.as_deref(), mine, now)?;
    let before = before.map(|(text, _)| Digest::of(text.as_bytes()).to_string());
    approved_entry(LedgerEvent::McpConfirmed, approved)
        .with("server", wanted.server.clone())
        .with("before", before.unwrap_or_default())
        .with("after", wanted.digest.to_string())
        .with("manifest", Digest::of(wanted.manifest.as_deref().unwrap_or_default().as_bytes()).to_string())
        .with("mine", Some(mine.keys().cloned().collect::<Vec<_>>().join(" ")).filter(|tools| !tools.is_empty()))
        .append(tx)?;
    Ok(losing)
}

/// Sets the tools of a server that an agent has; an empty list revokes the access.
pub fn grant(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    server: &str,
    tools: &[String],
) -> Result<(), ironclaw_state::Error> {
    let had = grants_of(tx, agent)?.into_iter().find(|grant| grant.server == server);
    let before = canonical::to_string(&had.map(|grant| grant.tools).unwrap_or_default());
    let after = canonical::to_string(&tools);
    if tools.is_empty() {
        table::delete_grant(tx, agent, server)?;
    } else {
        table::put_grant(tx, agent, server, tools)?;
    }
    let kept: Vec<String> = tools.iter().map(|tool| server::name_for_model(server, tool)).collect();
    let is_lost = |tool: &str| server::is_of(server, tool) && !kept.iter().any(|kept| kept == tool);
    allowances::end_of_tools(tx, agent, is_lost)?;
    changed_entry(LedgerEvent::McpGranted, approved, agent, before.as_bytes(), after.as_bytes())
        .with("server", server.to_owned())
        .append(tx)?;
    Ok(())
}
