//! The words of changes that wait.

use crate::gateway::waiting::words::{Step, Words};
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_store::tables::waiting::Status;

pub const WORDS: Words = Words {
    key: "change",
    subject: Some("kind"),
    digest: "digest",
    noun: "change",
    decision: "decided",
    without_effect: "nothing was changed",
    done: "is applied",
    failed: "could not be applied",
    unknown: DenialCode::ChangeUnknown,
    decided: DenialCode::ChangeDecided,
    expired: DenialCode::ChangeExpired,
    withdrawn: DenialCode::ChangeStale,
    requester_withdraws: true,
    restored: Status::Doubtful,
    event,
};

const fn event(step: Step) -> LedgerEvent {
    match step {
        Step::Refused => LedgerEvent::ChangeDecisionRefused,
        Step::ApprovedBy => LedgerEvent::ChangeApprovedBy,
        Step::Approved => LedgerEvent::ChangeApproved,
        Step::Reminded => LedgerEvent::ChangeReminded,
        Step::Ended(status) => match status {
            Status::Done => LedgerEvent::ChangeApplied,
            Status::Failed => LedgerEvent::ChangeFailed,
            Status::Rejected => LedgerEvent::ChangeRejected,
            Status::Expired => LedgerEvent::ChangeExpired,
            Status::Doubtful => LedgerEvent::ChangeDoubtful,
            _ => LedgerEvent::ChangeWithdrawn,
        },
    }
}
