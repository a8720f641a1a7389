//! The status of an approval request, and its name in the record.
//!
//! Has no SQL: see [`super`].

use crate::tables::turns::CallOutcome;

ironclaw_contract::words! {
    /// The status of an approval request.
    pub enum Status {
        /// It waits for people.
        Pending = "pending",
        /// Every reason has its yes; the call runs next.
        Approved = "approved",
        /// The approvals are used up, and the call runs.
        Running = "running",
        /// The call did what it was made for.
        Done = "done",
        /// The call was made, and ended with an error.
        Failed = "failed",
        /// The message of the call waits for its delivery.
        Queued = "queued",
        /// A person said no.
        Rejected = "rejected",
        /// It was not decided in time, or not used in time.
        Expired = "expired",
        /// It can no longer be decided.
        Withdrawn = "withdrawn",
        /// The approvals are used up, and the outcome of the call is unknown.
        Unknown = "unknown",
    }
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

ironclaw_contract::stored_as_text!(Status);
