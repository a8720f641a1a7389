//! The fields that a seal binds, and the ref that names a sealed item on the wire.
//!
//! Never makes or checks a seal: only the host can. The sandbox hands refs back unchanged. See [`crate::seam::socket`].

use super::message::word;
use crate::canonical::Digest;
use crate::ids::{BootId, CallId, ItemId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// First element of every sealed tuple: the recipe and its version.
pub const RECIPE: &str = "ironclaw-seal/2";

word!(/// The kind of an item; an equal body of another kind is another item.
ItemKind {
    /// A message from outside, with its authors.
    Message = "message",
    /// An output of a model.
    Output = "output",
    /// A result of a tool call.
    Result = "result",
    /// A summary of earlier items.
    Summary = "summary",
    /// A text of the host in place of an answer.
    Notice = "notice",
});

word!(/// The origin of the bytes of an item. A label is added and never removed.
Label {
    /// The host itself vouches for it.
    AgentKernel = "AgentKernel",
    /// A person typed it.
    UserSurfaceInput = "UserSurfaceInput",
    /// It fills a slot in a text that a person typed.
    PromptSlotBound = "PromptSlotBound",
    /// An id that a server made in this session.
    SessionResult = "SessionResult",
    /// A leaf value of a structured result.
    StructuredResult = "StructuredResult",
    /// It came from outside: any other result, and every report of a sandbox.
    External = "External",
    /// A model produced it.
    LlmDerived = "LlmDerived",
});

/// The name of one sealed item. `seal` is the HMAC-SHA256 of the host over [`tuple()`], 64 hex characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ref {
    /// The item.
    pub item: ItemId,
    /// Its kind.
    pub kind: ItemKind,
    /// Its even number in the session.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub issued_at: i64,
    /// The start of the daemon during which it was sealed.
    pub boot: BootId,
    /// SHA-256 of its body.
    pub digest: Digest,
    /// The seal.
    pub seal: Digest,
}

/// All fields that a seal binds; the key is the one of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuple {
    /// The session.
    pub session: SessionId,
    /// The item.
    pub item: ItemId,
    /// Its kind.
    pub kind: ItemKind,
    /// Its number.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub issued_at: i64,
    /// The start of the daemon.
    pub boot: BootId,
    /// The turn that made it, if any.
    pub turn: Option<TurnId>,
    /// The call whose result it is, if any.
    pub call: Option<CallId>,
    /// The tool of that call, if any.
    pub tool: Option<String>,
    /// The number of agents that it passed through.
    pub hop: u32,
    /// Its authors: the canonical JSON of its spans.
    pub authors: String,
    /// Its labels, in the order of [`Label::ALL`].
    pub labels: Vec<Label>,
    /// The classes that it asks for and their origin, for a message of a person; otherwise empty.
    pub scope: String,
    /// SHA-256 of the body.
    pub digest: Digest,
}

/// Returns the canonical bytes to seal: an array of fixed length, so that no two tuples have the same bytes.
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
        t.scope,
        t.digest,
    ]))
}
