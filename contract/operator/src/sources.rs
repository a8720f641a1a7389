//! What a reply rests on: `GET /v1/sessions/{id}/replies`, `GET /v1/messages/{id}?sources=true`, and `why`.
//!
//! Never says that a reply is true. See [`crate::Transcript`] for the items.

use ironclaw_contract::ids::{ItemId, SessionId, TurnId};
use ironclaw_contract::seam::seal::Label;
use serde::{Deserialize, Serialize};

ironclaw_contract::words! {
    /// The kind of an item that a reply rests on.
    pub enum SourceKind {
        /// A message of a person, an agent or the host.
        Message = "message",
        /// A result that the host recorded. It counts.
        Result = "result",
        /// A file of a directory that the agent can only read. It counts.
        File = "file",
        /// A file that the agent wrote itself, or its writing.
        OwnFile = "own_file",
        /// Notes of the agent.
        Note = "note",
        /// A report of the sandbox about its workspace, or the output of a program in a jail.
        Report = "report",
        /// The acceptance of a request, such as a question.
        Request = "request",
        /// The result of a call that was refused, failed, or has an unknown outcome.
        Failure = "failure",
        /// Words of the model in place of earlier items.
        Summary = "summary",
    }
}

impl SourceKind {
    /// Returns whether a source of this kind counts as a result.
    pub const fn counts(self) -> bool {
        match self {
            Self::Result | Self::File => true,
            Self::Message
            | Self::OwnFile
            | Self::Note
            | Self::Report
            | Self::Request
            | Self::Failure
            | Self::Summary => false,
        }
    }
}

/// An item that was in the context of an output of the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Source {
    /// `itm_…`.
    pub item: ItemId,
    /// Its even number in the session.
    pub seq: u64,
    /// Its kind.
    pub kind: SourceKind,
    /// True if it counts as a result.
    pub counts: bool,
    /// RFC 3339, milliseconds.
    pub at: String,
    /// The authors of its parts, as in a transcript.
    pub authors: Vec<String>,
    /// The same authors for people: names in place of ids.
    pub by: String,
    /// The labels that its seal binds.
    pub labels: Vec<Label>,
    /// For a result: its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For a file: its path, as the agent named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// For a summary: the first and the last number of the items that it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<[u64; 2]>,
}

/// What a reply rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Sources {
    /// The number of sources that count as results; absent if the record does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<u64>,
    /// The items that were in the context of the outputs of its turn, in order; at most 200, the newest ones.
    pub rests_on: Vec<Source>,
    /// The number of older sources that are not listed; they are counted.
    #[serde(default)]
    pub left_off: u64,
    /// False if the record no longer has each item.
    pub is_whole: bool,
    /// One line: `rests on 2 results`, or `rests on no result`.
    pub summary: String,
}

/// A mark of a model at a claim, such as `[G]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClaimMark {
    /// Its first byte in the recorded reply.
    pub at: u64,
    /// The mark as the agent wrote it.
    pub written: String,
    /// The mark as a terminal shows it.
    pub shown: String,
    /// The reason why another one is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The differences between a recorded reply and its form on a terminal; empty for most replies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ShownReply {
    /// The reply as a terminal shows it, if it differs from the recorded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_as: Option<String>,
    /// The marks of the agent at its claims, in order; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<ClaimMark>,
    /// The URLs in the reply that no person typed and no result of the session has, each once; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_urls: Vec<String>,
    /// Lines of the host about the marks, for a client to show below the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A reply of a session, with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionReply {
    /// `itm_…`.
    pub item: ItemId,
    /// Its even number in the session.
    pub seq: u64,
    /// RFC 3339, milliseconds.
    pub at: String,
    /// The turn that made it.
    pub turn_id: Option<TurnId>,
    /// The recorded text.
    pub reply: String,
    /// Its form on a terminal.
    #[serde(flatten)]
    pub shown: ShownReply,
    /// What it rests on.
    #[serde(flatten)]
    pub sources: Sources,
}

/// `GET /v1/sessions/{id}/replies?last=N`: the last replies of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionReplies {
    /// `ses_…`.
    pub session_id: SessionId,
    /// Its last replies, the oldest first.
    pub replies: Vec<SessionReply>,
}
