//! Transactions on the state: one that reads, and one that also writes.
//!
//! A function that takes a [`ReadTx`] cannot change a row. Only this crate makes transactions.

use super::{Error, SEARCH_LOOKS, SEARCH_UNTIL};
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use ironclaw_contract::operator::LedgerEvent;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use std::ops::Deref;
use std::time::Instant;

/// A transaction that reads one snapshot of the state.
pub struct ReadTx<'a> {
    pub(super) db: &'a Connection,
    pub(super) now: i64,
    pub(super) wall: i64,
    pub(super) prune: i64,
}

/// A transaction that reads and changes the state.
pub struct WriteTx<'a> {
    pub(super) read: ReadTx<'a>,
    pub(super) entries: Vec<Committed>,
    pub(super) empty_log: bool,
}

/// A ledger entry that is on disk.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Its number.
    pub seq: u64,
    /// The event that it records.
    pub event: LedgerEvent,
    /// The session that it is about.
    pub session: Option<SessionId>,
    /// The message that it is about.
    pub message: Option<MessageId>,
    /// The turn that it is about.
    pub turn: Option<TurnId>,
    /// Whether it is a refusal or withdrawal.
    pub refuses: bool,
}

impl<'a> ReadTx<'a> {
    /// Prepares a statement that reads, and refuses one that changes rows or ends the transaction.
    fn reading(&self, sql: &str) -> Result<CachedStatement<'a>, Error> {
        let statement = self.db.prepare_cached(sql)?;
        // A statement without columns, such as ROLLBACK, is read-only for SQLite, and would end the transaction.
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(Error::NotReading(sql.to_owned()));
        }
        Ok(statement)
    }

    /// Returns what `read` makes of the first row that `sql` finds; `None` if it finds none.
    ///
    /// # Errors
    /// Those of SQLite, and those of `read`.
    pub fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        Ok(self.reading(sql)?.query_row(params, read).optional()?)
    }

    /// Returns what `read` makes of the first row that `sql` finds.
    ///
    /// # Errors
    /// Those of SQLite, such as that there is no row, and those of `read`.
    pub fn get<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        Ok(self.reading(sql)?.query_row(params, read)?)
    }

    /// Returns what `read` makes of each row that `sql` finds, in their order.
    ///
    /// # Errors
    /// Those of SQLite, and those of `read`.
    pub fn list<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C, Error> {
        Ok(self.reading(sql)?.query_map(params, read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Calls `each` with the rows that `sql` finds, one after the other, until it returns `false`.
    ///
    /// # Errors
    /// Those of SQLite, and those of `each`.
    pub fn each<E: From<Error>>(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(&Row<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let failed = |error| E::from(Error::from(error));
        let mut statement = self.reading(sql).map_err(E::from)?;
        let mut rows = statement.query(params).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            if !each(row)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether `sql` finds a row.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn exists(&self, sql: &str, params: impl Params) -> Result<bool, Error> {
        Ok(self.reading(sql)?.exists(params)?)
    }

    /// Returns the time as the record counts it, milliseconds since the epoch. It is never less than any time before, so it stays
    /// ahead for as long as the machine's clock was ahead. It is for the times of entries and of what is compared with them, and
    /// not for expiry.
    pub const fn now(&self) -> i64 {
        self.now
    }

    /// Returns the machine's clock as it is set now, milliseconds since the epoch: for days, ceilings, ages and expiry, and for
    /// times that people read. It goes back when it is set back, so nothing is put in order by it.
    pub const fn wall(&self) -> i64 {
        self.wall
    }

    /// Returns the time by which ages are counted where something is dropped for good: the machine's clock, but not what it
    /// jumped ahead by until it has gone steadily for `STEADY_AFTER`.
    pub const fn prune_time(&self) -> i64 {
        self.prune
    }

    /// Returns whether the time of this search is over; `false` outside of a search.
    pub fn is_out_of_time(&self) -> bool {
        SEARCH_UNTIL.get().is_some_and(|until| Instant::now() >= until)
    }

    /// Returns how often searches of this thread looked at their time limit, which is a measure of their work.
    pub fn work(&self) -> u64 {
        SEARCH_LOOKS.get()
    }
}

impl<'a> Deref for WriteTx<'a> {
    type Target = ReadTx<'a>;

    fn deref(&self) -> &ReadTx<'a> {
        &self.read
    }
}

impl<'a> WriteTx<'a> {
    pub(super) const fn new(read: ReadTx<'a>) -> Self {
        Self { read, entries: Vec::new(), empty_log: false }
    }

    /// Runs a statement that changes rows, and returns how many it changed.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn execute(&mut self, sql: &str, params: impl Params) -> Result<usize, Error> {
        Ok(self.read.db.prepare_cached(sql)?.execute(params)?)
    }

    /// Runs a statement that changes at most one row, and returns what `read` makes of what it returns; `None` if it changed none.
    ///
    /// # Errors
    /// Those of SQLite, and those of `read`.
    pub fn returning<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        Ok(self.read.db.prepare_cached(sql)?.query_row(params, read).optional()?)
    }

    /// Runs a statement that changes one row, and returns what `read` makes of what it returns.
    ///
    /// # Errors
    /// Those of SQLite, such as that it changed no row, and those of `read`.
    pub fn returning_one<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        Ok(self.read.db.prepare_cached(sql)?.query_row(params, read)?)
    }

    /// Queues a ledger entry for the subscribers, who get it after the commit.
    pub fn entry(&mut self, entry: Committed) {
        self.entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_table(test: impl FnOnce(&mut WriteTx<'_>)) {
        let db = Connection::open_in_memory().expect("opens");
        db.execute_batch("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1), (2)").expect("made");
        test(&mut WriteTx::new(ReadTx { db: &db, now: 0, wall: 0, prune: 0 }));
    }

    fn number(row: &Row<'_>) -> rusqlite::Result<i64> {
        row.get(0)
    }

    #[test]
    fn reading_refuses_a_statement_that_writes() {
        on_table(|tx| {
            for sql in [
                "DELETE FROM t RETURNING x",
                "INSERT INTO t VALUES (3) RETURNING x",
                "ROLLBACK",
                "COMMIT",
                "SAVEPOINT s",
            ] {
                let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::NotReading(_))), "{sql}");
                refused(tx.find(sql, [], number).map(drop));
                refused(tx.get(sql, [], number).map(drop));
                refused(tx.list::<_, Vec<i64>>(sql, [], number).map(drop));
                refused(tx.each(sql, [], |_| Ok::<_, Error>(true)));
                refused(tx.exists(sql, []).map(drop));
            }
            assert_eq!(tx.list::<_, Vec<i64>>("SELECT x FROM t", [], number).expect("read"), [1, 2]);
        });
    }

    #[test]
    fn statement_that_writes_returns_what_it_changed() {
        on_table(|tx| {
            assert_eq!(tx.execute("UPDATE t SET x = x + 1", []).expect("changed"), 2);
            let sql = "DELETE FROM t WHERE x = ?1 RETURNING x";
            assert_eq!(tx.returning(sql, [3], number).expect("changed"), Some(3));
            assert_eq!(tx.returning(sql, [3], number).expect("changed nothing"), None);
            assert!(tx.returning_one(sql, [3], number).is_err());
            assert_eq!(tx.returning_one(sql, [2], number).expect("changed"), 2);
            assert!(!tx.exists("SELECT 1 FROM t", []).expect("read"));
        });
    }
}
