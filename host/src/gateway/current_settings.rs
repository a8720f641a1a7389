//! How things stand that a change would alter, as the person who decides sees it and as it is compared when it is applied.
//!
//! Only looks, and finds the same for the same state: what it finds otherwise later makes it another change. Next: `gateway::checks`.

use super::mount_source::{self, Place, Unseen};
use super::{Grounds, Standing, settings};
use crate::packages;
use crate::registry::channels::Channel;
use crate::registry::{self, Agent, Identity, channels, mcp, mounts, roles, software};
use crate::secrets::{self, SecretName};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{
    Access, Change, CreateAgent, Engage, Grant, McpAccess, McpRegister, Mount, Packages, Permissions, Persona, Wiring,
};
use ironclaw_state::Tx;
use ironclaw_text::confusable;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

/// How things stand now; `agent` is as it stands in the record.
///
/// The present setting has the shape of the payload, and is null where there is none: for a new agent, for a server that is not
/// in the catalogue, and where the agent is gone.
///
/// # Errors
/// Those of the record.
pub fn look(
    tx: &Tx<'_>,
    grounds: &Grounds,
    change: &Change,
    agent: Option<&Agent>,
) -> Result<Standing, ironclaw_state::Error> {
    let before = match (change, agent) {
        (Change::CreateAgent(_), _) => Value::Null,
        (Change::McpRegister(server), _) => {
            mcp::find(tx, &server.name)?.map_or(Value::Null, |server| json!(server.described()))
        }
        (Change::Settings(wanted), agent) => settings::before(tx, wanted, agent)?,
        (
            Change::Persona(_)
            | Change::EnabledTools(_)
            | Change::Packages(_)
            | Change::Wiring(_)
            | Change::Permissions(_)
            | Change::Mounts(_)
            | Change::McpAccess(_),
            None,
        ) => Value::Null,
        (Change::Persona(_), Some(agent)) => json!(Persona { instructions: agent.persona.clone() }),
        (Change::EnabledTools(_), Some(agent)) => {
            let mut tools = agent.enabled_tools.clone();
            tools.sort();
            json!(tools)
        }
        (Change::Packages(_), Some(agent)) => {
            json!(software::of(tx, agent.id)?.map(|software| software.packages).unwrap_or_default())
        }
        (Change::Wiring(wiring), Some(agent)) => json!(wiring_of(tx, agent, &wiring.channel)?),
        (Change::Permissions(wanted), Some(agent)) => json!(permissions_of(tx, agent, wanted)?),
        (Change::Mounts(_), Some(agent)) => json!(mounts_of(tx, agent)?),
        (Change::McpAccess(wanted), Some(agent)) => json!(access_of(tx, agent, &wanted.server)?),
    };
    Ok(Standing { before, facts: facts(tx, grounds, change)? })
}

/// What the names in a change mean now.
fn facts(tx: &Tx<'_>, grounds: &Grounds, change: &Change) -> Result<Value, ironclaw_state::Error> {
    Ok(match change {
        Change::Persona(_) | Change::EnabledTools(_) => json!({}),
        Change::Packages(packages) => json!({ "clients": clients(&grounds.packages, packages) }),
        Change::Wiring(wiring) => json!({ "channels": of_channels(tx, std::slice::from_ref(wiring))? }),
        Change::Permissions(Permissions { access: _, grant, revoke }) => {
            let granted = grant.iter().map(|grant| grant.identity.as_str());
            json!({ "identities": of_identities(tx, granted.chain(revoke.iter().map(String::as_str)))? })
        }
        Change::Mounts(mounts) => json!({ "sources": of_sources(mounts) }),
        Change::CreateAgent(CreateAgent { name: _, persona: _, enabled_tools: _, members, wirings }) => json!({
            "identities": of_identities(tx, members.iter().map(String::as_str))?,
            "channels": of_channels(tx, wirings)?,
        }),
        Change::McpAccess(access) => json!({ "servers": { access.server.as_str(): of_server(tx, &access.server)? } }),
        Change::McpRegister(server) => {
            json!({ "secrets": of_secrets(tx, server)?, "grants": of_grants(tx, server)? })
        }
        Change::Settings(wanted) => settings::facts(tx, grounds, wanted)?,
    })
}

/// How an agent hears a channel.
fn wiring_of(tx: &Tx<'_>, agent: &Agent, channel: &str) -> Result<Wiring, ironclaw_state::Error> {
    let found = channels::find(tx, channel)?;
    let none = || Wiring { channel: channel.to_owned(), engage: Engage::None, pattern: None };
    Ok(found.map_or_else(none, |channel| channel.wiring(agent.id)))
}

/// Who may talk to the agent, and how each whom the change names stands with it.
fn permissions_of(tx: &Tx<'_>, agent: &Agent, wanted: &Permissions) -> Result<Permissions, ironclaw_state::Error> {
    let mut identities: Vec<&String> = wanted.grant.iter().map(|grant| &grant.identity).collect();
    identities.extend(&wanted.revoke);
    identities.sort();
    let mut stands = Permissions { access: Some(agent.access), grant: Vec::new(), revoke: Vec::new() };
    for identity in identities {
        let role = match person_of(tx, identity)? {
            Some(person) => roles::role_of(tx, agent.id, person.id)?,
            None => None,
        };
        match role {
            Some(role) => stands.grant.push(Grant { identity: identity.clone(), role }),
            None => stands.revoke.push(identity.clone()),
        }
    }
    Ok(stands)
}

/// What a change of permissions would make of what stands: in the shape of [`permissions_of`], so that the two are compared.
pub(super) fn permissions_after(wanted: &Permissions, now: Access) -> Value {
    json!(Permissions { access: Some(wanted.access.unwrap_or(now)), ..wanted.clone() })
}

fn mounts_of(tx: &Tx<'_>, agent: &Agent) -> Result<Vec<Mount>, ironclaw_state::Error> {
    let mounts = mounts::of(tx, agent.id)?.into_iter();
    let shown = mounts.map(|mount| Mount {
        source: mount.source.display().to_string(),
        target: Some(mount.target),
        read_only: Some(mount.read_only),
    });
    Ok(shown.collect())
}

fn access_of(tx: &Tx<'_>, agent: &Agent, server: &str) -> Result<McpAccess, ironclaw_state::Error> {
    let had = mcp::grants_of(tx, agent.id)?.into_iter().find(|grant| grant.server == server);
    let tools = had.map(|grant| grant.tools).unwrap_or_default();
    Ok(McpAccess { server: server.to_owned(), tools: Some(tools) })
}

/// Whoever is linked to an identity; nobody is to what is none.
pub(super) fn person_of(tx: &Tx<'_>, identity: &str) -> Result<Option<registry::Person>, ironclaw_state::Error> {
    match identity.parse::<Identity>() {
        Ok(identity) => registry::person_behind(tx, &identity),
        Err(_) => Ok(None),
    }
}

fn of_identities<'a>(
    tx: &Tx<'_>,
    identities: impl Iterator<Item = &'a str>,
) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let names: HashMap<PersonId, String> =
        registry::people(tx)?.into_iter().map(|person| (person.id, person.name)).collect();
    let known: Vec<(String, &str)> = registry::identities(tx)?
        .into_iter()
        .map(|(identity, person)| (identity.to_string(), names.get(&person).map_or("", String::as_str)))
        .collect();
    let mut found = Map::new();
    for identity in identities {
        let others = known.iter().map(|(other, whose)| (other.as_str(), *whose));
        let marks = confusable::of(identity, others);
        let person = person_of(tx, identity)?;
        let person = person.map(|person| match marks.is_empty() {
            true => json!({ "person": person.id, "name": person.name }),
            false => json!({ "person": person.id, "name": person.name, "look twice": marks }),
        });
        found.insert(identity.to_owned(), person.unwrap_or(Value::Null));
    }
    Ok(found)
}

/// Which of all channels that ever had its name it is, and who hears it now: only one does, and loses it.
fn of_channels(tx: &Tx<'_>, wirings: &[Wiring]) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let mut found = Map::new();
    for wiring in wirings {
        let channel = match channels::find(tx, &wiring.channel)? {
            None => Value::Null,
            Some(Channel { generation, agent, .. }) => {
                let hearer = agent.map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten();
                let hearer = hearer.map(|agent| json!({ "agent": agent.id, "name": agent.name }));
                json!({ "generation": generation, "kind": channels::WEBHOOK, "heard_by": hearer })
            }
        };
        found.insert(wiring.channel.clone(), channel);
    }
    Ok(found)
}

/// What lies at each source; of one that is not this machine's own only of what kind that is.
fn of_sources(mounts: &[Mount]) -> Map<String, Value> {
    let told = |seen| match seen {
        Ok(Place { filesystem, directory, owner }) => {
            json!({ "filesystem": filesystem, "directory": directory, "owner": owner })
        }
        Err(Unseen::Elsewhere(filesystem)) => json!({ "filesystem": filesystem, "elsewhere": true }),
        Err(Unseen::Link) => json!({ "link": true }),
        Err(Unseen::Absent | Unseen::Closed) => Value::Null,
    };
    mounts.iter().map(|mount| (mount.source.clone(), told(mount_source::look(Path::new(&mount.source))))).collect()
}

/// Which program fetches what is asked for, and from where, as far as the settings say so.
fn clients(config: &packages::Config, wanted: &Packages) -> Map<String, Value> {
    let Packages { apt, npm } = wanted;
    let sources = config.apt_sources.as_ref().map(|path| path.display().to_string());
    let of_apt = json!({ "client": config.apt().display().to_string(), "sources": sources });
    let of_npm = json!({ "client": config.npm().display().to_string(), "registry": config.npm_registry });
    let asked = [("apt", of_apt, !apt.is_empty()), ("npm", of_npm, !npm.is_empty())];
    asked.into_iter().filter(|(_, _, asked)| *asked).map(|(of, client, _)| (of.to_owned(), client)).collect()
}

/// Where a server answers, what it declares, and which secrets it is sent.
fn of_server(tx: &Tx<'_>, name: &str) -> Result<Value, ironclaw_state::Error> {
    let Some(server) = mcp::find(tx, name)? else { return Ok(Value::Null) };
    let tools: Vec<&str> = server.tools.iter().map(|tool| tool.name.as_str()).collect();
    Ok(json!({ "url": server.url, "tools": tools, "headers": server.headers }))
}

/// Which of the secrets that are named there are.
fn of_secrets(tx: &Tx<'_>, server: &McpRegister) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let mut found = Map::new();
    for header in &server.headers {
        let there = match header.secret.parse::<SecretName>() {
            Ok(name) => secrets::find(tx, &name)?.is_some(),
            Err(_) => false,
        };
        found.insert(header.secret.clone(), there.into());
    }
    Ok(found)
}

/// Which agents have tools of the server of this name, and what each keeps of them.
fn of_grants(tx: &Tx<'_>, server: &McpRegister) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let Some(was) = mcp::find(tx, &server.name)? else { return Ok(Map::new()) };
    let holders = mcp::holders(tx, &server.name)?.into_iter();
    let told = holders.map(|grant| {
        let left = mcp::left_of(&grant, &was, server);
        (grant.agent_name, json!({ "agent": grant.agent, "has": grant.tools, "keeps": left }))
    });
    Ok(told.collect())
}
