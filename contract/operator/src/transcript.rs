//! A conversation from the record: `GET /v1/sessions/{id}/transcript`, and the conversations of the caller with an agent.
//!
//! Never a statement of a sandbox: authors, labels and outcomes come from the host. See [`ironclaw_contract::seam::message`] for spans.

use super::calls::CallState;
use super::channels::Receipt;
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use serde::{Deserialize, Serialize};

pub use ironclaw_contract::seam::seal::{ItemKind, Label};

ironclaw_contract::words! {
    /// The author of a line of a conversation.
    pub enum Speaker {
        Person = "person",
        Agent = "agent",
        Host = "host",
    }
}

/// A page of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Transcript {
    /// `ses_…`.
    pub session_id: SessionId,
    /// Name of the agent.
    pub agent: String,
    /// Its items, in the order of their numbers.
    pub items: Vec<TranscriptItem>,
    /// True if there are more after the last. Its number as `after_seq` requests them.
    pub more: bool,
}

/// One sealed item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TranscriptItem {
    /// `itm_…`.
    pub id: ItemId,
    /// Its even number in the session.
    pub seq: u64,
    /// Its kind.
    pub kind: ItemKind,
    /// The side that its first words are from.
    pub speaker: Speaker,
    /// RFC 3339, milliseconds.
    pub at: String,
    /// The turn that made it or answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The authors of the parts of the text, in order; the parts cover the text.
    pub spans: Vec<TranscriptSpan>,
    /// The labels that its seal binds.
    pub labels: Vec<Label>,
    /// Its text.
    pub text: String,
    /// SHA-256 of its body, as in the ledger.
    pub digest: String,
    /// For an output: the calls of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TranscriptCall>,
    /// For a result: its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// For a result: its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// For a result: true if the tool succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// For an answer or a notice: its receipt, or `unsaid` if it has no delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// For a summary: the first and the last number of the items that it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<[u64; 2]>,
}

/// A part of a text by one author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TranscriptSpan {
    /// E.g. `person per_…`, `file notes.md`, `model`, `tool read_file`, `host`.
    pub author: String,
    /// Its length in bytes of the text.
    pub bytes: usize,
}

/// A call in an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TranscriptCall {
    /// `call_…`.
    pub call_id: CallId,
    /// The tool, as the model named it.
    pub tool: String,
    /// Canonical JSON.
    pub arguments: String,
    /// Its state; `unknown` if the record no longer has the call.
    pub state: CallState,
}

/// The unread replies of one conversation of the caller: an entry of `GET /v1/unread`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnreadReplies {
    /// Always `replies`: in the inbox they are beside entries of other types.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// Name of the agent.
    pub agent: String,
    /// `ses_…`.
    pub session_id: SessionId,
    /// Name of the thread; null for the conversation without a name.
    pub thread: Option<String>,
    /// Their number.
    pub count: u64,
    /// RFC 3339, of the newest one.
    pub newest_at: String,
}

/// A reply that no client of its person got before: an entry of `POST /v1/agents/{agent}/unread`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnreadReply {
    /// `ses_…`.
    pub session_id: SessionId,
    /// Name of the thread; null for the conversation without a name.
    pub thread: Option<String>,
    /// Name of the schedule whose run it answers; null for the answer to a person.
    pub schedule: Option<String>,
    /// RFC 3339.
    pub at: String,
    /// The agent or the host.
    pub author: Speaker,
    /// The text.
    pub text: String,
    /// The text as a terminal shows it, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_as: Option<String>,
}

/// `POST /v1/agents/{agent}/unread`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReadReplies {
    /// The oldest first.
    pub replies: Vec<UnreadReply>,
    /// True if there are more.
    #[serde(default)]
    pub more: bool,
}

/// `GET /v1/agents/{agent}/threads`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Threads {
    /// The last used first.
    pub threads: Vec<Thread>,
    /// True if there are more.
    #[serde(default)]
    pub more: bool,
}

/// One conversation of the caller with an agent: `GET /v1/agents/{agent}/threads`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Thread {
    /// Name of the thread; null for the conversation without a name.
    pub thread: Option<String>,
    /// The first words of its oldest kept message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `ses_…`.
    pub session_id: SessionId,
    /// RFC 3339, of the last launch or answer.
    pub last_active_at: String,
}

/// `GET /v1/agents/{agent}/history?limit=N`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct History {
    /// The newest lines, the oldest of them first.
    pub lines: Vec<HistoryLine>,
    /// True if there are older ones.
    #[serde(default)]
    pub more: bool,
}

/// One line of a conversation: `GET /v1/agents/{agent}/history?limit=N`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryLine {
    /// RFC 3339.
    pub at: String,
    /// Its author.
    pub author: Speaker,
    /// The text.
    pub text: String,
    /// The text as a terminal shows it, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_as: Option<String>,
}
