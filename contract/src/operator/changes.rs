//! Changes of an agent's settings and rights, as the deciding person sees them: `/v1/changes`.
//!
//! Never a way to decide without naming the digest of the text that was shown.

pub use crate::canonical::Digest;
pub use crate::seam::change::{ChangeKind, Payload};

use crate::canonical::{self, Limits};
use crate::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A payload is not longer; each kind has bounds of its own.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// One change, whole: `GET /v1/changes/{id}`, and what each decision answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Change {
    /// `chg_…`.
    pub id: ChangeId,
    /// `persona enabled_tools packages wiring permissions mounts create_agent mcp_access mcp_register settings`.
    pub kind: String,
    /// Whom it concerns; null where it is nobody.
    pub agent: Option<ChangedAgent>,
    /// `pending approved applied rejected expired withdrawn failed unknown`.
    pub status: String,
    /// How it stood when it was asked for, in the shape of `after`.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub before: Value,
    /// What would be set: the payload of its kind, completed by the host.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub after: Value,
    /// Who asks.
    pub requested_by: Requester,
    /// Where an agent asked; null where a person did.
    pub origin: Option<ChangeOrigin>,
    /// Why, in the words of whoever asks.
    pub reason: String,
    /// SHA-256 of `shown`, 64 hex characters; once it is decided, of what whoever decided was shown.
    pub shown_digest: Digest,
    /// `per_…` of who decided it last; null while nobody did.
    pub decided_by: Option<PersonId>,
    /// RFC 3339.
    pub decided_at: Option<String>,
    /// RFC 3339.
    pub applied_at: Option<String>,
    /// What came of it, in the host's words, or why a person said no.
    pub outcome: Option<String>,
    /// What a person is shown who decides: lines of printable characters, each ended by a line feed.
    #[serde(default)]
    pub shown: String,
    /// Who said yes so far, and how many it takes.
    #[serde(default)]
    pub approvals: Approvals,
    /// RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// RFC 3339; undecided until then, it is over.
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

/// Who asks for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Requester {
    /// `agent person`.
    pub kind: String,
    /// `agt_…` or `per_…`.
    pub id: RequesterId,
    /// Its name, or theirs.
    pub name: String,
    /// `per_…`: on whose behalf an agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<PersonId>,
}

/// The id of who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum RequesterId {
    /// An agent asks.
    Agent(AgentId),
    /// A person asks.
    Person(PersonId),
}

/// Where an agent asked.
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

/// Who said yes to a change so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Approvals {
    /// `per_…` of each.
    pub by: Vec<PersonId>,
    /// So many different people have to.
    pub needed: u32,
}

/// `GET /v1/changes?status=S&agent=A&limit=N`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Changes {
    /// The newest first; where no status was asked for, the oldest.
    pub changes: Vec<ChangeSummary>,
    /// Whether there are more than the limit.
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
    pub kind: String,
    /// Whom it concerns.
    pub agent: Option<ChangedAgent>,
    /// Where it stands.
    pub status: String,
    /// Who asks.
    pub requested_by: Requester,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// Who said yes so far, and how many it takes.
    pub approvals: Approvals,
}

/// `POST /v1/changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewChange {
    /// To what.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub kind: ChangeKind,
    /// Name or id of the agent; none for `create_agent`, `mcp_register`, and `settings` with `default_model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What would be set, in the shape of the kind.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub payload: Payload,
    /// Why.
    pub reason: String,
}

impl NewChange {
    /// Reads a payload as strictly as the host does, so that the host is asked for exactly what was written.
    ///
    /// # Errors
    /// A sentence: it is no JSON, has a duplicate key, is longer than [`PAYLOAD_BYTES_MAX`], or no object and no list.
    pub fn read_payload(text: &str) -> Result<Payload, String> {
        let limits = Limits::bytes(PAYLOAD_BYTES_MAX);
        let value: Value = canonical::from_slice(text.as_bytes(), limits).map_err(|why| why.to_string())?;
        Payload::try_from(value).map_err(str::to_owned)
    }
}

/// What `POST /v1/changes` answers: it waits for people now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubmittedChange {
    /// `chg_…`; the same for the same change while it waits.
    pub id: ChangeId,
    /// `pending`.
    pub status: String,
    /// Whether the same was asked for already, and waits.
    #[serde(default)]
    pub again: bool,
}

/// `POST /v1/changes/{id}/approve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Decision {
    /// SHA-256 of the text that the person was shown; another one is refused.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub shown: Digest,
}

/// `POST /v1/changes/{id}/reject`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rejection {
    /// Why, for whoever asked; may be empty.
    #[serde(default)]
    pub reason: String,
}
