//! The words of questions that wait.

use crate::gateway::waiting::words::{Step, Words};
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_store::tables::waiting::Status;

pub const WORDS: Words = Words {
    key: "question",
    subject: None,
    digest: "digest",
    noun: "question",
    decision: "answered",
    without_effect: "there is no answer",
    done: "is answered",
    failed: "failed",
    unknown: DenialCode::QuestionUnknown,
    decided: DenialCode::QuestionEnded,
    expired: DenialCode::QuestionEnded,
    withdrawn: DenialCode::QuestionEnded,
    requester_withdraws: false,
    restored: Status::Doubtful,
    event,
};

const fn event(step: Step) -> LedgerEvent {
    match step {
        Step::Refused => LedgerEvent::QuestionAnswerRefused,
        Step::ApprovedBy | Step::Approved | Step::Ended(Status::Done) => LedgerEvent::QuestionAnswered,
        Step::Reminded => LedgerEvent::QuestionReminded,
        Step::Ended(Status::Expired) => LedgerEvent::QuestionExpired,
        Step::Ended(Status::Doubtful) => LedgerEvent::QuestionUnknown,
        Step::Ended(_) => LedgerEvent::QuestionCancelled,
    }
}
