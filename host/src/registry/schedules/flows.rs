//! The flows of schedules: what each needs to hold, and the first of it that no longer does.
//!
//! A flow lets the text of directories go to one destination. It counts only as a person approved it: with the same address of the
//! creator, and with directories that the agent reads and that nothing on this host may write. Never judges a call: see
//! [`crate::turns::calls`].

use super::Schedule;
use crate::registry::destinations::{self, Destination, State};
use crate::registry::mounts::{self, Mount, own::overlaps};
use crate::registry::tools::{SEND_FILE, SEND_MESSAGE};
use crate::registry::{agents, mcp};
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::change::{Flow, FlowSource, Mount as DescribedMount};
use ironclaw_state::{Error, ReadTx};
use std::path::{Component, Path, PathBuf};

/// The tools that a flow can have: those whose call names a destination of the agent.
pub const TOOLS: [&str; 2] = [SEND_MESSAGE, SEND_FILE];

ironclaw_contract::words! {
    /// The first part of a flow that no longer holds, as the history of its schedule names it.
    pub enum Lost {
        /// The destination is gone, is another agent, or its address is not active.
        Destination = "flow_destination",
        /// The destination has another address, or its address is not the creator's.
        Address = "flow_address",
        /// A directory is not granted, or its name means another one.
        Directory = "flow_directory",
        /// The agent, another one or an MCP server may write to a directory.
        Writable = "flow_writable",
    }
}

/// A flow that covers no call now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken<'a> {
    pub flow: &'a Flow,
    pub lost: Lost,
    /// The directory on this machine that is concerned.
    pub source: Option<&'a str>,
    /// The one who may write to it.
    pub writer: Option<Writer>,
}

/// The one who may write to a directory of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    /// An agent by name, to this directory on the machine.
    Agent(String, String),
    /// An MCP server.
    Server(String),
}

/// Returns the first flow of a schedule that does not hold, with its concerned directory.
pub fn first_broken<'a>(tx: &ReadTx<'_>, row: &'a Schedule) -> Result<Option<Broken<'a>>, Error> {
    for flow in &row.flows {
        if let Some(broken) = broken(tx, row.agent, row.creator, flow)? {
            return Ok(Some(broken));
        }
    }
    Ok(None)
}

/// Returns the first part of a flow that does not hold for the schedule of this person with this agent.
pub fn lost(tx: &ReadTx<'_>, agent: AgentId, creator: PersonId, flow: &Flow) -> Result<Option<Lost>, Error> {
    Ok(broken(tx, agent, creator, flow)?.map(|broken| broken.lost))
}

/// Returns the first part of the flows of a schedule that does not hold.
pub fn lost_of(tx: &ReadTx<'_>, row: &Schedule) -> Result<Option<Lost>, Error> {
    Ok(first_broken(tx, row)?.map(|broken| broken.lost))
}

fn broken<'a>(tx: &ReadTx<'_>, agent: AgentId, creator: PersonId, flow: &'a Flow) -> Result<Option<Broken<'a>>, Error> {
    let without_one = |lost| Ok(Some(Broken { flow, lost, source: None, writer: None }));
    let Some(to) = destinations::find(tx, agent, &flow.to)? else { return without_one(Lost::Destination) };
    let is_known = flow.tool.as_deref().is_some_and(|tool| TOOLS.contains(&tool));
    if to.state != State::Active || to.to_agent.is_some() || !is_known {
        return without_one(Lost::Destination);
    }
    let is_same = flow.recipient.as_deref() == Some(to.recipient().as_str()) && flow.thread == thread(&to);
    if !is_same || to.person != Some(creator) {
        return without_one(Lost::Address);
    }
    let held = mounts::list_for_agent(tx, agent)?;
    for FlowSource { directory, source } in &flow.from {
        let of_directory = |lost, writer| Broken { flow, lost, source: source.as_deref(), writer };
        let is_same = |mount: &&Mount| mount.target == *directory && mount.source.to_str() == source.as_deref();
        let Some(mount) = held.iter().find(is_same) else { return Ok(Some(of_directory(Lost::Directory, None))) };
        let writer = writer_into(tx, &mount.source)?;
        if !mount.read_only || writer.is_some() {
            return Ok(Some(of_directory(Lost::Writable, writer)));
        }
    }
    Ok(None)
}

/// Returns the tools of flows.
pub fn tools(flows: &[Flow]) -> impl Iterator<Item = String> {
    flows.iter().filter_map(|flow| flow.tool.clone())
}

/// Returns the thread of a destination, if it has one.
pub fn thread(to: &Destination) -> Option<String> {
    Some(to.thread.clone()).filter(|thread| !thread.is_empty())
}

/// Returns the granted directory that a path in the jail is in. A directory in the jail is one name below the root.
pub fn granted<'a>(path: &str, held: &'a [Mount]) -> Option<&'a Mount> {
    let mut parts = Path::new(path).components();
    let (Some(Component::RootDir), Some(Component::Normal(name))) = (parts.next(), parts.next()) else { return None };
    // The tools of a sandbox refuse `..` too.
    if parts.any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return None;
    }
    held.iter().find(|mount| mount.target.strip_prefix('/').is_some_and(|target| name == target))
}

/// Returns an agent or an MCP server that may write to this directory, to a part of it, or to one that it is a part of.
fn writer_into(tx: &ReadTx<'_>, directory: &Path) -> Result<Option<Writer>, Error> {
    for agent in agents(tx)? {
        let mut held = mounts::list_for_agent(tx, agent.id)?.into_iter();
        if let Some(mount) = held.find(|mount| !mount.read_only && overlaps(&mount.source, directory)) {
            return Ok(Some(Writer::Agent(agent.name, mount.source.display().to_string())));
        }
    }
    let writes =
        |mount: &DescribedMount| mount.read_only != Some(true) && overlaps(&PathBuf::from(&mount.source), directory);
    let servers = mcp::servers(tx)?;
    let writing = servers.into_iter().find(|server| server.described.mounts.iter().any(writes));
    Ok(writing.map(|server| Writer::Server(server.described.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_belongs_to_the_directory_of_its_first_name() {
        let mount =
            |target: &str| Mount { source: "/srv".into(), target: target.to_owned(), read_only: true, mine: None };
        let held = [mount("/notes"), mount("/n")];
        for (path, target) in [
            ("/notes", Some("/notes")),
            ("/notes/a/b.md", Some("/notes")),
            ("/notes/./a", Some("/notes")),
            ("//notes/a", Some("/notes")),
            ("/n/notes", Some("/n")),
            ("notes/a", None),
            ("a", None),
            ("", None),
            ("/", None),
            ("/notesx/a", None),
            ("/workspace/notes/a", None),
            ("/notes/../workspace/a", None),
            ("/../notes/a", None),
        ] {
            assert_eq!(granted(path, &held).map(|mount| mount.target.as_str()), target, "{path}");
        }
    }
}
