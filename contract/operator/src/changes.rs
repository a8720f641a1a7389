//! Changes of settings and rights that are proposed: `POST /v1/changes`.
//!
//! Plain data. A proposed change waits for people: see [`super::waiting`], and [`ironclaw_contract::seam::change`] for the kinds.

pub use ironclaw_contract::seam::change::{ChangeKind, Payload};

use super::waiting::WaitingStatus;
use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::ids::ChangeId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of a payload; each kind has further bounds.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

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
    pub status: WaitingStatus,
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
