//! The rows of calls, and the words of their columns.
//!
//! Has no SQL: see [`super`].

use crate::rows::rows;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use rusqlite::Row;
use serde::{Deserialize, Serialize};

pub use ironclaw_operator::CallState;

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

ironclaw_contract::words! {
    /// The place where a permitted call runs.
    pub enum Runs {
        /// The sandbox runs it and reports the result.
        Local = "local",
        /// The host runs it, after the sandbox wrote the call as a row.
        Row = "row",
        /// The host runs it in the transaction that records the call, because it concerns the host's own record alone.
        Host = "host",
        /// The host runs it when the sandbox asks for its result.
        Await = "await",
    }
}

rows! {
    /// A recorded call's row.
    #[derive(Debug, Clone)]
    pub struct CallRow {
        pub id: CallId,
        pub session: SessionId = "session_id",
        pub turn: TurnId = "turn_id",
        /// The output that names it.
        pub output: ItemId = "output_item",
        pub tool: String,
        /// The place where it runs; `None` for a refused call.
        pub runs: Option<Runs> as runs,
        /// Digest of its arguments.
        pub digest: Digest,
        pub state: CallState,
        /// Its result, once there is one.
        pub result: Option<ItemId> = "result_item",
    }
}

pub(super) fn runs(row: &Row<'_>) -> rusqlite::Result<Option<Runs>> {
    let text = row.get_ref("runs")?.as_str()?;
    Ok(Runs::ALL.into_iter().find(|runs| runs.name() == text))
}
