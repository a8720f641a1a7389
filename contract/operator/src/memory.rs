//! The memory of an agent: `/v1/agents/{agent}/memory`.
//!
//! Never shows a note without its author and its labels. See [`crate::Note`].

use ironclaw_contract::ids::{MemoryId, PersonId, SessionId};
use ironclaw_contract::seam::seal::Label;
use serde::{Deserialize, Serialize};

/// A note that an agent keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Note {
    /// `mem_…`.
    pub id: MemoryId,
    /// The time at which it was kept, RFC 3339.
    pub at: String,
    /// `model`, or `person per_…`.
    pub author: String,
    /// The person on whose behalf it was kept, `per_…`.
    pub principal: PersonId,
    /// The session in which it was kept, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Labels of the context in which it was written.
    pub labels: Vec<Label>,
    /// Its words.
    pub text: String,
}

/// `GET /v1/agents/{agent}/memory`: the newest notes, or those that match a query best.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Notes {
    /// At most 200 notes.
    pub notes: Vec<Note>,
    /// True if there are more.
    pub more: bool,
}

/// `POST /v1/agents/{agent}/memory`: a note by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewNote {
    /// 1 to 4,096 bytes.
    pub text: String,
}
