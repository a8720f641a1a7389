//! The status of an approval request, and its name in the record.
//!
//! Has no SQL: see [`super`].

use crate::store::tables::turns::CallOutcome;
use std::str::FromStr;

/// The status of an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It waits for people.
    Pending,
    /// Every reason has its yes; the call runs next.
    Approved,
    /// The approvals are used up, and the call runs.
    Running,
    /// The call did what it was made for.
    Done,
    /// The call was made, and ended with an error.
    Failed,
    /// The message of the call waits for its delivery.
    Queued,
    /// A person said no.
    Rejected,
    /// It was not decided in time, or not used in time.
    Expired,
    /// It can no longer be decided.
    Withdrawn,
    /// The approvals are used up, and the outcome of the call is unknown.
    Unknown,
}

impl From<CallOutcome> for Status {
    fn from(outcome: CallOutcome) -> Self {
        match outcome {
            CallOutcome::Done => Self::Done,
            CallOutcome::Failed => Self::Failed,
            CallOutcome::Queued => Self::Queued,
            CallOutcome::Unknown => Self::Unknown,
        }
    }
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 10] = [
        Self::Pending,
        Self::Approved,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Queued,
        Self::Rejected,
        Self::Expired,
        Self::Withdrawn,
        Self::Unknown,
    ];

    /// Returns its name in the record and for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Queued => "queued",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Unknown => "unknown",
        }
    }
}

impl FromStr for Status {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|status| status.name() == text).ok_or(())
    }
}

ironclaw_state::stored_by_name!(Status);
