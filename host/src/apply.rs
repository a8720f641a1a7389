//! Does what an approved change says, in one transaction with the use of its approvals. One arm for each kind, none by default.
//!
//! Takes nothing but an [`Approved`], and does nothing that was not shown. Next: `gateway::decide`.

mod settings;

use crate::gateway::Approved;
use crate::packages::Layer;
use crate::refusal::Denied;
use crate::refusal::Refusal;
use crate::registry::channels::Channel;
use crate::registry::mounts::{self, Mount};
use crate::registry::{self, Agent, AgentDraft, Person, channels, mcp, roles, software};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{
    Access, AgentRole, Change, CreateAgent, EnabledTools, Engage, Grant, McpAccess, Packages, Permissions, Wiring,
};
use ironclaw_state::Tx;
use std::path::PathBuf;

/// Fetched packages that are told by name; the digest of the layer holds for the others too.
const FETCHED_SHOWN_MAX: usize = 20;

/// That a change was applied.
#[derive(Debug)]
pub struct Applied {
    /// What came of it, a sentence in the host's own words.
    pub outcome: String,
}

/// What was made for a change before it is applied, because it takes longer than a transaction may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// It takes nothing.
    Nothing,
    /// A layer with the software that the change names.
    Layer(Layer),
    /// The conversations of the agent that the change removes are erased, for good.
    ConversationsErased,
}

/// Applies an approved change.
///
/// # Errors
/// Refuses what cannot be done any more. The caller then rolls back, because a part may be written already.
pub fn apply(tx: &mut Tx<'_>, approved: &Approved, prepared: &Prepared) -> Result<Applied, Denied> {
    apply_change(tx, approved, prepared).map(|outcome| Applied { outcome })
}

fn apply_change(tx: &mut Tx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied> {
    match approved.change() {
        Change::Persona(persona) => {
            let agent = concerned(tx, approved)?;
            registry::set_persona(tx, approved, &agent, &persona.instructions)?;
            Ok(format!("agent {} is told something else about itself", agent.name))
        }
        Change::EnabledTools(EnabledTools::Difference(_)) => Err(incomplete().into()),
        Change::EnabledTools(EnabledTools::All(tools)) => {
            let agent = concerned(tx, approved)?;
            registry::set_tools(tx, approved, &agent, tools)?;
            Ok(format!("agent {} may call {}", agent.name, listed(tools, "no tool")))
        }
        Change::Packages(packages) => {
            let agent = concerned(tx, approved)?;
            install(tx, approved, &agent, packages, prepared)
        }
        Change::Wiring(wiring) => {
            let agent = concerned(tx, approved)?;
            wire(tx, approved, &agent, wiring)
        }
        Change::Permissions(permissions) => {
            let agent = concerned(tx, approved)?;
            permit(tx, approved, &agent, permissions)
        }
        Change::Mounts(wanted) => {
            let agent = concerned(tx, approved)?;
            let mounts = wanted.iter().map(mount).collect::<Result<Vec<_>, Denied>>()?;
            mounts::set(tx, approved, agent.id, &mounts)?;
            let targets: Vec<String> = mounts.into_iter().map(|mount| mount.target).collect();
            Ok(format!("agent {} has {} in its jail", agent.name, listed(&targets, "no directory of the host")))
        }
        Change::CreateAgent(wanted) => create(tx, approved, wanted),
        Change::McpAccess(McpAccess { server, tools }) => {
            let agent = concerned(tx, approved)?;
            let tools = tools.as_ref().ok_or_else(incomplete)?;
            if mcp::find(tx, server)?.is_none() {
                return Err(gone(format!("MCP server {server}")).into());
            }
            mcp::grant(tx, approved, agent.id, server, tools)?;
            Ok(format!("agent {} has {} of MCP server {server}", agent.name, listed(tools, "no tool")))
        }
        Change::McpRegister(server) => {
            let losing = mcp::register(tx, approved, server)?;
            let lost = match losing {
                0 => String::new(),
                1 => "; one agent lost tools of it".to_owned(),
                count => format!("; {count} agents lost tools of it"),
            };
            Ok(format!("MCP server {} is in the catalogue{lost}", server.name))
        }
        Change::Settings(settings) => settings::set(tx, approved, settings),
    }
}

/// The agent that it concerns, as it stands now.
fn concerned(tx: &Tx<'_>, approved: &Approved) -> Result<Agent, Denied> {
    let agent = approved.agent().ok_or_else(incomplete)?;
    registry::agent_by_id(tx, agent)?.ok_or_else(|| gone(format!("agent {agent}")).into())
}

fn install(
    tx: &mut Tx<'_>,
    approved: &Approved,
    agent: &Agent,
    packages: &Packages,
    prepared: &Prepared,
) -> Result<String, Denied> {
    let names: Vec<String> = packages.apt.iter().chain(&packages.npm).cloned().collect();
    match (names.is_empty(), prepared) {
        (true, _) => software::set(tx, approved, agent.id, None)?,
        (false, Prepared::Layer(layer)) => {
            software::set(tx, approved, agent.id, Some((packages, &layer.digest)))?;
            return Ok(format!(
                "agent {} has {} in its jail{}",
                agent.name,
                listed(&names, ""),
                fetched(layer, &names)
            ));
        }
        (false, Prepared::Nothing | Prepared::ConversationsErased) => {
            let message = format!("the software of agent {} was not fetched", agent.name);
            return Err(Refusal::new(DenialCode::PackagesNotFetched, message).into());
        }
    }
    Ok(format!("agent {} has {} in its jail", agent.name, listed(&names, "no software of its own")))
}

/// What came of the fetching: versions, those of what was asked for first, and what a layer does not take.
fn fetched(layer: &Layer, asked: &[String]) -> String {
    let is_asked = |installed: &&String| {
        installed.rsplit_once('=').is_some_and(|(name, _)| asked.iter().any(|asked| asked.as_str() == name))
    };
    let (first, rest): (Vec<&String>, Vec<&String>) = layer.installed.iter().partition(is_asked);
    let mut shown: Vec<String> = first.into_iter().chain(rest).take(FETCHED_SHOWN_MAX).cloned().collect();
    if layer.installed.len() > shown.len() {
        shown.push(format!("and {} more", layer.installed.len() - shown.len()));
    }
    // There are as many places as the host has names for.
    let left_out: Vec<String> = layer.left_out.iter().map(|(place, count)| format!("{count} of {place}")).collect();
    let left_out = match left_out.is_empty() {
        true => String::new(),
        false => format!("; files left out, because they are not below /usr: {}", left_out.join(", ")),
    };
    format!(" (fetched: {}{left_out})", shown.join(", "))
}

fn wire(tx: &mut Tx<'_>, approved: &Approved, agent: &Agent, wiring: &Wiring) -> Result<String, Denied> {
    let channel = channel(tx, &wiring.channel)?;
    channels::wire(tx, approved, &channel, agent.id, wiring)?;
    Ok(match wiring.engage {
        Engage::All => format!("agent {} hears {} and answers each message", agent.name, channel.name),
        Engage::Pattern => format!("agent {} hears {} and answers what fits its pattern", agent.name, channel.name),
        Engage::None => format!("agent {} hears {} no more", agent.name, channel.name),
    })
}

fn permit(tx: &mut Tx<'_>, approved: &Approved, agent: &Agent, permissions: &Permissions) -> Result<String, Denied> {
    let Permissions { access, grant, revoke } = permissions;
    if let Some(access) = access.filter(|access| *access != agent.access) {
        roles::set_access(tx, approved, agent, access)?;
    }
    let given = grant.iter().map(|Grant { identity, role }| (identity, Some(*role)));
    for (identity, role) in given.chain(revoke.iter().map(|identity| (identity, None))) {
        let person = person(tx, identity)?;
        if roles::role_of(tx, agent.id, person.id)? != role {
            roles::set(tx, approved, agent.id, person.id, role)?;
        }
    }
    let access = match access.unwrap_or(agent.access) {
        Access::Everyone => "everybody whom the host knows",
        Access::Members => "its members",
    };
    let (given, taken) = (grant.len(), revoke.len());
    Ok(format!("agent {} is for {access}; roles given: {given}, taken: {taken}", agent.name))
}

fn create(tx: &mut Tx<'_>, approved: &Approved, wanted: &CreateAgent) -> Result<String, Denied> {
    let CreateAgent { name, persona, enabled_tools, members, wirings } = wanted;
    let draft = AgentDraft {
        name: name.clone(),
        model: None,
        persona: persona.as_ref().map(|persona| persona.instructions.clone()).unwrap_or_default(),
        enabled_tools: enabled_tools.clone(),
        access: Access::Members,
    };
    let agent = registry::create_agent(tx, approved, draft)?;
    for identity in members {
        let person = person(tx, identity)?;
        roles::set(tx, approved, agent.id, person.id, Some(AgentRole::Member))?;
    }
    for wiring in wirings {
        wire(tx, approved, &agent, wiring)?;
    }
    Ok(format!("there is an agent {} ({}) now", agent.name, agent.id))
}

fn channel(tx: &Tx<'_>, name: &str) -> Result<Channel, Denied> {
    channels::find(tx, name)?.ok_or_else(|| gone(format!("channel {name}")).into())
}

fn person(tx: &Tx<'_>, identity: &str) -> Result<Person, Denied> {
    let found = registry::person_behind(tx, &identity.parse()?)?;
    found.ok_or_else(|| gone("a person that it names".to_owned()).into())
}

/// A completed change names both; one that does not was never checked.
fn mount(wanted: &ironclaw_contract::seam::change::Mount) -> Result<Mount, Denied> {
    let (Some(target), Some(read_only)) = (wanted.target.clone(), wanted.read_only) else {
        return Err(incomplete().into());
    };
    Ok(Mount { source: PathBuf::from(&wanted.source), target, read_only })
}

fn gone(what: String) -> Refusal {
    Refusal::new(DenialCode::ChangeOutdated, format!("{what} was removed"))
}

fn incomplete() -> Refusal {
    Refusal::new(DenialCode::ChangeIncomplete, "the change is not what the checks made of it")
}

/// Names in a row: every one of them passed a check for what a name looks like.
fn listed(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests;
