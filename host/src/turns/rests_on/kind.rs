//! The kind of an item that a reply rests on: whether the host recorded a result, or whose words it has.
//!
//! A sandbox may be taken over, so its report alone is no result. See [`ironclaw_operator::SourceKind`].

use crate::registry::mounts;
use crate::registry::tools::{self, OutsideTool, Place, READ_FILE, RECALL, REMEMBER, WRITE_FILE};
use crate::sessions::store::Session;
use crate::turns::calls::{self, CallRow, CallState, OutputBody};
use crate::turns::items::{self, Recorded};
use ironclaw_contract::ids::{CallId, ItemId};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::SourceKind;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::turns;
use serde_json::Value;
use std::collections::HashMap;

/// The bound on calls of `write_file` that are read for one reply.
const WRITES_MAX: usize = 512;

/// The workspace in the jail, with its slash.
const WORKSPACE: &str = "/workspace/";

/// The kind of an item, with the tool and the path of a result.
pub(super) struct Found {
    pub(super) kind: SourceKind,
    pub(super) tool: Option<String>,
    pub(super) path: Option<String>,
}

/// Finds the kinds of the items of one reply.
pub(super) struct Kinds<'a> {
    tx: &'a ReadTx<'a>,
    session: &'a Session,
    reply: &'a Recorded,
    key: &'a ContentKey,
    /// Outputs that were read, with their numbers.
    outputs: HashMap<ItemId, Option<Output>>,
    /// The paths that the agent wrote, with the numbers of the outputs.
    written: Option<Vec<(String, u64)>>,
}

/// An output that was read.
struct Output {
    item: Recorded,
    body: OutputBody,
}

impl<'a> Kinds<'a> {
    pub(super) fn new(tx: &'a ReadTx<'a>, session: &'a Session, reply: &'a Recorded, key: &'a ContentKey) -> Self {
        Self { tx, session, reply, key, outputs: HashMap::new(), written: None }
    }

    /// Returns the kind of an item; `None` if its prompt left it out.
    pub(super) fn find(&mut self, item: &Recorded) -> Result<Option<Found>, Error> {
        let plain = |kind| Ok(Some(Found { kind, tool: None, path: None }));
        match item.tuple.kind {
            ItemKind::Message => match late_tool(item) {
                Some(_) => {
                    let call = turns::find_call_by_result(self.tx, self.session.id, item.tuple.item)?;
                    self.result(item, late_tool(item), call)
                }
                None => plain(SourceKind::Message),
            },
            ItemKind::Result => {
                let call = item.tuple.call.map(|call| calls::find(self.tx, call)).transpose()?.flatten();
                self.result(item, item.tuple.tool.clone(), call)
            }
            ItemKind::Summary => plain(SourceKind::Summary),
            ItemKind::Output | ItemKind::Notice => Ok(None),
        }
    }

    fn result(&mut self, item: &Recorded, tool: Option<String>, call: Option<CallRow>) -> Result<Option<Found>, Error> {
        let name = tool.clone().unwrap_or_default();
        if let Some(call) = &call
            && self.is_of_script(call)?
        {
            return Ok(None);
        }
        let path = match &call {
            Some(call) if is_of_file(&name) => self.argument(call, "path")?,
            Some(_) | None => None,
        };
        // A call that the record no longer has counts for nothing.
        let is_done = call.as_ref().is_some_and(|call| matches!(call.state, CallState::Done | CallState::Queued));
        let kind = match is_done {
            true => self.kind_of_done(item, &name, path.as_deref())?,
            false => SourceKind::Failure,
        };
        Ok(Some(Found { kind, tool, path }))
    }

    /// Returns the kind of the result of a call that is done.
    fn kind_of_done(&mut self, item: &Recorded, tool: &str, path: Option<&str>) -> Result<SourceKind, Error> {
        Ok(match place_kind(tool) {
            SourceKind::Report if tool == READ_FILE => match path {
                Some(path) if self.is_written(path, item.tuple.seq)? => SourceKind::OwnFile,
                Some(path) if self.is_read_only(path)? => SourceKind::File,
                Some(_) | None => SourceKind::Report,
            },
            kind => kind,
        })
    }

    /// Returns whether a prompt leaves out a result: a model sees no call of a script.
    fn is_of_script(&mut self, call: &CallRow) -> Result<bool, Error> {
        if self.reply.scripted || call.turn == self.reply.tuple.turn.unwrap_or(call.turn) {
            return Ok(false);
        }
        Ok(items::find(self.tx, call.output)?.is_some_and(|output| output.scripted))
    }

    /// Returns whether the agent wrote a file before this number.
    fn is_written(&mut self, path: &str, before: u64) -> Result<bool, Error> {
        if self.written.is_none() {
            let mut written = Vec::new();
            for call in turns::done_calls(self.tx, self.session.id, WRITE_FILE, WRITES_MAX)? {
                let seq = self.output(call.output)?.map(|output| output.item.tuple.seq);
                if let (Some(seq), Some(path)) = (seq, self.argument(&call, "path")?) {
                    written.push((plain_path(&path), seq));
                }
            }
            self.written = Some(written);
        }
        let path = plain_path(path);
        Ok(self.written.iter().flatten().any(|(written, seq)| *written == path && *seq < before))
    }

    /// Returns whether a path is in a directory that the agent can only read.
    fn is_read_only(&self, path: &str) -> Result<bool, Error> {
        if path.split('/').any(|part| part == "..") {
            return Ok(false);
        }
        let mounts = mounts::list_for_agent(self.tx, self.session.agent)?;
        Ok(mounts.iter().any(|mount| {
            let below = path.strip_prefix(&mount.target);
            mount.read_only && below.is_some_and(|below| below.starts_with('/'))
        }))
    }

    /// Returns an argument of a call, if it is text.
    fn argument(&mut self, call: &CallRow, name: &str) -> Result<Option<String>, Error> {
        let arguments = self.arguments(call.output, call.id)?;
        let read = arguments.and_then(|arguments| serde_json::from_str::<Value>(&arguments).ok());
        Ok(read.and_then(|read| read[name].as_str().map(str::to_owned)))
    }

    /// Returns the recorded arguments of a call.
    pub(super) fn arguments(&mut self, output: ItemId, call: CallId) -> Result<Option<String>, Error> {
        let Some(output) = self.output(output)? else { return Ok(None) };
        let found = output.body.calls.iter().find(|known| known.call_id == call);
        Ok(found.map(|call| call.arguments.clone()))
    }

    fn output(&mut self, id: ItemId) -> Result<Option<&Output>, Error> {
        if !self.outputs.contains_key(&id) {
            let read = match items::find(self.tx, id)? {
                Some(item) => {
                    let body = items::parse_body(&items::body(self.tx, &item, self.key)?)?;
                    Some(Output { item, body })
                }
                None => None,
            };
            self.outputs.insert(id, read);
        }
        Ok(self.outputs.get(&id).and_then(Option::as_ref))
    }
}

/// Returns the kind of the results of a tool by the place where its calls run.
fn place_kind(tool: &str) -> SourceKind {
    match tool {
        REMEMBER | RECALL => SourceKind::Note,
        WRITE_FILE => SourceKind::OwnFile,
        _ => match tools::find(tool).map(|tool| tool.place) {
            // A program in a jail prints any text, also that of a file of the agent.
            Some(Place::Jail | Place::Outside(OutsideTool::NetworkCommand)) => SourceKind::Report,
            Some(Place::Row) => SourceKind::Request,
            Some(Place::Record(_) | Place::Outside(_)) | None => SourceKind::Result,
        },
    }
}

/// Returns the tool of a late result, which is a message.
pub(super) fn late_tool(item: &Recorded) -> Option<String> {
    item.spans().into_iter().find_map(|span| match span.author {
        Author::Tool { tool } => Some(tool),
        _ => None,
    })
}

fn is_of_file(tool: &str) -> bool {
    tool == READ_FILE || tool == WRITE_FILE
}

/// Returns a path of the workspace in one form. Two forms of one file may differ, and then the file counts as that of another author.
fn plain_path(path: &str) -> String {
    let path = path.strip_prefix(WORKSPACE).unwrap_or(path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}
