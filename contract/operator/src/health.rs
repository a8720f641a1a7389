//! Liveness and readiness of a host, for monitoring.
//!
//! Never has other data, because these requests need no token. [`crate::Failure`] has the reason why a host is not
//! ready.

use serde::{Deserialize, Serialize};

/// The answer of a host that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// Always true.
    pub alive: bool,
}

/// The answer of a host that accepts messages and works on them. Any other host answers with a failure and the status 503.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// Always true.
    pub ready: bool,
}
