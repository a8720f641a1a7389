//! Tests of the guarantees of the record: writes are atomic, time never goes back, and foreign files are refused.
//!
//! They use the host as a library for states that a running host cannot reach. See `chaos::crash`.

use crate::support::host_fixture::{Build, TestHost, WAIT_MAX};
use crate::support::jail_fixture::host_users;
use crate::support::record;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_ledger::{Entry, chain};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{Error, ReadTx, State, View, WriteTx};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;

pub(super) const KEY: [u8; 32] = [7; 32];
/// Counts the rows that the tests wrote, without the mark that the record is open.
const NOTES: &str = "SELECT count(*) FROM meta WHERE key <> 'log'";

fn open(path: &Path) -> Result<State, Error> {
    State::create(path)?;
    State::open(path, &SessionKey::new(KEY))
}

fn look(path: &Path) -> rusqlite::Connection {
    ironclaw_state::open_to_look(path, &SessionKey::new(KEY)).expect("the record opens")
}

/// Runs the work with a new record, and with the path of its file.
pub(super) fn with_record(work: impl AsyncFnOnce(State, PathBuf)) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state.db");
    run(async { work(new_record(&path).await, path).await });
}

/// Writes a note once the other side sends a word.
fn held_write(state: &State, wait: mpsc::Receiver<()>, key: &'static str) -> JoinHandle<Result<(), Error>> {
    let state = state.clone();
    let held = move |tx: &mut WriteTx<'_>| {
        wait.recv().map_err(|_| Error::Closed)?;
        note(tx, key)
    };
    tokio::spawn(async move { state.write(held).await })
}

/// Sets the times of the ledger a day ahead, as a run with such a clock does, and returns the latest.
async fn set_ahead(state: &State) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
    let ahead = now + 86_400_000;
    state.write(move |tx| tx.execute("UPDATE ledger SET at = ?1", [ahead]).map(drop)).await.expect("written");
    ahead
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

fn note(tx: &mut WriteTx<'_>, key: &str) -> Result<(), Error> {
    tx.execute("INSERT INTO meta (key, value) VALUES (?1, 'x')", [key])?;
    Entry::new(LedgerEvent::LedgerKeyMade).with("key", key).append(tx).map(drop)
}

/// Opens a new record and writes the first entry of its ledger.
async fn new_record(path: &Path) -> State {
    let state = open(path).expect("the record opens");
    let genesis = |tx: &mut WriteTx<'_>| Entry::new(LedgerEvent::LedgerOpened).append(tx).map(drop);
    state.write(genesis).await.expect("written");
    state
}

#[test]
fn waiting_searches_share_no_snapshot() {
    with_record(async |state, _| {
        let count = |tx: &ReadTx<'_>| tx.get(NOTES, [], |row| row.get::<_, i64>(0));
        let search = |hold: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>| {
            let state = state.clone();
            tokio::spawn(async move {
                let look = move |tx: &ReadTx<'_>| {
                    let found = count(tx)?;
                    if let Some((here, go)) = hold {
                        here.send(()).map_err(|_| Error::Closed)?;
                        go.recv().map_err(|_| Error::Closed)?;
                    }
                    Ok::<_, Error>(found)
                };
                state.search(WAIT_MAX, look).await.expect("found")
            })
        };
        // The first search blocks the thread until the other two wait. The second runs while a write is committed.
        let [(here, first), (go, wait), (here_too, second), (go_on, wait_too)] = [(); 4].map(|()| mpsc::channel());
        let found = [search(Some((here, wait))), search(Some((here_too, wait_too))), search(None)];
        tokio::task::yield_now().await;
        first.recv().expect("the first search is at work");
        go.send(()).expect("the other side waits");
        second.recv().expect("the second search is at work");
        state.write(|tx| note(tx, "new")).await.expect("written");
        go_on.send(()).expect("the other side waits");
        let mut counts = Vec::new();
        for found in found {
            counts.push(found.await.expect("no panic"));
        }
        assert_eq!([counts[1] - counts[0], counts[2] - counts[0]], [0, 1]);
    });
}

#[test]
fn failed_write_is_rolled_back_alone_in_its_group() {
    with_record(async |state, path| {
        let mut listener = state.events();
        // The first write waits until all are queued, so that one commit contains them all.
        let (go, wait) = mpsc::channel::<()>();
        let mut group = vec![held_write(&state, wait, "0")];
        for number in 1..10 {
            let state = state.clone();
            group.push(tokio::spawn(async move {
                let change = move |tx: &mut WriteTx<'_>| {
                    note(tx, &number.to_string())?;
                    // A repeated key fails after the rows and an entry of this write.
                    if number % 3 == 0 { note(tx, "1") } else { Ok(()) }
                };
                state.write(change).await
            }));
        }
        tokio::task::yield_now().await;
        go.send(()).expect("the other side waits");
        let mut failed = Vec::new();
        for (number, change) in group.into_iter().enumerate() {
            if change.await.expect("no panic").is_err() {
                failed.push(number);
            }
        }
        assert_eq!(failed, [3, 6, 9]);
        state.close().await;
        let db = look(&path);
        assert_eq!(record::count(&db, NOTES), 7);
        assert_eq!(record::count(&db, "SELECT count(*) FROM meta WHERE key IN ('3','6','9')"), 0);
        assert_eq!(
            record::count(&db, "SELECT count(DISTINCT at) FROM ledger WHERE seq > 0"),
            1,
            "a group has one time"
        );
        let view = View::open(&path, &SessionKey::new(KEY)).expect("the record opens");
        assert_eq!(chain::check(&view.tx(), None, &BTreeSet::new()).expect("the chain is whole").last, 7);
        let mut seqs = Vec::new();
        while let Ok(entry) = listener.try_recv() {
            seqs.push(entry.seq);
        }
        assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7], "listeners get no entry that was rolled back");
    });
}

#[test]
fn exclusive_write_sees_only_committed_state_and_commits_alone() {
    with_record(async |state, path| {
        let mut listener = state.events();
        let (go, wait) = mpsc::channel::<()>();
        let spawn = |key: &'static str| {
            let state = state.clone();
            tokio::spawn(async move { state.write(move |tx| note(tx, key)).await })
        };
        let held = held_write(&state, wait, "first");
        tokio::task::yield_now().await;
        let before = spawn("before");
        tokio::task::yield_now().await;
        let alone = tokio::spawn({
            let (state, path) = (state.clone(), path.clone());
            async move {
                let alone = move |tx: &mut WriteTx<'_>| {
                    // Another connection sees a row only after its commit.
                    let seen = record::count(&look(&path), NOTES);
                    note(tx, "alone")?;
                    Ok::<_, Error>(seen)
                };
                state.write_alone(alone).await
            }
        });
        tokio::task::yield_now().await;
        let after = spawn("after");
        tokio::task::yield_now().await;
        go.send(()).expect("the other side waits");
        let seen = alone.await.expect("no panic").expect("written");
        assert_eq!(seen, 2, "an exclusive write sees earlier writes");
        for change in [held, before, after] {
            change.await.expect("no panic").expect("written");
        }
        state.close().await;
        assert_eq!(std::iter::from_fn(|| listener.try_recv().ok()).count(), 4, "each entry is announced");
        assert_eq!(record::count(&look(&path), NOTES), 4);
    });
}

#[test]
fn closed_state_keeps_accepted_writes_and_refuses_others() {
    with_record(async |state, path| {
        let before = (0..20).map(|number| {
            let state = state.clone();
            tokio::spawn(async move { state.write(move |tx| note(tx, &number.to_string())).await })
        });
        let before: Vec<_> = before.collect();
        tokio::task::yield_now().await;
        state.close().await;
        let mut kept = 0;
        for change in before {
            kept += i64::from(change.await.expect("no panic").is_ok());
        }
        assert!(matches!(state.write(|tx| note(tx, "late")).await, Err(Error::Closed)));
        assert!(matches!(state.read(|_| Ok::<_, Error>(())).await, Err(Error::Closed)));
        state.close().await;
        assert_eq!(record::count(&look(&path), NOTES), kept);
        assert_eq!(kept, 20, "every accepted write is committed");
    });
}

#[test]
fn damage_stops_commits_and_closing_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state.db");
    run(async {
        let state = new_record(&path).await;
        state.write(|tx| note(tx, "before")).await.expect("written");
        let file = std::fs::read(&path).expect("readable");
        let log = std::fs::read(path.with_file_name("state.db-wal")).expect("readable");
        let damage = || rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None);
        // The write that finds the damage shares its commit with an earlier write. A later write follows.
        let (go, wait) = mpsc::channel::<()>();
        let first = state.write(move |tx| {
            wait.recv().map_err(|_| Error::Closed)?;
            note(tx, "same commit")
        });
        let damaging = state.write(move |_| Err::<(), Error>(damage().into()));
        let later = state.write(|tx| note(tx, "after damage"));
        let go = async { go.send(()).expect("the other side waits") };
        let (first, damaging, later, ()) = tokio::join!(first, damaging, later, go);
        assert!(matches!(first, Err(Error::Unwritten(_))), "{first:?}");
        assert!(matches!(damaging, Err(Error::Sqlite(_))), "{damaging:?}");
        assert!(matches!(later, Err(Error::Closed)), "{later:?}");
        assert!(state.damaged().await.to_string().contains("nothing was written to it from then on"));
        assert!(matches!(state.write(|tx| note(tx, "later")).await, Err(Error::Closed)));
        state.close().await;
        assert_eq!(std::fs::read(&path).expect("readable"), file);
        assert_eq!(std::fs::read(path.with_file_name("state.db-wal")).expect("the log stays"), log);
    });
    assert_eq!(record::count(&look(&path), NOTES), 1, "earlier writes are kept");
}

#[test]
fn caller_is_answered_while_the_record_closes() {
    let directory = record::directory();
    let path = directory.path().join("state.db");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        new_record(&path).await.close().await;
        for _ in 0..800 {
            let state = open(&path).expect("the record opens");
            let come = |state: State| async move {
                while state.write(|_| Ok::<_, Error>(())).await.is_ok()
                    && state.read(|_| Ok::<_, Error>(())).await.is_ok()
                {}
            };
            let come: Vec<_> = (0..8).map(|_| tokio::spawn(come(state.clone()))).collect();
            tokio::task::yield_now().await;
            let ended = tokio::time::timeout(WAIT_MAX, async {
                state.close().await;
                for one in come {
                    one.await.expect("no panic");
                }
            });
            ended.await.expect("a closed record answers at once");
        }
    });
}

#[test]
fn time_never_goes_back_even_after_a_restart() {
    with_record(async |state, path| {
        let ahead = set_ahead(&state).await;
        state.close().await;
        let state = open(&path).expect("the record opens");
        let read = state.read(|tx| Ok::<_, Error>(tx.now())).await.expect("read");
        assert!(read >= ahead, "a reader gets the time of the ledger: {read} < {ahead}");
        let written = |tx: &mut WriteTx<'_>| {
            note(tx, "later")?;
            Ok::<_, Error>(tx.now())
        };
        let written = state.write(written).await.expect("written");
        assert!(written >= ahead, "{written} < {ahead}");
        state.close().await;
        let db = look(&path);
        assert_eq!(
            record::count(&db, "SELECT count(*) FROM ledger a JOIN ledger b ON b.seq = a.seq + 1 AND b.at < a.at"),
            0
        );
    });
}

#[test]
fn turn_ends_at_its_deadline_if_the_clock_is_set_back() {
    let host = TestHost::new().configured("[turn]\nseconds_max = 6\n");
    let key = record::master(&host.home).state_key();
    run(async {
        let state = State::open(&host.home.join("state.db"), &key).expect("the record opens");
        set_ahead(&state).await;
        state.close().await;
    });
    host.up();
    host.agent("a");
    assert!(host.say("a", "hello").contains("Hello."));
    let suspended = host.session()["pid"].as_i64().expect("awake") as i32;
    // A suspended sandbox does not end its turn.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(suspended), nix::sys::signal::Signal::SIGSTOP).expect("stopped");
    let answer = host.ctl(&["--json", "chat", "a", "hello", "--wait", "30s"]).ok().json();
    assert_eq!(answer["notice"], true, "{answer}");
    assert!(answer["reply"].as_str().is_some_and(|reply| reply.contains("6 seconds")), "{answer}");
}

#[test]
fn newer_or_older_state_file_is_refused_and_unchanged() {
    for (user, version) in host_users().into_iter().flat_map(|user| [(user, 99), (user, 31)]) {
        let host = TestHost::with(user, Build::Plain, None).started();
        host.down();
        let path = host.home.join("state.db");
        let key = record::master(&host.home).state_key();
        run(async {
            let state = State::open(&path, &key).expect("the record opens");
            let change = move |tx: &mut WriteTx<'_>| tx.execute(&format!("PRAGMA user_version = {version}"), []);
            state.write(change).await.expect("written");
            state.close().await;
        });
        let before = std::fs::read(&path).expect("read");
        let reads = if version == 99 { "knows up to " } else { "reads schema 32 and later;" };
        let words = format!("has schema {version}, and this version {reads}");
        host.ctl(&["up", "--detach"]).refused(&words);
        host.ctl(&["init"]).refused(&words);
        host.ctl(&["audit", "verify"]).refused(&words);
        assert_eq!(std::fs::read(&path).expect("read"), before, "{user:?}");
    }
}

#[test]
fn wrong_master_key_is_refused_and_named() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started_with("a");
        host.down();
        let (path, key) = (host.home.join("state.db"), host.home.join("master.key"));
        let right = std::fs::read(&key).expect("read");
        let before = std::fs::read(&path).expect("read");
        std::fs::write(&key, [9; 32]).expect("written");
        for command in [&["up", "--detach"][..], &["init"], &["audit", "verify"], &["audit", "export"]] {
            host.ctl(command).refused("wrong master key or damaged file");
        }
        std::fs::write(&key, &right[..31]).expect("written");
        host.ctl(&["up", "--detach"]).refused("must hold exactly 32 bytes");
        std::fs::write(&key, &right).expect("written");
        assert_eq!(std::fs::read(&path).expect("read"), before, "{user:?}");
        host.up();
        assert!(host.say("a", "hello").contains("Hello."), "{user:?}");
    }
}
