//! The command that lets a schedule run again, in words for the person who reads its state.
//!
//! Names each object: the agent, the directory, the conversation. Changes nothing. See [`super::refused_now`] for the reasons.

use crate::registry::schedules::flows::{self, Lost, Writer};
use crate::registry::schedules::{self, Schedule};
use crate::registry::{self, Person, Role};
use crate::sessions::store;
use ironclaw_state::{Error, ReadTx};

/// Returns the remedy for this person. A member is not shown other agents and their directories.
pub fn remedy_for(tx: &ReadTx<'_>, reader: &Person, row: &Schedule, reason: &str) -> Result<String, Error> {
    if reason.parse::<Lost>().is_ok() && !reader.role.covers(Role::Admin) {
        return Ok(format!("an owner or admin can see who changed what its flow needs; then {}", resumed(row)));
    }
    remedy(tx, row, reason)
}

/// Returns the remedy for a schedule that does not run for this reason. A reason that no longer holds needs a resumption only.
pub fn remedy(tx: &ReadTx<'_>, row: &Schedule, reason: &str) -> Result<String, Error> {
    let agent = registry::agent_name(tx, row.agent)?;
    let creator = registry::person_name(tx, row.creator)?;
    let id = row.id;
    let then_resumed = |words: String| format!("{words}; then {}", resumed(row));
    if reason.parse::<Lost>().is_ok() {
        return Ok(for_flow(tx, row, &agent)?.map_or_else(|| resumed(row), then_resumed));
    }
    Ok(match reason {
        "creator_access" => {
            then_resumed(format!("let {creator} talk to the agent again: `ironctl agent show {agent}`"))
        }
        "creator_role" => then_resumed(format!(
            "its list has more than the role of {creator} permits: `ironctl schedule set {id} --may-only-read`"
        )),
        "creator_identity" => then_resumed(format!(
            "link {creator} again: `ironctl person link {creator} {}:{}`",
            row.channel, row.platform_id
        )),
        "creator_removed" | "agent_removed" => format!("`ironctl schedule remove {id}`"),
        "emergency_stop" => "`ironctl resume` ends the emergency stop".to_owned(),
        "session_parked" | "session_quarantined" => {
            match store::find_by_origin(tx, row.agent, &schedules::origin(row))? {
                Some(session) => format!("release the conversation: `ironctl session release {}`", session.id),
                None => resumed(row),
            }
        }
        _ => resumed(row),
    })
}

fn resumed(row: &Schedule) -> String {
    format!("`ironctl schedule resume {}`", row.id)
}

/// Returns the remedy for the first part of the flows that does not hold; `None` if all hold.
fn for_flow(tx: &ReadTx<'_>, row: &Schedule, agent: &str) -> Result<Option<String>, Error> {
    let Some(broken) = flows::first_broken(tx, row)? else { return Ok(None) };
    let (to, id) = (&broken.flow.to, row.id);
    Ok(Some(match (broken.lost, broken.source) {
        (Lost::Writable, Some(directory)) => match broken.writer {
            Some(Writer::Server(server)) => {
                format!(
                    "MCP server {server} may write to {directory}: register it without, or `ironctl mcp remove {server}`"
                )
            }
            Some(Writer::Agent(writer, at)) if writer != agent || at != directory => {
                format!("agent {writer} may write to {at}: `ironctl agent revoke-dir {writer} {at}`")
            }
            // Its own directory, which the schedule reads.
            Some(Writer::Agent(..)) | None => {
                format!(
                    "agent {agent} may write to {directory}: `ironctl agent grant-dir {agent} {directory}` lets it only read"
                )
            }
        },
        (Lost::Directory, Some(directory)) => {
            format!("grant the directory again: `ironctl agent grant-dir {agent} {directory}`")
        }
        (Lost::Destination, _) => {
            format!("the destination {to} is gone: `ironctl destination list {agent}`")
        }
        (Lost::Address | Lost::Directory | Lost::Writable, _) => {
            let from: String = broken.flow.from.iter().map(|source| format!(" --from {}", source.directory)).collect();
            format!("approve the present address of {to}: `ironctl schedule set {id} --send-to {to}{from}`")
        }
    }))
}
