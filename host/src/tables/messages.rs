//! Messages. Tables: `messages`.

use ironclaw_contract::ids::PersonId;
use ironclaw_state::{Error, ReadTx};
use rusqlite::{Row, ToSql};

/// How many messages wait for an answer, and how large they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Returns what a person has waiting for an answer.
pub fn waiting_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<Waiting, Error> {
    // `status IN …` is the condition of the index, without which every row would be read.
    waiting_of(
        tx,
        "SELECT count(*), coalesce(sum(bytes), 0) FROM messages WHERE principal = ?1 \
         AND status IN ('queued','processing') AND trigger = 1",
        person,
    )
}

/// Returns what waits for an answer on a channel.
pub fn waiting_on_channel(tx: &ReadTx<'_>, channel: &str) -> Result<Waiting, Error> {
    // `status IN …` is the condition of the index, as above.
    waiting_of(
        tx,
        "SELECT count(*), coalesce(sum(bytes), 0) FROM messages WHERE channel = ?1 \
         AND status IN ('queued','processing') AND trigger = 1",
        channel,
    )
}

fn waiting_of(tx: &ReadTx<'_>, sql: &str, whose: impl ToSql) -> Result<Waiting, Error> {
    let number = |row: &Row<'_>, at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    tx.get(sql, [whose], |row| Ok(Waiting { count: number(row, 0)?, bytes: number(row, 1)? }))
}

/// Returns how many messages of all sessions wait or are worked on.
pub fn unfinished_count(tx: &ironclaw_state::ReadTx<'_>) -> Result<u64, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM messages WHERE status IN ('queued','processing')";
    tx.get(sql, [], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}
