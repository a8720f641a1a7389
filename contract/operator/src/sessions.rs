//! Sessions with the data of the host and of the kernel: `/v1/sessions`, `/v1/status`.
//!
//! Never a word of a conversation, except its title for its own person. See [`crate::Transcript`] for those.

use super::jail::JailReport;
use ironclaw_contract::ids::{PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::GuardMode;
use serde::{Deserialize, Serialize};

/// An agent whose guard mode is not `enforce`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LoweredGuard {
    /// The name of the agent.
    pub agent: String,
    /// `dangerous_warn` or `dangerous_off`.
    pub mode: GuardMode,
}

ironclaw_contract::words! {
    /// The phase of a session.
    pub enum SessionPhase {
        /// It has no process.
        Asleep = "asleep",
        /// It waits for a slot, or for room.
        Waiting = "waiting",
        Starting = "starting",
        Awake = "awake",
        Stopping = "stopping",
        /// It failed too often, and a person must release it.
        Parked = "parked",
        /// Its sandbox broke the contract, and a person must release it.
        Quarantined = "quarantined",
    }
}

/// One session, with the data of the host and of the kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionStatus {
    /// `ses_…`.
    pub id: SessionId,
    /// Name of the agent.
    pub agent: String,
    /// Its phase.
    pub state: SessionPhase,
    /// The reason why it is parked, quarantined or waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The guard mode of the agent.
    pub mode: GuardMode,
    /// Channel and address, e.g. `loopback:per_…`.
    pub origin: String,
    /// Messages that wait or are in the open turn.
    pub waiting: u64,
    /// Process id of the sandbox, outside its namespace; null when asleep.
    pub pid: Option<u32>,
    /// The kernel's report about the sandbox; null when asleep.
    pub jail: Option<JailReport>,
    /// The jailed process that reads its outbound queue; null when asleep.
    pub reader: Option<ReaderStatus>,
}

/// The reader of an awake session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReaderStatus {
    /// Process id outside its namespace.
    pub pid: u32,
    /// The kernel's report about it.
    pub jail: JailReport,
}

/// One session in a list: `GET /v1/sessions`; `GET /v1/sessions/{id}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Session {
    /// Its status, as in `GET /v1/status`.
    #[serde(flatten)]
    pub status: SessionStatus,
    /// The person who began it, `per_…`; absent if the host recorded none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
    /// The name of that person, or the id after a removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person_name: Option<String>,
    /// The name of its channel; `agent` for the messages of another agent.
    #[serde(default)]
    pub channel: String,
    /// The name of the agent whose messages it gets; absent for a session of people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// The first words of its oldest kept message; only in an answer to the person of the session. `(schedules)` for the runs of schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The thread of its origin; empty for the one without a name.
    #[serde(default)]
    pub thread: String,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339, of the last message or launch.
    pub last_active_at: String,
    /// The same time in milliseconds since the epoch.
    #[serde(default)]
    pub last_used_ms: i64,
    /// The number of its sealed items.
    pub items: u64,
    /// The open turn, if any.
    pub turn_id: Option<TurnId>,
    /// The number of launches that failed in a row.
    pub failures: u32,
}
