//! The reload of the settings, and the directories that may be granted to agents.
//!
//! Plain data: the host decides which settings need a restart. See [`crate`].

use ironclaw_contract::canonical::Digest;
use serde::{Deserialize, Serialize};

/// `POST /v1/config/mounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewAllowed {
    /// The absolute path of a directory of the machine, without a link.
    pub directory: String,
    /// The digest of the page of `POST /v1/config/mounts/review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Digest>,
}

/// The answer of `POST /v1/config/reload` and `POST /v1/config/mounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Reloaded {
    /// The settings file that was read; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Names of the settings whose new values are in effect now, such as `mounts.allow`.
    pub applied: Vec<String>,
    /// Names of the settings whose new values take effect at the next start of the host.
    pub restart: Vec<String>,
    /// True if another `policy.toml` is in effect now.
    pub policy_changed: bool,
    /// Rules of the policy that the people of this host cannot meet.
    pub warnings: Vec<String>,
}
