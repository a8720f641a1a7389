//! Completes the flows of a schedule from the record, and refuses what a flow cannot have.
//!
//! The address, the tool and the directories on the machine are written into the payload, so an approval is bound to them. See
//! [`crate::registry::schedules::flows`] for what holds later.

use crate::registry::schedules::flows::{self, Lost};
use crate::registry::tools::WRITE_FILE;
use crate::registry::tools::{Class, SEND_FILE, SEND_MESSAGE};
use crate::registry::{Agent, destinations, mounts};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{Flow, FlowSource, RunContext, WrittenBy};
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::excerpt::quoted;

/// Returns flows in full and sorted.
///
/// # Errors
/// Refuses a destination that the agent does not have or that is not the creator's, and a directory that is not granted read-only or
/// that something on this host may write.
pub(super) fn completed(
    tx: &ReadTx<'_>,
    agent: &Agent,
    creator: PersonId,
    wanted: &[Flow],
) -> Result<Vec<Flow>, Denied> {
    let mut all = Vec::with_capacity(wanted.len());
    for flow in wanted {
        let flow = complete(tx, agent, flow)?;
        if let Some(lost) = flows::lost(tx, agent.id, creator, &flow)? {
            return Err(refused(agent, &flow, lost).into());
        }
        all.push(flow);
    }
    all.sort_by(|one, other| one.to.cmp(&other.to));
    Ok(all)
}

fn complete(tx: &ReadTx<'_>, agent: &Agent, wanted: &Flow) -> Result<Flow, Denied> {
    let name = &agent.name;
    let Some(to) = destinations::find(tx, agent.id, &wanted.to)? else {
        let message = format!("agent {name} has no destination {}", quoted(&wanted.to));
        let hint = format!("add it: `ironctl destination add {name} NAME --channel CHANNEL --to ADDRESS`");
        return Err(refuse(message, hint).into());
    };
    let held = mounts::list_for_agent(tx, agent.id)?;
    let mut from = Vec::with_capacity(wanted.from.len());
    for FlowSource { directory, source: _ } in &wanted.from {
        let is_named = |mount: &&mounts::Mount| {
            mount.target == *directory || mount.source.to_str().is_some_and(|source| source == directory)
        };
        let Some(mount) = held.iter().find(is_named) else {
            let message = format!("agent {name} has no directory {}", quoted(directory));
            return Err(
                refuse(message, format!("grant it read-only: `ironctl agent grant-dir {name} DIRECTORY`")).into()
            );
        };
        let source = mount.source.to_str().map(str::to_owned);
        from.push(FlowSource { directory: mount.target.clone(), source });
    }
    from.sort_by(|one, other| one.directory.cmp(&other.directory));
    from.dedup();
    let tool = Some(tool(agent, wanted)?);
    Ok(Flow { to: to.name.clone(), from, tool, recipient: Some(to.recipient()), thread: flows::thread(&to) })
}

/// Returns the tool of a flow: the given one, or that of messages.
fn tool(agent: &Agent, wanted: &Flow) -> Result<String, Refusal> {
    match wanted.tool.as_deref() {
        None => Ok(SEND_MESSAGE.to_owned()),
        Some(SEND_FILE) if !agent.enabled_tools.iter().any(|tool| tool == SEND_FILE) => {
            let message = format!("agent {} does not have the tool {SEND_FILE}", agent.name);
            Err(refuse(message, format!("enable it: `ironctl agent set {} --add-tool {SEND_FILE}`", agent.name)))
        }
        Some(tool) if flows::TOOLS.contains(&tool) => Ok(tool.to_owned()),
        Some(other) => {
            let message = format!("a flow cannot have the tool {}: its calls name no destination", quoted(other));
            Err(refuse(message, format!("a flow has one of these: {}", flows::TOOLS.join(", "))))
        }
    }
}

/// Refuses flows of runs that see earlier ones, whose text can have any source, and of a prompt that a model wrote. Refuses a flow of files
/// if a run may not write one.
pub(super) fn check(all: &[Flow], may: &[String], context: RunContext, written_by: WrittenBy) -> Result<(), Refusal> {
    if all.is_empty() {
        return Ok(());
    }
    let sends_file = all.iter().any(|flow| flow.tool.as_deref() == Some(SEND_FILE));
    if sends_file && !may.iter().any(|entry| [Class::Write.name(), WRITE_FILE].contains(&entry.as_str())) {
        let message = format!("a run sends a file that it wrote, and its list lacks {WRITE_FILE}");
        return Err(refuse(message, format!("add --may {WRITE_FILE}")));
    }
    match (context, written_by) {
        (RunContext::Fresh, WrittenBy::Person) => Ok(()),
        (RunContext::Continue, _) => Err(refuse(
            "runs that continue one conversation have no flow: their text can come from an earlier run".to_owned(),
            "leave out --continue".to_owned(),
        )),
        (RunContext::Fresh, WrittenBy::Model) => {
            let message = "a flow needs a prompt that a person wrote, and a model wrote this one".to_owned();
            Err(refuse(message, "write it again: `ironctl schedule add AGENT PROMPT --send-to DESTINATION`".to_owned()))
        }
    }
}

fn refused(agent: &Agent, flow: &Flow, lost: Lost) -> Refusal {
    let (name, to) = (&agent.name, quoted(&flow.to));
    let directories: Vec<&str> = flow.from.iter().map(|source| source.directory.as_str()).collect();
    match lost {
        Lost::Destination | Lost::Address => refuse(
            format!("destination {to} of agent {name} is no active address of the creator of the schedule"),
            "a flow sends to an address that is linked to the creator: `ironctl destination list`".to_owned(),
        ),
        Lost::Directory | Lost::Writable => refuse(
            format!(
                "the agent, another one or an MCP server may write to a directory among {}",
                directories.join(", ")
            ),
            format!("a flow reads directories that all have read-only: `ironctl agent show {name}`"),
        ),
    }
}

fn refuse(message: String, hint: String) -> Refusal {
    Refusal::new(DenialCode::ScheduleFlow, message).hint(hint)
}
