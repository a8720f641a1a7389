//! The transactions on the state: a read transaction and a write transaction.
//!
//! A function that takes a [`ReadTx`] cannot change a row. Only this crate makes transactions.

use super::{Error, SEARCH_CHECKS, SEARCH_UNTIL, sql};
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use ironclaw_operator::LedgerEvent;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, ToSql};
use std::ops::Deref;
use std::time::Instant;

/// A transaction that reads one snapshot of the state.
pub struct ReadTx<'a> {
    pub(super) db: &'a Connection,
    pub(super) now: i64,
    pub(super) wall: i64,
    pub(super) prune: i64,
    pub(super) expiry: i64,
}

/// A transaction that reads and changes the state.
pub struct WriteTx<'a> {
    pub(super) read: ReadTx<'a>,
    pub(super) entries: Vec<Committed>,
    pub(super) empty_log: bool,
    pub(super) is_deferred: bool,
}

/// A committed ledger entry.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Number of the entry.
    pub seq: u64,
    /// The event that it records.
    pub event: LedgerEvent,
    /// The session that it is about.
    pub session: Option<SessionId>,
    /// The message that it is about.
    pub message: Option<MessageId>,
    /// The turn that it is about.
    pub turn: Option<TurnId>,
    /// Flag: the entry is a refusal or a withdrawal.
    pub refuses: bool,
}

impl<'a> ReadTx<'a> {
    /// Prepares a read statement; refuses one that changes rows or ends the transaction.
    fn reading(&self, sql: &str) -> Result<CachedStatement<'a>, Error> {
        let statement = sql::prepare(self.db, sql)?;
        // SQLite counts a statement without columns, such as ROLLBACK, as read-only, but it would end the transaction.
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(Error::NotReading(sql.to_owned()));
        }
        Ok(statement)
    }

    /// Returns the first row that `sql` finds, converted by `read`; `None` if there is no row.
    ///
    /// # Errors
    /// The errors of SQLite, and of `read`.
    pub fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        Ok(self.reading(sql)?.query_row(params, read).optional()?)
    }

    /// Returns the first row that `sql` finds, converted by `read`.
    ///
    /// # Errors
    /// The errors of SQLite, such as a missing row, and of `read`.
    pub fn get<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        Ok(self.reading(sql)?.query_row(params, read)?)
    }

    /// Returns all rows that `sql` finds, in order, converted by `read`.
    ///
    /// # Errors
    /// The errors of SQLite, and of `read`.
    pub fn list<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C, Error> {
        Ok(self.reading(sql)?.query_map(params, read)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Calls `each` with each row that `sql` finds, until it returns `false`.
    ///
    /// # Errors
    /// The errors of SQLite, and of `each`.
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

    /// Returns the value of the row of `meta` with this key.
    ///
    /// # Errors
    /// The errors of SQLite.
    pub fn meta(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(sql::meta(self.db, key)?)
    }

    /// Returns whether `sql` finds a row.
    ///
    /// # Errors
    /// The errors of SQLite.
    pub fn exists(&self, sql: &str, params: impl Params) -> Result<bool, Error> {
        Ok(self.reading(sql)?.exists(params)?)
    }

    /// Returns the time of the record, in milliseconds since the epoch. It never goes back, so after the machine's clock was set ahead,
    /// it stays there until the clock catches up. It is for the times of entries and for comparisons with them, not for expiry.
    pub const fn now(&self) -> i64 {
        self.now
    }

    /// Returns the machine's clock, in milliseconds since the epoch. It is for days, ceilings, ages and expiry, and for times that
    /// people read. It may go back, so it orders nothing.
    pub const fn wall(&self) -> i64 {
        self.wall
    }

    /// Returns the time for the age of rows that are dropped for good: the machine's clock, without a jump ahead until the clock has run
    /// steadily for `STEADY_AFTER`.
    pub const fn prune_time(&self) -> i64 {
        self.prune
    }

    /// Returns the time for states that are recorded as expired for good: the machine's clock, without a jump of more than
    /// `TRUSTED_STOP_MS` until the clock has run steadily for `STEADY_AFTER`. Meanwhile the machine's clock refuses what has expired.
    pub const fn expiry_time(&self) -> i64 {
        self.expiry
    }

    /// Returns whether the deadline of this search has passed; `false` outside of a search.
    pub fn is_out_of_time(&self) -> bool {
        SEARCH_UNTIL.get().is_some_and(|until| Instant::now() >= until)
    }

    /// Returns how often the searches of this thread checked their deadline: a measure of their work.
    pub fn work(&self) -> u64 {
        SEARCH_CHECKS.get()
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
        Self { read, entries: Vec::new(), empty_log: false, is_deferred: false }
    }

    /// Sets the row of `meta` with this key, and replaces its earlier value.
    ///
    /// # Errors
    /// The errors of SQLite.
    pub fn set_meta(&mut self, key: &str, value: &str) -> Result<(), Error> {
        Ok(sql::set_meta(self.read.db, key, value)?)
    }

    /// Removes the row of `meta` with this key, and returns whether there was one.
    ///
    /// # Errors
    /// The errors of SQLite.
    pub fn remove_meta(&mut self, key: &str) -> Result<bool, Error> {
        Ok(sql::remove_meta(self.read.db, key)?)
    }

    /// Runs a statement that changes rows, and returns their number.
    ///
    /// # Errors
    /// The errors of SQLite.
    pub fn execute(&mut self, sql: &str, params: impl Params) -> Result<usize, Error> {
        Ok(sql::prepare(self.read.db, sql)?.execute(params)?)
    }

    /// Inserts a row with these values of these columns.
    ///
    /// # Errors
    /// The errors of SQLite.
    pub fn insert(&mut self, table: &str, columns: &[&str], values: &[&dyn ToSql]) -> Result<(), Error> {
        Ok(sql::insert(self.read.db, table, columns, values)?)
    }

    /// Runs a statement with `RETURNING` that changes at most one row. Returns its result, converted by `read`; `None` if it changed no
    /// row.
    ///
    /// # Errors
    /// The errors of SQLite, and of `read`.
    pub fn returning<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        Ok(sql::prepare(self.read.db, sql)?.query_row(params, read).optional()?)
    }

    /// Runs a statement with `RETURNING` that changes one row, and returns its result, converted by `read`.
    ///
    /// # Errors
    /// The errors of SQLite, such as an unchanged row, and of `read`.
    pub fn returning_one<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        Ok(sql::prepare(self.read.db, sql)?.query_row(params, read)?)
    }

    /// Lets the caller continue before this change is on disk. The change shares the commit of the next change, or is committed after
    /// [`DEFERRED_MAX`](crate::DEFERRED_MAX). A crash before that undoes it together with everything after it.
    ///
    /// Only for a caller that has no effect outside of the host before another change is on disk, and to which a failed commit is harmless
    /// or that follows `State::lost`.
    pub fn defer(&mut self) {
        self.is_deferred = true;
    }

    /// Queues a ledger entry for the subscribers, which get it after the commit.
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
        test(&mut WriteTx::new(ReadTx { db: &db, now: 0, wall: 0, prune: 0, expiry: 0 }));
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
