//! The words of calls that wait.

use crate::gateway::waiting::words::{Step, Words};
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_store::tables::waiting::Status;

pub const WORDS: Words = Words {
    key: "request",
    subject: None,
    digest: "arguments_digest",
    noun: "approval request",
    decision: "decided",
    without_effect: "it did not run",
    done: "is done",
    failed: "failed",
    unknown: DenialCode::RequestUnknown,
    decided: DenialCode::RequestDecided,
    expired: DenialCode::CallExpired,
    withdrawn: DenialCode::CallWithdrawn,
    requester_withdraws: false,
    restored: Status::Withdrawn,
    event,
};

const fn event(step: Step) -> LedgerEvent {
    match step {
        Step::Refused => LedgerEvent::RequestDecisionRefused,
        Step::ApprovedBy => LedgerEvent::RequestApprovedBy,
        Step::Approved => LedgerEvent::RequestApproved,
        Step::Reminded => LedgerEvent::RequestReminded,
        Step::Ended(Status::Rejected) => LedgerEvent::RequestRejected,
        Step::Ended(Status::Expired) => LedgerEvent::RequestExpired,
        Step::Ended(_) => LedgerEvent::RequestWithdrawn,
    }
}
