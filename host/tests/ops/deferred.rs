//! Tests of deferred changes of the record: they are found at once, committed without another change, and never lost silently.
//!
//! They use the host as a library. `chaos::crash` kills a host between a deferred change and its commit.

use super::state::{KEY, with_record};
use crate::support::host_fixture::WAIT_MAX;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, ReadTx, State, WriteTx};

const NOTES: &str = "SELECT count(*) FROM meta WHERE key LIKE 'note %'";

fn note(tx: &mut WriteTx<'_>, key: &str) -> Result<(), Error> {
    tx.set_meta(&format!("note {key}"), "x")?;
    Entry::new(LedgerEvent::LedgerKeyMade).with("key", key).append(tx).map(drop)
}

fn deferred(tx: &mut WriteTx<'_>, key: &str) -> Result<(), Error> {
    tx.defer();
    note(tx, key)
}

fn count(tx: &ReadTx<'_>) -> Result<i64, Error> {
    tx.get(NOTES, [], |row| row.get(0))
}

#[test]
fn deferred_change_is_found_by_every_kind_of_work() {
    with_record(async |state, path| {
        state.write(|tx| deferred(tx, "1")).await.expect("written");
        assert_eq!(state.read(count).await.expect("read"), 1);
        state.write(|tx| deferred(tx, "2")).await.expect("written");
        assert_eq!(state.search(WAIT_MAX, count).await.expect("found"), 2);
        state.write(|tx| deferred(tx, "3")).await.expect("written");
        assert_eq!(state.write(|tx| count(tx)).await.expect("written"), 3);
        state.write(|tx| deferred(tx, "4")).await.expect("written");
        assert_eq!(state.write_alone(|tx| count(tx)).await.expect("written"), 4);
        assert_eq!(state.read_committed(count).await.expect("read"), 4);
        state.write(|tx| deferred(tx, "5")).await.expect("written");
        state.close().await;
        let state = State::open(&path, &SessionKey::new(KEY)).expect("it opens");
        assert_eq!(state.read(count).await.expect("read"), 5, "a stop keeps a deferred change");
        state.close().await;
    });
}

#[test]
fn deferred_change_is_committed_without_another_change() {
    with_record(async |state, _| {
        let mut events = state.events();
        state.write(|tx| deferred(tx, "1")).await.expect("written");
        let entry = tokio::time::timeout(WAIT_MAX, events.recv()).await.expect("it is committed").expect("an entry");
        assert_eq!(entry.event, LedgerEvent::LedgerKeyMade);
        assert_eq!(state.read_committed(count).await.expect("read"), 1);
        state.close().await;
    });
}

#[test]
fn failed_change_does_not_undo_a_deferred_one() {
    with_record(async |state, _| {
        state.write(|tx| deferred(tx, "1")).await.expect("written");
        let failed = state.write(|tx| {
            deferred(tx, "2")?;
            Err::<(), _>(Error::Closed)
        });
        failed.await.expect_err("it failed");
        assert_eq!(state.read(count).await.expect("read"), 1);
        state.close().await;
    });
}

#[test]
fn lost_deferred_change_is_reported_and_the_record_continues() {
    with_record(async |state, _| {
        // SQLite checks such a reference at the commit.
        let table = "CREATE TABLE broken (of TEXT REFERENCES sessions (id) DEFERRABLE INITIALLY DEFERRED)";
        state.write(move |tx| tx.execute(table, []).map(drop)).await.expect("made");
        let mut lost = state.lost();
        let broken = |tx: &mut WriteTx<'_>| {
            tx.defer();
            tx.execute("INSERT INTO broken VALUES ('gone')", []).map(drop)
        };
        state.write(broken).await.expect("its caller gets the result before the commit");
        tokio::time::timeout(WAIT_MAX, lost.changed()).await.expect("the loss is reported").expect("the state is open");
        assert!(!state.read(|tx| tx.exists("SELECT 1 FROM broken", [])).await.expect("read"));
        state.write(|tx| note(tx, "1")).await.expect("written");
        let (deferred, shared) = tokio::join!(state.write(broken), state.write(|tx| note(tx, "2")));
        deferred.expect("its caller gets the result before the commit");
        let error = shared.expect_err("it shares the failed commit");
        assert!(matches!(error, Error::Unwritten(_)), "{error}");
        assert_eq!(state.read(count).await.expect("read"), 1);
        state.close().await;
    });
}
