//! The rows of calls, and the words of their columns.
//!
//! Has no SQL: see [`super`].

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
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
    /// It has its result.
    Done,
    /// It was in flight when its turn ended.
    Unknown,
    /// Its turn ended before it ran.
    Void,
}

impl CallState {
    /// Returns its name, as stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permitted => "permitted",
            Self::Asked => "asked",
            Self::Running => "running",
            Self::Refused => "refused",
            Self::Done => "done",
            Self::Unknown => "unknown",
            Self::Void => "void",
        }
    }
}

impl FromStr for CallState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Permitted, Self::Asked, Self::Running, Self::Refused, Self::Done, Self::Unknown, Self::Void]
            .into_iter()
            .find(|state| state.name() == text)
            .ok_or(())
    }
}

ironclaw_state::stored_by_name!(CallState);

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
