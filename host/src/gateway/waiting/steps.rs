//! The ledger entries of a life.

use super::words::{Step, Words};
use crate::gateway::changes::words::WORDS as OF_CHANGES;
use crate::gateway::questions::words::WORDS as OF_QUESTIONS;
use crate::gateway::requests::words::WORDS as OF_CALLS;
use ironclaw_ledger::Entry;
use ironclaw_store::tables::waiting::{Waiting, WaitingId};

/// Returns the words of the kind of this id.
pub const fn words_of(id: WaitingId) -> &'static Words {
    match id {
        WaitingId::Call(_) => &OF_CALLS,
        WaitingId::Question(_) => &OF_QUESTIONS,
        WaitingId::Change(_) => &OF_CHANGES,
    }
}

/// Returns the ledger entry of a step in the life of what waits.
pub(super) fn entry(of: &Waiting, step: Step) -> Entry {
    let words = words_of(of.id);
    let mut entry = Entry::new((words.event)(step)).with(words.key, of.id);
    if let Some(field) = words.subject {
        entry = entry.with(field, of.subject.clone());
    }
    if let Some(session) = of.session {
        entry = entry.session(session);
    }
    match of.turn {
        Some(turn) => entry.turn(turn),
        None => entry,
    }
}
