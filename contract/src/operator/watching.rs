//! Liveness and readiness of a host, for machines that ask.
//!
//! Says nothing else, because these questions need no token. See [`crate::operator`] for `Failure`, which says why the host is
//! not ready.

use serde::{Deserialize, Serialize};

/// The process answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// Always true.
    pub alive: bool,
}

/// The host takes messages and works on them; one that does not answers with a failure and the status 503.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// Always true.
    pub ready: bool,
}
