//! The load of messages that wait for an answer, for the bounds on people and channels.

use ironclaw_contract::ids::PersonId;
use ironclaw_state::{Error, ReadTx};
use rusqlite::Row;

/// The number and the bytes of messages that wait for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Their number.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The waiting messages of a person: those in their own sessions, and those in sessions of other people.
const WAITING_OF: &str = "SELECT count(*), coalesce(sum(bytes), 0) FROM \
                          (SELECT bytes FROM sessions CROSS JOIN messages ON session_id = sessions.id \
                          WHERE person_id = ?1 AND sessions.state <> 'removed' AND waits = 1 AND trigger = 1 AND of_another = 0 \
                          UNION ALL SELECT bytes FROM messages \
                          WHERE principal = ?1 AND waits = 1 AND trigger = 1 AND of_another = 1)";

/// The waiting messages on a channel other than the loopback.
const WAITING_ON: &str = "SELECT count(*), coalesce(sum(bytes), 0) FROM messages \
                          WHERE channel = ?1 AND channel <> 'loopback' AND waits = 1 AND trigger = 1";

/// Returns the load of a person's messages that wait for an answer.
pub fn waiting_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<Load, Error> {
    tx.get(WAITING_OF, [person], load)
}

/// Returns the load of a channel's messages that wait for an answer; nothing for the loopback, which has no bound of its own.
pub fn waiting_on_channel(tx: &ReadTx<'_>, channel: &str) -> Result<Load, Error> {
    tx.get(WAITING_ON, [channel], load)
}

fn load(row: &Row<'_>) -> rusqlite::Result<Load> {
    Ok(Load { count: row.get(0)?, bytes: row.get(1)? })
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::steps_on;
    use super::*;

    #[test]
    fn waiting_messages_are_found_by_an_index() {
        for (sql, indexes) in [
            (WAITING_OF, &["sessions_by_person", "messages_waiting", "messages_waiting_of"][..]),
            (WAITING_ON, &["messages_waiting_on"]),
        ] {
            let steps = steps_on(&["messages", "sessions"], sql);
            let used = steps.iter().zip(indexes).all(|(step, index)| step.contains(&format!("INDEX {index} (")));
            assert!(steps.len() == indexes.len() && used, "{sql}: {steps:?}");
        }
    }
}
