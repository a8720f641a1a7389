//! The words of a kind, and the steps of a life that the ledger has.

use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_store::tables::waiting::Status;

/// A step in a life that the ledger has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A decision was refused.
    Refused,
    /// One person approved.
    ApprovedBy,
    /// It has its approvals.
    Approved,
    /// It ended with this status.
    Ended(Status),
    Reminded,
}

/// The words of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The field of its id in ledger entries.
    pub key: &'static str,
    /// The field of its subject in ledger entries, if they have it.
    pub subject: Option<&'static str>,
    /// The field of its digest in the ledger entry of its approvals.
    pub digest: &'static str,
    /// The noun in sentences of the host.
    pub noun: &'static str,
    /// The participle of its decision.
    pub decision: &'static str,
    /// The consequence of an end without its effect, for the agent.
    pub without_effect: &'static str,
    /// The words for one whose effect is made, and for one whose effect failed.
    pub done: &'static str,
    pub failed: &'static str,
    /// The code for an id that none has.
    pub unknown: DenialCode,
    /// The code of one that is decided already.
    pub decided: DenialCode,
    /// The code of one that was not decided in time.
    pub expired: DenialCode,
    /// The code of one that can no longer be decided.
    pub withdrawn: DenialCode,
    /// True if a requester who cannot decide withdraws it, and rejects it otherwise.
    pub requester_withdraws: bool,
    /// What becomes of it in a restored record: doubtful, or withdrawn.
    pub restored: Status,
    pub event: fn(Step) -> LedgerEvent,
}
