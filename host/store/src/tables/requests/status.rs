//! The status of an approval request by the outcome of its call.
//!
//! Has no SQL: see [`super`].

use crate::tables::turns::CallOutcome;

pub use ironclaw_operator::RequestStatus as Status;

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
