//! Approval requests: calls that wait for a person, and the inbox of requests, questions and changes.
//!
//! Plain data. A decision names the digest of the page that the person was shown: [`Decision`](super::changes::Decision).

use super::bound::Bound;
use super::calls::CallState;
use super::denial::DenialCode;
use super::files::SentFile;
use super::judgement::Class;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ChangeId, ItemId, MessageId, QuestionId, RequestId, SessionId, TurnId};
use ironclaw_contract::seam::seal::Label;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

ironclaw_contract::words! {
    /// The status of an approval request.
    pub enum RequestStatus {
        /// It waits for people.
        Pending = "pending",
        /// Every reason has its yes; the call runs next.
        Approved = "approved",
        /// The approvals are used up, and the call runs.
        Running = "running",
        /// The call did what it was made for.
        Done = "done",
        /// The call was made, and ended with an error.
        Failed = "failed",
        /// The message of the call waits for its delivery.
        Queued = "queued",
        /// A person said no.
        Rejected = "rejected",
        /// It was not decided in time, or not used in time.
        Expired = "expired",
        /// It can no longer be decided.
        Withdrawn = "withdrawn",
        /// The approvals are used up, and the outcome of the call is unknown.
        Unknown = "unknown",
    }

    /// The status of a question.
    pub enum QuestionStatus {
        /// It waits for its person.
        Waiting = "waiting",
        Answered = "answered",
        /// Its person or an owner rejected it, or it can no longer be answered.
        Cancelled = "cancelled",
        /// It was not answered in time.
        Expired = "expired",
        /// The record was restored, so it may have been answered in the other history.
        Unknown = "unknown",
    }

    /// A person who can remove a reason.
    pub enum Decider {
        /// The person of the turn, if their role may use the class.
        Principal = "principal",
        /// People with the roles of the policy.
        Policy = "policy",
    }

    /// The source of a value.
    pub enum ValueSource {
        /// The person of the turn typed it in this task.
        Typed = "typed",
        /// A server returned it at a result path.
        Returned = "returned",
        Model = "model",
    }

    /// The type of an entry of the inbox.
    pub enum EntryType {
        Call = "call",
        Question = "question",
        Change = "change",
    }
}

/// A reason why a call needs a person, and the people who can remove it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RequestReason {
    /// The code of the stage that found it.
    pub reason: DenialCode,
    /// A sentence about the code.
    pub meaning: String,
    /// `principal`: the person of the turn. `policy`: people with the roles of the policy.
    pub decider: Decider,
    /// The arguments that it concerns; empty for the whole call.
    pub arguments: Vec<String>,
}

/// An argument that leaves, with the origin of its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ArgumentSource {
    /// The name of the argument.
    pub argument: String,
    /// The origin of its value.
    pub origin: ValueOrigin,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ValueOrigin {
    /// `typed` by the person of the turn in this task, or written by the `model`.
    pub source: ValueSource,
    /// The labels of the value; none for a request of an earlier version.
    pub labels: Vec<Label>,
    /// The item that has the value: the message in which the person typed it, or the output of the model.
    pub item: Option<ItemId>,
    /// The id of a value that a person typed, such as `m12.email.1`, if the call takes it as this value.
    pub handle: Option<String>,
}

/// The id of an entry of the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum EntryId {
    /// A call waits.
    Call(RequestId),
    /// A question waits.
    Question(QuestionId),
    /// A change waits.
    Change(ChangeId),
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(id) => id.fmt(f),
            Self::Question(id) => id.fmt(f),
            Self::Change(id) => id.fmt(f),
        }
    }
}

/// An entry of the inbox: a call, a question or a change that waits for people. Also a question of `GET /v1/questions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InboxEntry {
    /// `req_…`, `qst_…` or `chg_…`.
    pub id: EntryId,
    /// Its type.
    #[serde(rename = "type")]
    pub entry_type: EntryType,
    /// The name of the agent; null for a change that concerns none.
    pub agent: Option<String>,
    /// Its status; of a question `waiting answered cancelled expired unknown`.
    pub status: String,
    /// The effect in the words of the host; for a change its kind.
    pub effect: String,
    /// The arguments of a call; null for a change, whose page has its values.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub arguments: Option<Value>,
    /// The source of each value that leaves.
    pub origins: Vec<ArgumentSource>,
    /// The reasons why it needs people.
    pub reasons: Vec<RequestReason>,
    /// SHA-256 of the page, 64 hex characters; of a question, of its text and options as canonical JSON.
    pub shown_digest: Digest,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; without a decision it expires then.
    pub expires_at: String,
    /// The places in which people were told.
    pub told: Vec<String>,
    /// True if the caller may decide or answer.
    pub yours: bool,
    /// True if the caller may reject it, or withdraw it as its requester.
    #[serde(default)]
    pub may_reject: bool,
    /// The session of a question; absent for a call and a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The question in the words of the agent; absent if it cannot be read, and for a call and a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The answers to choose from, in the words of the agent; the first one has the number 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// True if the person may answer with a text of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_text: Option<bool>,
}

/// `GET /v1/inbox`, and `GET /v1/questions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Inbox {
    /// Those that end soonest first.
    pub entries: Vec<InboxEntry>,
    /// True if there are more.
    #[serde(default)]
    pub more: bool,
}

/// `GET /v1/requests?status=S&agent=A`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallRequests {
    /// First those that wait, the one that ends soonest first, and then the others, the oldest first.
    pub requests: Vec<CallRequest>,
    /// True if there are more.
    #[serde(default)]
    pub more: bool,
}

/// The body of `POST /v1/agents/{agent}/requests/reset`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRequestReset {
    /// A person by name or id, whose requests no longer count. Without it: of a member their own, and of an owner or admin those of all
    /// people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
}

/// The requests of an agent that no longer count against a bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RequestReset {
    /// The name of the agent.
    pub agent: String,
    /// The name of the person; null for all people.
    pub person: Option<String>,
    /// The number of requests that counted before.
    pub requests: u64,
}

/// The body of `POST /v1/questions/{id}/answer`: either the number of an option, or a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAnswer {
    /// The number of an option, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<u32>,
    /// A text, at most 8000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The way of a question from the message that led to it to its end: `GET /v1/questions/{id}/why`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionWhy {
    /// `qst_…`.
    pub id: QuestionId,
    /// The name of the agent.
    pub agent: String,
    /// The name of the person who can answer.
    pub person: String,
    /// Its conversation.
    pub session_id: SessionId,
    /// The message on which the agent worked when it asked.
    pub message_id: MessageId,
    /// The turn that asked.
    pub turn_id: TurnId,
    /// The call that asked.
    pub call_id: CallId,
    /// Its status.
    pub status: QuestionStatus,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; without an answer it expires then.
    pub expires_at: String,
    /// RFC 3339; null while it waits.
    pub ended_at: Option<String>,
    /// The name of the person who answered or cancelled it; null if the host ended it.
    pub ended_by: Option<String>,
    /// The reason of a cancellation.
    pub reason: Option<String>,
    /// The message with the answer.
    pub answer: Option<MessageId>,
    /// A sentence about its status.
    pub summary: String,
}

/// An approval request of a call: `GET /v1/requests/{id}`, and the answer of each decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallRequest {
    /// `req_…`.
    pub id: RequestId,
    /// The name of the agent.
    pub agent: String,
    /// Its status.
    pub status: RequestStatus,
    /// The call that runs after the approvals.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The class of the call.
    pub class: Class,
    /// The session.
    pub session_id: SessionId,
    /// The turn that asked.
    pub turn_id: TurnId,
    /// The message on which the turn worked.
    pub message_id: MessageId,
    /// The name of the person on whose behalf the turn works.
    pub requested_by: String,
    /// The effect in the words of the host.
    pub effect: String,
    /// The arguments exactly as hashed; null if the caller may not see them, or the conversation was erased.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub arguments: Option<Value>,
    /// The source of each value that leaves.
    pub origins: Vec<ArgumentSource>,
    /// The reasons why it needs people.
    pub reasons: Vec<RequestReason>,
    /// The page: lines of printable characters, each ended by a line feed.
    pub shown: String,
    /// SHA-256 of `shown`, 64 hex characters.
    pub shown_digest: Digest,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; without a decision it expires then.
    pub expires_at: String,
    /// The places in which people were told.
    pub told: Vec<String>,
    /// True if the caller may decide now.
    pub yours: bool,
    /// The outcome in the words of the host, or the reason of the person who rejected it.
    pub outcome: Option<String>,
    /// The request is the n-th of this number of requests of one model output.
    pub position: u32,
    /// The number of requests of that output.
    pub of: u32,
}

/// A part of the diff of a push: `GET /v1/requests/{id}/diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PushDiff {
    /// SHA-256 of the whole diff; the arguments and the page of the call name it.
    pub digest: Digest,
    /// Lines of printable characters, each ended by a line feed. `=` begins a file, `@` a place in it, `-` and `+` changed lines.
    pub text: String,
    /// The first line of the next part; null at the end.
    pub next: Option<u64>,
    /// Lines that no part has, because the diff is too long. The digest covers them.
    pub left_off: u64,
}

/// A call of a message, as the view of the message shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageCall {
    /// `call_…`.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// Its class; null for a call that was denied before it had one.
    pub class: Option<Class>,
    /// Its state.
    pub status: CallState,
    /// The code of a refused call, or of the first reason of one that waits.
    pub code: Option<DenialCode>,
    /// The bound by which it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The approval request of a call that waits or waited for a person.
    pub request: Option<RequestId>,
    /// The file of a call of `send_file`, as long as the host has its copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SentFile>,
}
