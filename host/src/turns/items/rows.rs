//! Forgets rows of messages, turns and deliveries whose items were dropped.
//!
//! Keeps open work, lost deliveries, and messages with an event id for 30 days. The ledger keeps what became of a message. See
//! `crate::retention_worker` and [`ironclaw_ledger::forgotten`].

use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::named_params;

/// Rows that one transaction forgets.
const FORGOTTEN_AT_ONCE: i64 = 1024;

/// Milliseconds for which the host recognises an event that a channel sends again.
const EVENTS_KEPT_MS: i64 = 30 * 24 * 3600 * 1000;

/// A table whose old rows are forgotten.
///
/// A reading transaction finds rows, because that takes a scan. The writing transaction checks again what may have changed since.
#[derive(Debug, Clone, Copy)]
pub struct Forgettable {
    /// Selects `key`, a rowid or a subject.
    find: &'static str,
    /// Deletes those of `:keys`, a JSON array.
    forget: &'static str,
}

/// The tables in the order in which they are forgotten: messages after their deliveries, turns after their messages.
pub const FORGETTABLE: [Forgettable; 4] = [DELIVERIES, MESSAGES, TURNS, ARCHIVED];

/// Settled deliveries whose answer was dropped.
const DELIVERIES: Forgettable = Forgettable {
    find: "SELECT d.rowid AS key FROM sessions s JOIN deliveries d ON d.session_id = s.id \
           WHERE s.pruned_seq > 0 AND d.state IN ('received','dropped') \
           AND NOT EXISTS (SELECT 1 FROM items WHERE items.id = d.item)",
    forget: "DELETE FROM deliveries WHERE state IN ('received','dropped') AND rowid IN (SELECT value FROM json_each(:keys))",
};

/// Answered messages whose item was dropped and whose turn has no delivery. The newest message of each sender in a session stays,
/// because it names the person that the sender speaks for.
const MESSAGES: Forgettable = Forgettable {
    find: "SELECT m.rowid AS key FROM sessions s JOIN messages m ON m.session_id = s.id \
           WHERE m.seq <= s.pruned_seq AND m.status IN ('completed','delivered') \
           AND (m.event_id IS NULL OR m.received_at < (SELECT events_from FROM bounds)) \
           AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.turn_id = m.turn_id) \
           AND m.rowid NOT IN (SELECT max(rowid) FROM messages GROUP BY session_id, sender, principal)",
    forget: "DELETE FROM messages WHERE status IN ('completed','delivered') AND rowid IN (SELECT value FROM json_each(:keys))",
};

/// Closed turns that no row refers to. The newest turn stays, because the next one is numbered after it.
const TURNS: Forgettable = Forgettable {
    find: "SELECT t.ordinal AS key FROM sessions s JOIN turns t ON t.session_id = s.id \
           WHERE s.pruned_seq > 0 AND t.state = 'closed' AND t.ordinal < (SELECT max(ordinal) FROM turns) \
           AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.turn_id = t.id) \
           AND NOT EXISTS (SELECT 1 FROM deliveries WHERE deliveries.turn_id = t.id) \
           AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.turn_id = t.id) \
           AND NOT EXISTS (SELECT 1 FROM items WHERE items.turn_id = t.id)",
    forget: "DELETE FROM turns WHERE ordinal IN (SELECT value FROM json_each(:keys)) \
             AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.turn_id = turns.id)",
};

/// Archive references of a message or a turn whose row was removed.
const ARCHIVED: Forgettable = Forgettable {
    find: "SELECT DISTINCT subject AS key FROM ledger_archived \
           WHERE subject NOT IN (SELECT id FROM messages) AND subject NOT IN (SELECT id FROM turns)",
    forget: "DELETE FROM ledger_archived WHERE subject IN (SELECT value FROM json_each(:keys))",
};

impl Forgettable {
    /// Returns the keys of rows that can be forgotten, as a JSON array; `None` where there are none. Their number is bounded.
    ///
    /// # Errors
    /// Those of the database.
    pub fn find(&self, tx: &ReadTx<'_>) -> Result<Option<String>, ironclaw_state::Error> {
        let sql = format!(
            "WITH bounds (events_from) AS (SELECT :events_from) \
             SELECT json_group_array(key), count(*) FROM (SELECT key FROM ({}) LIMIT :most)",
            self.find
        );
        let from = tx.prune_time() - EVENTS_KEPT_MS;
        let (keys, count) = tx
            .db()
            .prepare_cached(&sql)?
            .query_row(named_params! { ":events_from": from, ":most": FORGOTTEN_AT_ONCE }, |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            })?;
        Ok((count > 0).then_some(keys))
    }

    /// Forgets the rows of these keys, and tells how many there were.
    ///
    /// # Errors
    /// Those of the database.
    pub fn forget(&self, tx: &mut WriteTx<'_>, keys: &str) -> Result<usize, ironclaw_state::Error> {
        Ok(tx.db().prepare_cached(self.forget)?.execute(named_params! { ":keys": keys })?)
    }
}
