//! The last words of model endpoints that gave no answer. Table: `endpoint_words`.

use crate::rows::rows;
use ironclaw_contract::ids::{ItemId, SessionId, TurnId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

rows! {
    /// The words of one failure. They may quote the conversation, so they are sealed with the content key of its session.
    #[derive(Debug, Clone)]
    pub struct EndpointWords in endpoint_words {
        /// The name under which they are sealed.
        pub id: ItemId,
        /// Name of the endpoint.
        pub endpoint: String,
        pub session: SessionId = "session_id",
        pub turn: TurnId = "turn_id",
        /// Milliseconds since the epoch.
        pub at: i64,
        /// The code of the fault.
        pub code: String,
        pub sealed: Vec<u8>,
    }
}

/// Inserts the words of one failure, and deletes those of the same endpoint beyond the newest `kept`.
pub fn insert(tx: &mut WriteTx<'_>, new: &EndpointWords, kept: u32) -> Result<(), Error> {
    new.insert(tx)?;
    let sql = "DELETE FROM endpoint_words WHERE ordinal IN \
               (SELECT ordinal FROM endpoint_words WHERE endpoint = ?1 ORDER BY ordinal DESC LIMIT -1 OFFSET ?2)";
    tx.execute(sql, params![new.endpoint, kept]).map(drop)
}

/// Returns the words of an endpoint, newest first.
pub fn for_endpoint(tx: &ReadTx<'_>, endpoint: &str) -> Result<Vec<EndpointWords>, Error> {
    tx.list("SELECT * FROM endpoint_words WHERE endpoint = ?1 ORDER BY ordinal DESC", [endpoint], EndpointWords::read)
}

/// Returns the words in a turn, newest first.
pub fn for_turn(tx: &ReadTx<'_>, turn: TurnId) -> Result<Vec<EndpointWords>, Error> {
    tx.list("SELECT * FROM endpoint_words WHERE turn_id = ?1 ORDER BY ordinal DESC", [turn], EndpointWords::read)
}

pub fn delete_of_endpoint(tx: &mut WriteTx<'_>, endpoint: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM endpoint_words WHERE endpoint = ?1", [endpoint]).map(drop)
}

pub fn delete_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    tx.execute("DELETE FROM endpoint_words WHERE session_id = ?1", [session]).map(drop)
}
