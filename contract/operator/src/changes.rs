//! Changes of settings and rights, with the text for the deciding person: `/v1/changes`.
//!
//! Never a decision without the digest of the text that the person was shown. See [`ironclaw_contract::seam::change`].

pub use ironclaw_contract::canonical::Digest;
pub use ironclaw_contract::seam::change::{ChangeKind, Payload};

use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of a payload; each kind has further bounds.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

ironclaw_contract::words! {
    /// The status of a change.
    pub enum ChangeStatus {
        /// It waits for people.
        Pending = "pending",
        /// Enough people approved; it is about to be applied.
        Approved = "approved",
        Applied = "applied",
        /// A person said no.
        Rejected = "rejected",
        /// No person decided in time.
        Expired = "expired",
        /// It can no longer be decided: the setting has changed since, or its requester was removed.
        Withdrawn = "withdrawn",
        /// It was approved and failed. Nothing changed, unless the outcome says that conversations are erased.
        Failed = "failed",
        /// It was active in a record that was restored, so a person must check it.
        Unknown = "unknown",
    }

    /// The kind of the requester of a change.
    pub enum RequesterKind {
        /// An agent asks, on behalf of a person.
        Agent = "agent",
        Person = "person",
    }
}

impl ChangeStatus {
    /// Returns whether a person can still decide.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::Unknown => true,
            Self::Approved | Self::Applied | Self::Rejected | Self::Expired | Self::Withdrawn | Self::Failed => false,
        }
    }
}

/// One change with all fields: `GET /v1/changes/{id}`, and the answer of each decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Change {
    /// `chg_…`.
    pub id: ChangeId,
    /// Its kind.
    pub kind: ChangeKind,
    /// The agent that it concerns; null if it concerns none.
    pub agent: Option<ChangedAgent>,
    /// Its status.
    pub status: ChangeStatus,
    /// The values at the time of the request, in the shape of `after`.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub before: Value,
    /// The new values: the payload of its kind, completed by the host.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub after: Value,
    /// The requester.
    pub requested_by: Requester,
    /// The session, turn and call in which an agent asked; null if a person asked.
    pub origin: Option<ChangeOrigin>,
    /// The reason in the words of the requester.
    pub reason: String,
    /// SHA-256 of `shown`, 64 hex characters; after a decision, of the text that the deciding person was shown.
    pub shown_digest: Digest,
    /// `per_…` of the person who decided last; null before a decision.
    pub decided_by: Option<PersonId>,
    /// RFC 3339.
    pub decided_at: Option<String>,
    /// RFC 3339.
    pub applied_at: Option<String>,
    /// The outcome in the host's words, or the reason of the person who rejected it.
    pub outcome: Option<String>,
    /// The review page: lines of printable characters, each ended by a line feed.
    #[serde(default)]
    pub shown: String,
    /// The approvals so far, and the number of approvals that it needs.
    #[serde(default)]
    pub approvals: Approvals,
    /// RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// RFC 3339; without a decision, the change expires then.
    #[serde(default)]
    pub expires_at: String,
}

/// An agent that a change concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangedAgent {
    /// `agt_…`.
    pub id: AgentId,
    /// Its name, or its id once it is removed.
    pub name: String,
}

/// The requester of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Requester {
    /// An agent or a person.
    pub kind: RequesterKind,
    /// `agt_…` or `per_…`.
    pub id: RequesterId,
    /// The name of the agent or the person.
    pub name: String,
    /// `per_…`: the person on whose behalf an agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<PersonId>,
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

/// The place in a conversation at which an agent asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangeOrigin {
    /// `ses_…`.
    pub session: SessionId,
    /// `trn_…`.
    pub turn: TurnId,
    /// `msg_…`: the first message that the turn answers.
    pub message: Option<MessageId>,
    /// `call_…`.
    pub call: CallId,
}

/// The approvals of a change so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Approvals {
    /// `per_…` of each approver.
    pub by: Vec<PersonId>,
    /// The number of different people who must approve.
    pub needed: u32,
}

/// `GET /v1/changes?status=S&agent=A&limit=N`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Changes {
    /// The newest first; without a status in the request, the oldest first.
    pub changes: Vec<ChangeSummary>,
    /// True if there are more than the limit.
    #[serde(default)]
    pub more: bool,
}

/// One change in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangeSummary {
    /// `chg_…`.
    pub id: ChangeId,
    /// Its kind.
    pub kind: ChangeKind,
    /// The agent that it concerns.
    pub agent: Option<ChangedAgent>,
    /// Its status.
    pub status: ChangeStatus,
    /// The requester.
    pub requested_by: Requester,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// The approvals so far, and the number of approvals that it needs.
    pub approvals: Approvals,
    /// True if it waits and the caller may decide.
    #[serde(default)]
    pub yours: bool,
    /// True if it waits and the caller may reject it, or withdraw it as its requester.
    #[serde(default)]
    pub may_reject: bool,
}

/// `POST /v1/changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewChange {
    /// Its kind.
    pub kind: ChangeKind,
    /// Name or id of the agent; none for `create_agent`, `mcp_register`, `mcp_confirm`, `groups`, and `settings` with `default_model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The new values, in the shape of the kind.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub payload: Payload,
    /// The reason.
    pub reason: String,
}

impl NewChange {
    /// Reads a payload as strictly as the host does, so that the request has exactly the meaning of the written text.
    ///
    /// # Errors
    /// A sentence, for a text that is no JSON, has a duplicate key, is longer than [`PAYLOAD_BYTES_MAX`], or is neither an object nor
    /// a list.
    pub fn read_payload(text: &str) -> Result<Payload, String> {
        let limits = Limits::bytes(PAYLOAD_BYTES_MAX);
        let value: Value = canonical::from_slice(text.as_bytes(), limits).map_err(|why| why.to_string())?;
        Payload::try_from(value).map_err(str::to_owned)
    }
}

/// The answer of `POST /v1/changes`: the change waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubmittedChange {
    /// `chg_…`; a second request for the same change gets the same id while it waits.
    pub id: ChangeId,
    /// `pending`.
    pub status: ChangeStatus,
    /// True if the same change was requested before and still waits.
    #[serde(default)]
    pub again: bool,
    /// True if the caller may approve it.
    #[serde(default)]
    pub yours: bool,
    /// The people who must approve it, in the host's words, such as `an owner or admin of this host`.
    #[serde(default)]
    pub waits_for: String,
}

/// `POST /v1/changes/{id}/approve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Decision {
    /// SHA-256 of the text that the person was shown; the host refuses another digest.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub shown: Digest,
}

/// `POST /v1/changes/{id}/reject`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rejection {
    /// The reason, for the requester; may be empty.
    #[serde(default)]
    pub reason: String,
}
