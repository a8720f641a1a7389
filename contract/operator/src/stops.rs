//! The stop of a turn, the emergency stop, and the number of awake sessions.
//!
//! Plain data: never stops anything itself. See [`crate::Status`].

use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use serde::{Deserialize, Serialize};

/// File in the home that puts the next start of the host into the emergency stop. `ironctl panic` makes it if no host answers.
pub const PANIC_FILE: &str = "panic";

/// Empty file in the home that `ironctl panic` renames to [`PANIC_FILE`] if it cannot make a file: a rename needs no inode.
pub const PANIC_RESERVE_FILE: &str = "panic.reserve";

/// `POST /v1/sessions/{id}/cancel`: a turn that ended with a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Cancelled {
    /// `ses_…`.
    pub session_id: SessionId,
    /// `trn_…`.
    pub turn_id: TurnId,
    /// The messages of the turn, `msg_…`.
    pub messages: Vec<MessageId>,
    /// True if work on the turn had begun.
    pub running: bool,
}

/// The emergency stop in effect: in `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stopped {
    /// RFC 3339.
    pub since: String,
    /// The name of the person who began it, or the file in the home that did.
    pub by: String,
}

/// `POST /v1/panic`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Panicked {
    /// The emergency stop in effect.
    #[serde(flatten)]
    pub stopped: Stopped,
    /// The number of sessions that were awake.
    pub sessions: u64,
    /// True if the host saw the end of all their processes.
    pub gone: bool,
}

/// `POST /v1/resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Resumed {
    /// False if there was no emergency stop.
    pub resumed: bool,
}

/// The numbers of awake and waiting sessions: in `GET /v1/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SlotCounts {
    /// Sessions that are awake, starting or stopping.
    pub awake: u64,
    /// The bound on these sessions.
    pub awake_max: u64,
    /// Sessions that wait for a slot.
    pub waiting: u64,
}
