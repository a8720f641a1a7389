//! The texts in the answers of MCP servers that a person calls theirs: whether a declaration still has its effect.
//!
//! It has none once an agent called a tool of the server, with an argument, that does more than read, and while something on this host could
//! write a directory of the server. Reads the record alone. See [`crate::calls::executor`], which labels each answer.

use super::place::origin;
use crate::registry::mounts::{Mount, own};
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::tables::mcp::Server;
use ironclaw_store::tables::server_values;
use std::collections::BTreeSet;

/// The reason why the answers of a server are text of others, although a person declared texts of them theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Its manifests do not fit its listing, so no agent can get a tool of it.
    Unfit,
    /// An agent sent this argument, as `TOOL.ARGUMENT`, of a tool that does more than read, or that the server no longer lists.
    Written(String),
    /// The server has a directory that someone could write.
    Directory(own::Lost),
}

impl Lost {
    /// Returns the reason, for the end of a sentence.
    pub fn words(&self) -> String {
        match self {
            Self::Unfit => "its manifests do not fit its listing".to_owned(),
            Self::Written(argument) => format!("an agent sent {argument}, and the tool does more than read"),
            Self::Directory(own::Lost::Writable) => "the server may write to a directory of its own".to_owned(),
            Self::Directory(lost) => format!("a directory of the server: {}", lost.words()),
        }
    }
}

/// Returns the reason why declarations of a server have no effect. `reading` has the arguments that belong to reading tools alone.
pub fn lost(tx: &ReadTx<'_>, server: &Server, reading: &BTreeSet<String>) -> Result<Option<Lost>, Error> {
    let sent = server_values::sent_arguments(tx, &origin(&server.described))?;
    if let Some(written) = sent.into_iter().find(|argument| !reading.contains(argument)) {
        return Ok(Some(Lost::Written(written)));
    }
    let mounts = &server.described.mounts;
    if mounts.is_empty() {
        return Ok(None);
    }
    let written = own::written(tx)?;
    Ok(mounts.iter().find_map(|mount| {
        let (source, target) = (mount.source.clone().into(), mount.target.clone().unwrap_or_default());
        let read_only = mount.read_only == Some(true);
        own::lost(&Mount { source, target, read_only, mine: None }, &written).map(Lost::Directory)
    }))
}
