//! The flows of a run of a schedule: those that still hold, and whether each covers all text of others that the run has.
//!
//! Reads the recorded results of the run and never a file. A result counts for a directory only if a tool of the workspace read it there.
//! Each other source ends the cover: another tool, a writable directory, another agent. A file that a run sends is covered if its bytes
//! are the text of a call of the run. See [`crate::registry::schedules::flows`].

use super::recorded;
use crate::registry::mounts::{self, Mount};
use crate::registry::schedules::flows;
use crate::registry::tools::{FIND_TOOLS, READ_SKILL, SEND_FILE, SEND_MESSAGE};
use crate::registry::tools::{LIST_DIR, READ_FILE, SEARCH_FILES, WRITE_FILE};
use crate::turns::calls::{self, CallRow, CallState, OpenFlow};
use crate::turns::items::Recorded;
use crate::turns::turn::{self, Turn};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::change::Flow;
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::provenance::Labels;
use ironclaw_operator::Bound;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::items;
use ironclaw_store::tables::schedules::OfTurn;
use serde_json::Value;
use std::collections::BTreeSet;

/// Messages that one run sends by flows.
const SENT_MAX: usize = 8;

/// The tools that read in the directories of a jail.
const READS: [&str; 3] = [READ_FILE, LIST_DIR, SEARCH_FILES];

/// The sources of the text of others in a run.
#[derive(Debug, Default)]
struct Sources {
    /// Directories in the jail.
    directories: BTreeSet<String>,
    /// True if it has another one.
    has_other: bool,
    /// Messages and files that calls of the run sent.
    sent: usize,
    /// Digests of the texts of its calls that wrote whole files.
    written: Vec<Digest>,
}

impl Sources {
    fn are_of(&self, flow: &Flow) -> bool {
        let is_listed = |directory: &String| flow.from.iter().any(|source| source.directory == *directory);
        !self.has_other && self.directories.iter().all(is_listed)
    }

    /// Returns the bound on the messages of a run, once it is reached.
    fn bound(&self) -> Option<Bound> {
        let remedy = "go on without it, and say so; the next run begins a new count";
        Some(Bound::new("messages of one run of a schedule", SENT_MAX, self.sent, remedy)).filter(Bound::is_reached)
    }
}

/// Returns the flows of a run that still hold.
pub(super) fn open(
    tx: &ReadTx<'_>,
    turn: &Turn,
    of_schedule: &OfTurn,
    key: &ContentKey,
) -> Result<Vec<OpenFlow>, Error> {
    if of_schedule.flows.is_empty() {
        return Ok(Vec::new());
    }
    let agent = crate::sessions::store::agent_of(tx, turn.session)?.id;
    let mut open = held(tx, agent, turn.person()?, of_schedule)?;
    if open.is_empty() {
        return Ok(open);
    }
    let sources = sources(tx, turn, &mounts::list_for_agent(tx, agent)?, key)?;
    let bound = sources.bound();
    for open in &mut open {
        (open.is_covering, open.bound) = (sources.are_of(&open.flow), bound.clone());
        open.written.clone_from(&sources.written);
    }
    Ok(open)
}

/// Returns the flows of a schedule that still hold, as a run has them that read nothing yet.
pub(super) fn held(
    tx: &ReadTx<'_>,
    agent: AgentId,
    creator: PersonId,
    of_schedule: &OfTurn,
) -> Result<Vec<OpenFlow>, Error> {
    let mut open = Vec::new();
    // A flow is for the prompt of its person.
    for flow in of_schedule.flows.iter().filter(|_| of_schedule.is_typed) {
        if flows::lost(tx, agent, creator, flow)?.is_none() {
            // An empty file has no text of others.
            let written = vec![Digest::of(b"")];
            open.push(OpenFlow { flow: flow.clone(), is_covering: true, written, bound: None });
        }
    }
    Ok(open)
}

fn sources(tx: &ReadTx<'_>, turn: &Turn, held: &[Mount], key: &ContentKey) -> Result<Sources, Error> {
    let mut sources = Sources::default();
    for attempt in turn::Task::find(tx, turn.id)?.turns {
        let is_sent = |call: &CallRow| match call.state {
            CallState::Permitted | CallState::Refused | CallState::Asked | CallState::Void => false,
            _ => [SEND_MESSAGE, SEND_FILE].contains(&call.tool.as_str()),
        };
        for (call, _) in calls::for_turn(tx, attempt)? {
            sources.sent += usize::from(is_sent(&call));
            if call.tool == WRITE_FILE {
                sources.written.extend(written_by(tx, &call, key)?);
            }
        }
        for item in items::made_in_turn(tx, turn.session, attempt)? {
            note(tx, &mut sources, &item, held, key)?;
        }
    }
    Ok(sources)
}

/// Adds the source of an item that has text of others.
fn note(
    tx: &ReadTx<'_>,
    sources: &mut Sources,
    item: &Recorded,
    held: &[Mount],
    key: &ContentKey,
) -> Result<(), Error> {
    let tuple = &item.tuple;
    // The text of an output is made of its context, whose items count here themselves.
    if !Labels::recorded(&tuple.labels).has_foreign() || tuple.kind == ItemKind::Output {
        return Ok(());
    }
    let spans = item.spans();
    let is_hosts = !spans.is_empty() && spans.iter().all(|span| span.author == Author::Host);
    let tool = tuple.tool.as_deref().unwrap_or_default();
    match (tuple.kind, tool) {
        // A refusal, or the report that a row was not written.
        (ItemKind::Result, _) if is_hosts => {}
        // Texts that people approved, and the host's own words about a message or a written file.
        (ItemKind::Result, READ_SKILL | FIND_TOOLS | SEND_MESSAGE | SEND_FILE | WRITE_FILE) => {}
        (ItemKind::Result, tool) if READS.contains(&tool) => match read_in(tx, item, held, key)? {
            Read::Nothing => {}
            Read::Directory(directory) => {
                sources.directories.insert(directory);
            }
            Read::Other => sources.has_other = true,
        },
        _ => sources.has_other = true,
    }
    Ok(())
}

/// Returns the digest of the text that a call wrote as a whole file. Its text is of the model, as that of a message.
fn written_by(tx: &ReadTx<'_>, call: &CallRow, key: &ContentKey) -> Result<Option<Digest>, Error> {
    let arguments = recorded(tx, call, key)?.value.arguments;
    let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
    let is_whole = arguments["append"] != Value::Bool(true);
    Ok(arguments["content"].as_str().filter(|_| is_whole).map(|content| Digest::of(content.as_bytes())))
}

/// The place where a call read.
enum Read {
    /// It failed, and its result has no text of a file.
    Nothing,
    /// A granted directory that the agent may not write.
    Directory(String),
    Other,
}

fn read_in(tx: &ReadTx<'_>, item: &Recorded, held: &[Mount], key: &ContentKey) -> Result<Read, Error> {
    let Some(call) = item.tuple.call.map(|call| calls::find(tx, call)).transpose()?.flatten() else {
        return Ok(Read::Other);
    };
    if call.state == CallState::Failed {
        return Ok(Read::Nothing);
    }
    let arguments = recorded(tx, &call, key)?.value.arguments;
    let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
    let path = arguments["path"].as_str().unwrap_or_default();
    Ok(match flows::granted(path, held).filter(|mount| mount.read_only) {
        Some(mount) => Read::Directory(mount.target.clone()),
        None => Read::Other,
    })
}
