//! The rows of calls, and the words of their columns.
//!
//! Has no SQL: see [`super`].

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The state of a recorded call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// It is permitted and has no result yet.
    Permitted,
    /// It waits for people.
    Asked,
    /// The host runs it; its effect may have happened.
    Running,
    /// It was refused.
    Refused,
    /// It did what it was made for.
    Done,
    /// It ended with an error, or had no effect.
    Failed,
    /// Its message waits for its delivery.
    Queued,
    /// Its effect may have happened.
    Unknown,
    /// Its turn ended before it ran.
    Void,
}

impl CallState {
    /// All states.
    const ALL: [Self; 9] = [
        Self::Permitted,
        Self::Asked,
        Self::Running,
        Self::Refused,
        Self::Done,
        Self::Failed,
        Self::Queued,
        Self::Unknown,
        Self::Void,
    ];

    /// Returns its name, as stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permitted => "permitted",
            Self::Asked => "asked",
            Self::Running => "running",
            Self::Refused => "refused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Queued => "queued",
            Self::Unknown => "unknown",
            Self::Void => "void",
        }
    }
}

impl FromStr for CallState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or(())
    }
}

ironclaw_state::stored_by_name!(CallState);

/// The end of a call that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// It did what it was made for.
    Done,
    /// It ended with an error, or had no effect.
    Failed,
    /// Its message waits for its delivery.
    Queued,
    /// Its effect may have happened.
    Unknown,
}

impl CallOutcome {
    /// Returns the outcome of a call about which only its success is known.
    pub const fn by_success(ok: bool) -> Self {
        if ok { Self::Done } else { Self::Failed }
    }

    /// Returns the outcome of a call without an answer.
    pub const fn without_answer(may_have_arrived: bool) -> Self {
        if may_have_arrived { Self::Unknown } else { Self::Failed }
    }

    /// Returns the state of a call that ended so.
    pub const fn state(self) -> CallState {
        match self {
            Self::Done => CallState::Done,
            Self::Failed => CallState::Failed,
            Self::Queued => CallState::Queued,
            Self::Unknown => CallState::Unknown,
        }
    }

    /// Returns its name for people and in the ledger.
    pub const fn name(self) -> &'static str {
        self.state().name()
    }
}

/// The place where a permitted call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// The sandbox runs it and reports the result.
    Local,
    /// The host runs it, after the sandbox wrote the call as a row.
    Row,
    /// The host runs it in the transaction that records the call, because it concerns the host's own record alone.
    Host,
    /// The host runs it when the sandbox asks for its result.
    Await,
}

impl Runs {
    /// Returns its name, as stored.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Row => "row",
            Self::Host => "host",
            Self::Await => "await",
        }
    }
}

/// A recorded call's row.
#[derive(Debug, Clone)]
pub struct CallRow {
    /// Its id.
    pub id: CallId,
    /// Its session.
    pub session: SessionId,
    /// Its turn.
    pub turn: TurnId,
    /// The output that names it.
    pub output: ItemId,
    /// The tool.
    pub tool: String,
    /// The place where it runs; `None` for a refused call.
    pub runs: Option<Runs>,
    /// Digest of its arguments.
    pub digest: Digest,
    /// Its state.
    pub state: CallState,
    /// Its result, once there is one.
    pub result: Option<ItemId>,
}
