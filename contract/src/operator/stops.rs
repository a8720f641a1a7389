//! Stops of a turn or of everything, and how full the host is.
//!
//! Plain data.

use crate::ids::{MessageId, SessionId, TurnId};
use serde::{Deserialize, Serialize};

/// File in the home that asks the next start of a host to start stopped: the way of `ironctl panic` where no host answers.
pub const PANIC_FILE: &str = "panic";

/// Empty file in the home that is renamed to [`PANIC_FILE`] where no file can be made: a rename needs no inode.
pub const PANIC_RESERVE_FILE: &str = "panic.reserve";

/// `POST /v1/sessions/{id}/cancel`: a turn was ended with a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Cancelled {
    /// `ses_…`.
    pub session_id: SessionId,
    /// `trn_…`.
    pub turn_id: TurnId,
    /// The messages that it was to answer, `msg_…`.
    pub messages: Vec<MessageId>,
    /// Whether it was being worked on, and not still to begin.
    pub running: bool,
}

/// That everything is stopped: in `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stopped {
    /// RFC 3339.
    pub since: String,
    /// The name of the person who did it, or the file in the home that asked for it.
    pub by: String,
}

/// `POST /v1/panic`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Panicked {
    /// The stop that lasts now.
    #[serde(flatten)]
    pub stopped: Stopped,
    /// Sessions that were awake.
    pub sessions: u64,
    /// Whether the processes of all of them were seen to be gone.
    pub gone: bool,
}

/// `POST /v1/resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Resumed {
    /// False when nothing was stopped.
    pub resumed: bool,
}

/// How many sessions are awake, and how many want to be: in `GET /v1/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Places {
    /// Awake, starting or stopping.
    pub awake: u64,
    /// As many may be.
    pub awake_max: u64,
    /// Waiting for a place.
    pub waiting: u64,
}
