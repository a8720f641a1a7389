//! The items in the prompt of each output. Table: `output_prompts`.

use crate::rows::rows;
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

rows! {
    /// The items in the prompt of one output.
    #[derive(Debug, Clone)]
    pub struct OutputPrompt in output_prompts {
        pub session: SessionId = "session_id",
        /// The number of the output.
        pub seq: u64,
        pub turn: TurnId = "turn_id",
        /// The first and the last number of each run of items, in order.
        pub ranges: Vec<[u64; 2]> as json,
        /// False if the oldest ranges were over the bound.
        pub is_whole: bool,
    }
}

/// Inserts the items in the prompt of an output.
pub fn insert(tx: &mut WriteTx<'_>, new: &OutputPrompt) -> Result<(), Error> {
    new.insert(tx)
}

/// Returns the prompts of the outputs of a turn up to the number of an output, in order.
pub fn in_turn(tx: &ReadTx<'_>, session: SessionId, turn: TurnId, upto: u64) -> Result<Vec<OutputPrompt>, Error> {
    let sql = "SELECT * FROM output_prompts WHERE session_id = ?1 \
               AND seq BETWEEN coalesce((SELECT first_seq FROM turns WHERE id = ?2), 0) AND ?3 AND turn_id = ?2 ORDER BY seq";
    tx.list(sql, params![session, turn, upto as i64], OutputPrompt::read)
}

/// Deletes the rows of the session's outputs that are numbered up to `upto`.
pub fn delete_upto(tx: &mut WriteTx<'_>, session: SessionId, upto: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM output_prompts WHERE session_id = ?1 AND seq <= ?2", params![session, upto]).map(drop)
}

pub fn delete_of(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM output_prompts WHERE session_id = ?1", [session]).map(drop)
}
