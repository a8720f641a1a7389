//! Removal of rows of messages, turns and deliveries whose items were dropped.
//!
//! Keeps open work, dead letters, and for 30 days messages with an event id. The ledger keeps the outcome of every message. See
//! [`crate::upkeep::retention_worker`] and [`ironclaw_ledger::forgotten`].

use ironclaw_ledger::forgotten;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables::{deliveries, messages, turns};

/// Rows that one transaction removes.
const FORGOTTEN_AT_ONCE: i64 = 1024;

/// Milliseconds for which the host recognises a repeated event of a channel.
const EVENTS_KEPT_MS: i64 = 30 * 24 * 3600 * 1000;

/// A table with old rows to remove.
///
/// A reading transaction finds the rows, because that takes a scan. The writing transaction checks the conditions again that may have
/// changed since.
#[derive(Debug, Clone, Copy)]
pub enum Forgettable {
    /// Settled deliveries whose answer was dropped.
    Deliveries,
    /// Answered messages whose item was dropped and whose turn has no delivery.
    Messages,
    /// Closed turns that no row refers to.
    Turns,
    /// Archive references of a message or a turn whose row was removed.
    Archived,
}

/// The tables in the order of removal: messages after their deliveries, turns after their messages.
pub const FORGETTABLE: [Forgettable; 4] =
    [Forgettable::Deliveries, Forgettable::Messages, Forgettable::Turns, Forgettable::Archived];

impl Forgettable {
    /// Returns the keys of rows to remove as a JSON array, or `None` if there are none. Their number is bounded.
    pub fn find(self, tx: &ReadTx<'_>) -> Result<Option<String>, ironclaw_state::Error> {
        match self {
            Self::Deliveries => deliveries::forgettable(tx, FORGOTTEN_AT_ONCE),
            Self::Messages => messages::forgettable(tx, tx.prune_time() - EVENTS_KEPT_MS, FORGOTTEN_AT_ONCE),
            Self::Turns => turns::forgettable(tx, FORGOTTEN_AT_ONCE),
            Self::Archived => forgotten::forgettable(tx, FORGOTTEN_AT_ONCE),
        }
    }

    /// Removes the rows of these keys, and returns their number.
    pub fn forget(self, tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, ironclaw_state::Error> {
        match self {
            Self::Deliveries => deliveries::forget(tx, keys),
            Self::Messages => messages::forget(tx, keys),
            Self::Turns => turns::forget(tx, keys),
            Self::Archived => forgotten::forget(tx, keys),
        }
    }
}
