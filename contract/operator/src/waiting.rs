//! What waits for people, from the first page to the end: `/v1/waiting`. A call, a question and a change are its kinds.
//!
//! Plain data. A yes names the digest of the page that the person was shown. See [`super::requests`] for the parts of a call.

pub use ironclaw_contract::canonical::Digest;

use super::judgement::Class;
use super::requests::{ArgumentSource, RequestReason};
use ironclaw_contract::ids::{
    AgentId, CallId, ChangeId, MessageId, PersonId, QuestionId, RequestId, SessionId, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

ironclaw_contract::words! {
    /// The status of what waits for people.
    pub enum WaitingStatus {
        /// It waits for people.
        Pending = "pending",
        /// It was pending or approved in a record that was restored, and may have ended since.
        Doubtful = "doubtful",
        /// It has its approvals, and its effect comes next.
        Approved = "approved",
        /// The approvals are used up, and the call runs.
        Running = "running",
        /// The change is applied, the call was made, or the question is answered.
        Done = "done",
        /// The call was made, and its message waits for its delivery.
        Queued = "queued",
        /// It was approved, and its effect failed. A change that failed changed nothing, unless the outcome says that conversations are
        /// erased.
        Failed = "failed",
        /// A person said no.
        Rejected = "rejected",
        /// It was not decided in time, or its approvals were not used in time.
        Expired = "expired",
        /// It can no longer be decided.
        Withdrawn = "withdrawn",
        /// The approvals are used up, and the outcome of the call is unknown.
        Unknown = "unknown",
    }

    /// The kind of a requester.
    pub enum RequesterKind {
        /// An agent asks, on behalf of a person.
        Agent = "agent",
        Person = "person",
    }
}

impl WaitingStatus {
    /// The statuses of what waits for people.
    pub const OPEN: [Self; 2] = [Self::Pending, Self::Doubtful];

    /// Returns whether it waits for people.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Doubtful => true,
            Self::Approved | Self::Running | Self::Done | Self::Queued | Self::Failed => false,
            Self::Rejected | Self::Expired | Self::Withdrawn | Self::Unknown => false,
        }
    }

    /// Returns whether people decided, and the effect is not made yet.
    pub const fn is_underway(self) -> bool {
        matches!(self, Self::Approved | Self::Running)
    }
}

/// Declares the kinds, each with its id and its word.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($id:ident) = $word:literal,)+) => {
        ironclaw_contract::words! {
            /// A kind of what waits for people.
            pub enum WaitingKind {
                $($(#[$doc])* $kind = $word,)+
            }
        }

        impl WaitingKind {
            /// Returns the prefix of its ids.
            pub const fn prefix(self) -> &'static str {
                match self {
                    $(Self::$kind => $id::PREFIX,)+
                }
            }
        }

        /// The id of what waits for people. Its prefix tells the kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(untagged)]
        pub enum WaitingId {
            $($(#[$doc])* $kind($id),)+
        }

        impl WaitingId {
            /// Returns its kind.
            pub const fn kind(self) -> WaitingKind {
                match self {
                    $(Self::$kind(_) => WaitingKind::$kind,)+
                }
            }
        }

        impl fmt::Display for WaitingId {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind(id) => id.fmt(f),)+
                }
            }
        }

        impl FromStr for WaitingId {
            type Err = NoWaitingId;

            fn from_str(text: &str) -> Result<Self, NoWaitingId> {
                $(if let Ok(id) = text.parse() {
                    return Ok(Self::$kind(id));
                })+
                Err(NoWaitingId)
            }
        }

        $(impl From<$id> for WaitingId {
            fn from(id: $id) -> Self {
                Self::$kind(id)
            }
        })+
    };
}

kinds! {
    /// A call of a tool.
    Call(RequestId) = "call",
    /// A question of an agent.
    Question(QuestionId) = "question",
    /// A change of a setting or a right.
    Change(ChangeId) = "change",
}

/// A text that is the id of no kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a call, a question or a change that waits: expected `req_`, `qst_` or `chg_` and 26 characters")]
pub struct NoWaitingId;

/// The number of those of a type that wait for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingCount {
    /// The type.
    #[serde(rename = "type")]
    pub kind: WaitingKind,
    /// At least 1.
    pub count: u64,
}

/// One of a list of what waits or waited for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingEntry {
    /// `req_…`, `qst_…` or `chg_…`.
    pub id: WaitingId,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: WaitingKind,
    /// Its status.
    pub status: WaitingStatus,
    /// The name of the agent, or its id once the agent is removed; null for a change that concerns none.
    pub agent: Option<String>,
    /// The tool of a call or a question, and the kind of a change.
    pub subject: String,
    /// The effect in the words of the host.
    pub effect: String,
    /// The words of the agent that asks a question; absent if they cannot be read, and for the other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The reasons why a call needs people.
    pub reasons: Vec<RequestReason>,
    /// The requester.
    pub requested_by: Requester,
    /// The place in a conversation at which an agent asked; null if a person asked.
    pub origin: Option<Origin>,
    /// SHA-256 of the page, 64 hex characters; after a yes, of the page that the person was shown.
    pub shown_digest: Digest,
    /// The approvals so far, and the number of approvals that it needs.
    pub approvals: Approvals,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339; without a decision it expires then.
    pub expires_at: String,
    /// The person who decided or answered last; null if there is none.
    pub decided_by: Option<NamedPerson>,
    /// RFC 3339; null before a decision.
    pub decided_at: Option<String>,
    /// RFC 3339; null before its end.
    pub ended_at: Option<String>,
    /// The outcome in the words of the host, or the reason of the person who rejected it.
    pub outcome: Option<String>,
    /// The places in which people were told.
    pub told: Vec<String>,
    /// True if the caller may decide or answer now.
    pub yours: bool,
    /// True if the caller may reject it now, or withdraw it as its requester.
    pub may_reject: bool,
    /// What only its kind has; null if the caller may not see it, and in a list also for a change.
    pub details: Option<Details>,
}

/// What waits or waited for people, with its page: `GET /v1/waiting/{id}`, and the answer of each decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Waiting {
    /// What a list has of it.
    #[serde(flatten)]
    pub entry: WaitingEntry,
    /// The page: lines of printable characters, each ended by a line feed.
    pub shown: String,
    /// A sentence about its status.
    pub summary: String,
}

/// What only one kind has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Details {
    /// Of a call.
    Call(CallDetails),
    /// Of a question.
    Question(QuestionDetails),
    /// Of a change.
    Change(ChangeDetails),
}

/// What only a call has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallDetails {
    /// The class of the call.
    pub class: Class,
    /// The arguments exactly as hashed.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub arguments: Value,
    /// The source of each value that leaves.
    pub origins: Vec<ArgumentSource>,
    /// It is the n-th of this number of calls of one model output that wait or waited.
    pub position: u32,
    /// The number of these calls.
    pub of: u32,
    /// The calls of these that one page can show and one yes can approve, in their order and this one among them; empty if it is alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<RequestId>,
    /// What a yes can cover beside the call; absent for nothing, and for a call that waits together with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_answer: Option<ReadsUntilAnswer>,
}

/// Further calls that a person can permit with the yes to a call: tools of a server that only read, until the turn ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReadsUntilAnswer {
    /// The name of the server.
    pub server: String,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The bound on these calls.
    pub count: u32,
}

/// The page of several calls of one output: `GET /v1/waiting/{id}/together`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingTogether {
    /// The calls on the page, in their order.
    pub calls: Vec<RequestId>,
    /// The page: lines of printable characters, each ended by a line feed.
    pub shown: String,
    /// SHA-256 of the page, 64 hex characters.
    pub shown_digest: Digest,
    /// What a yes can cover beside the calls; absent for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_answer: Option<ReadsUntilAnswer>,
}

/// What only a question has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionDetails {
    /// The answers to choose from, in the words of the agent; the first one has the number 1.
    pub options: Vec<String>,
    /// True if the person may answer with a text of their own.
    pub free_text: bool,
    /// The message with the answer.
    pub answer: Option<MessageId>,
}

/// What only a change has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangeDetails {
    /// The values at the time of the request, in the shape of `after`.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub before: Value,
    /// The new values: the payload of its kind, completed by the host.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub after: Value,
    /// The reason in the words of the requester.
    pub reason: String,
}

/// The requester of what waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Requester {
    /// An agent or a person.
    pub kind: RequesterKind,
    /// `agt_…` or `per_…`.
    pub id: RequesterId,
    /// The name of the agent or the person.
    pub name: String,
    /// The person on whose behalf an agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<NamedPerson>,
}

/// The id of a requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum RequesterId {
    /// An agent asks.
    Agent(AgentId),
    /// A person asks.
    Person(PersonId),
}

/// A person with the name, or with the id in its place once the person is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NamedPerson {
    /// `per_…`.
    pub id: PersonId,
    /// The name.
    pub name: String,
}

/// The place in a conversation at which an agent asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Origin {
    /// `ses_…`.
    pub session: SessionId,
    /// `trn_…`: the newest turn that asked.
    pub turn: TurnId,
    /// `msg_…`: the message whose task it is.
    pub message: Option<MessageId>,
    /// `call_…`: the newest call that asked.
    pub call: CallId,
}

/// The approvals so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Approvals {
    /// `per_…` of each approver.
    pub by: Vec<PersonId>,
    /// The number of different people who must approve.
    pub needed: u32,
}

/// `GET /v1/waiting?type=T&status=S&agent=A&own=B&limit=N`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingList {
    /// First what waits: what the caller may decide before what others decide, and what ends soonest before the rest. Then the others, the
    /// newest first.
    pub entries: Vec<WaitingEntry>,
    /// True if there are more.
    #[serde(default)]
    pub more: bool,
}

/// The decision of a person: `POST /v1/waiting/{id}/decision`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Decision {
    /// Approve exactly the page with this SHA-256; the host refuses another digest.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    Approve(Digest),
    /// Approve exactly the page with this SHA-256, and the tools that it names under `UNTIL THE ANSWER`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    ApproveUntilAnswer(Digest),
    /// Approve each call of the page of several calls with this SHA-256.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    ApproveTogether(Digest),
    /// Reject each call of that page, with a reason for the agent; the reason may be empty.
    RejectTogether(String),
    /// Reject it, or withdraw it as its requester, with a reason for the requester; the reason may be empty.
    Reject(String),
    /// Answer a question.
    Answer(NewAnswer),
}

/// The answer to a question: either the number of an option, or a text.
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
