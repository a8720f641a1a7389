//! What a seal binds, and how a sealed item is named on the wire.
//!
//! Only the host can make or check a seal; the sandbox carries them as they are. Next: `socket`.

use super::message::word;
use crate::canonical::Digest;
use crate::ids::{BootId, CallId, ItemId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// First element of every sealed tuple: the recipe and its version.
pub const RECIPE: &str = "ironclaw-seal/1";

word!(/// What an item is; an equal body of another kind is another item.
ItemKind {
    /// Came from outside, with an author.
    Message = "message",
    /// A model's output.
    Output = "output",
    /// A tool's result.
    Result = "result",
    /// A summary of earlier items.
    Summary = "summary",
    /// Written by the host in place of an answer.
    Notice = "notice",
});

word!(/// Where the bytes of an item came from; labels only ever add up.
Label {
    /// The kernel of the host vouches for it.
    AgentKernel = "AgentKernel",
    /// A person entered it.
    UserSurfaceInput = "UserSurfaceInput",
    /// It fills a slot of what a person typed.
    PromptSlotBound = "PromptSlotBound",
    /// An id that a server minted in this session.
    SessionResult = "SessionResult",
    /// A leaf of a structured result.
    StructuredResult = "StructuredResult",
    /// From outside: any other result, and all that a sandbox reports.
    External = "External",
    /// A model produced it.
    LlmDerived = "LlmDerived",
});

/// Names one sealed item. `seal` is HMAC-SHA256 by the host over [`tuple()`]; 64 hex characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ref {
    /// The item.
    pub item: ItemId,
    /// What it is.
    pub kind: ItemKind,
    /// Its even number in the session.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub issued_at: i64,
    /// The start of the daemon under which it was sealed.
    pub boot: BootId,
    /// SHA-256 of its body.
    pub digest: Digest,
    /// The seal.
    pub seal: Digest,
}

/// A body with the ref that vouches for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed<T> {
    /// The item's name and seal.
    #[serde(rename = "ref")]
    pub reference: Ref,
    /// The body.
    pub body: T,
}

/// Everything that a seal binds, beside the session's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuple {
    /// The session.
    pub session: SessionId,
    /// The item.
    pub item: ItemId,
    /// What it is.
    pub kind: ItemKind,
    /// Its number.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub issued_at: i64,
    /// The start of the daemon.
    pub boot: BootId,
    /// The turn that made it, if one did.
    pub turn: Option<TurnId>,
    /// The call whose result it is.
    pub call: Option<CallId>,
    /// The tool of that call.
    pub tool: Option<String>,
    /// Agents it passed through.
    pub hop: u32,
    /// Who wrote it: canonical JSON of its spans.
    pub authors: String,
    /// Its labels, in the order of [`Label::ALL`].
    pub labels: Vec<Label>,
    /// SHA-256 of the body.
    pub digest: Digest,
}

/// The canonical bytes that are sealed: an array of fixed length, so that no two tuples have the same bytes.
pub fn tuple(t: &Tuple) -> Vec<u8> {
    let text = |value: Option<String>| value.unwrap_or_default();
    crate::canonical::to_vec(&serde_json::json!([
        RECIPE,
        t.session,
        t.item,
        t.kind,
        t.seq,
        t.issued_at,
        t.boot,
        text(t.turn.map(|id| id.to_string())),
        text(t.call.map(|id| id.to_string())),
        text(t.tool.clone()),
        t.hop,
        t.authors,
        t.labels,
        t.digest,
    ]))
}
