//! Removal of a session: no data of it can be recovered, and its directory is gone.
//!
//! The tests also read the raw pages of the record, including free pages. See `secrets`.
#![allow(unsafe_code)]

use crate::support::client;
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::jail_fixture::{HostUser, host_users};
use crate::support::processes::Process;
use crate::support::record::{self, Needle};
use ironclaw_contract::ids::SessionId;
use rusqlite::{Connection, ffi};
use serde_json::Value;
use std::path::Path;

const SECRET: &str = "the heron nests behind the seventh mill";

/// A word of a note. The record stores notes in plain text for the search.
const NOTED: &str = "quillwort";

/// Starts a conversation, and returns the needles that must disappear with its session.
fn start_conversation(host: &TestHost) -> (SessionId, Vec<Needle>) {
    host.up();
    host.agent("a");
    host.say("a", &format!("my name is Ada. remember that bird is {SECRET}"));
    host.say("a", &format!("write bird.txt: {SECRET}"));
    host.say("a", &format!("echo {SECRET}"));
    assert!(host.say("a", &format!("keep {NOTED} grows there")).contains("kept as mem_"));
    let session: SessionId = host.session()["id"].as_str().expect("an id").parse().expect("an id of a session");
    let mut needles = vec![Needle::new("the words", SECRET), Needle::new("note", NOTED)];
    for (which, key) in ["queue key", "content key"].iter().zip(record::session_keys(&host.home, session)) {
        needles.extend(Needle::key(which, &key));
    }
    let db = record::open(&host.home);
    let mut blobs = |sql: &str, name: &str| {
        let mut statement = db.prepare(sql).expect("a statement");
        let found = statement.query_map([session.to_string()], |row| row.get::<_, Vec<u8>>(0)).expect("rows");
        let before = needles.len();
        for (number, blob) in found.enumerate() {
            let blob: Vec<u8> = blob.expect("a blob");
            // The nonce is unique, and with bodies this short it never spans two pages.
            needles.push(Needle::new(format!("{name} {number}"), &blob[..24.min(blob.len())]));
        }
        assert!(needles.len() > before, "{sql} finds nothing");
    };
    blobs("SELECT queue_key FROM sessions WHERE id = ?1", "wrapped queue key");
    blobs("SELECT content_key FROM sessions WHERE id = ?1", "wrapped content key");
    blobs("SELECT body FROM items WHERE session_id = ?1", "encrypted body");
    (session, needles)
}

/// Returns every decrypted page of the record, used or free, including the pages of its log.
fn pages(db: &Connection) -> Vec<u8> {
    let mut bytes: i64 = 0;
    // SAFETY: the handle is that of an open connection, "main" ends with a nul, and `bytes` outlives the call.
    let image = unsafe { ffi::sqlite3_serialize(db.handle(), c"main".as_ptr(), &raw mut bytes, 0) };
    assert!(!image.is_null(), "the record is serialized");
    let length = usize::try_from(bytes).expect("a length");
    // SAFETY: SQLite gave `bytes` readable bytes at `image`, which are copied before it gets them back.
    let pages = unsafe { std::slice::from_raw_parts(image, length) }.to_vec();
    // SAFETY: `image` came from SQLite's allocator, and nothing refers to it from here on.
    unsafe { ffi::sqlite3_free(image.cast()) };
    assert!(pages.starts_with(b"SQLite format 3\0"), "the pages are decrypted");
    pages
}

/// Returns every row of every table as text.
fn rows(db: &Connection) -> String {
    let mut tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").expect("a statement");
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).expect("tables").flatten().collect();
    let mut all = String::new();
    for table in tables {
        let mut statement = db.prepare(&format!("SELECT * FROM {table}")).expect("a statement");
        let columns = statement.column_count();
        let mut found = statement.query([]).expect("rows");
        while let Some(row) = found.next().expect("a row") {
            let values: Vec<String> =
                (0..columns).map(|at| format!("{:?}", row.get_ref(at).expect("a value"))).collect();
            all += &format!("{table}: {}\n", values.join("|"));
        }
    }
    all
}

#[track_caller]
fn check_nothing_left(home: &Path, session: SessionId, needles: &[Needle]) {
    assert!(!home.join("sessions").join(session.to_string()).exists(), "the directory of the session is gone");
    let db = record::open(home);
    for table in [
        "items",
        "summaries",
        "memories",
        "messages",
        "turns",
        "calls",
        "outbound_rows",
        "deliveries",
        "endpoint_words",
    ] {
        let left = record::count(&db, &format!("SELECT count(*) FROM {table} WHERE session_id = '{session}'"));
        assert_eq!(left, 0, "{table}");
    }
    let kept = format!(
        "SELECT count(*) FROM sessions WHERE id = '{session}' AND queue_key IS NULL AND content_key IS NULL AND state = 'removed'"
    );
    assert_eq!(record::count(&db, &kept), 1, "the row keeps only the id");
    let (text, image) = (rows(&db), pages(&db));
    for needle in needles {
        assert!(!needle.is_in(text.as_bytes()), "{} is in a row", needle.name);
        assert!(!needle.is_in(&image), "{} is in a page, perhaps a free one", needle.name);
    }
    drop(db);
    for (path, bytes) in record::files(home) {
        if let Some(needle) = needles.iter().find(|needle| needle.is_in(&bytes)) {
            panic!("{} is in {}", needle.name, path.display());
        }
    }
}

#[test]
fn removed_session_leaves_no_recoverable_data() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        let (session, needles) = start_conversation(&host);
        let sandbox = Process::of(host.session()["pid"].as_i64().expect("awake") as i32).expect("it runs");
        // Before the removal the search finds the needles.
        let (_kept, before) = record::copy_home(&host);
        let image = pages(&record::open(&before));
        let found = needles.iter().filter(|needle| needle.is_in(&image)).count();
        let sealed =
            needles.iter().filter(|needle| ["wrapped", "enc", "note"].iter().any(|kind| needle.name.starts_with(kind)));
        assert_eq!(found, sealed.count(), "{user:?}: the record contains exactly the encrypted bodies and the note");

        let log = host.home.join("state.db-wal");
        let length = |log: &std::path::Path| std::fs::metadata(log).map_or(0, |log| log.len());
        let filled = length(&log);
        host.ctl(&["session", "remove", &session.to_string(), "--yes"]).ok();
        wait_for("the end of its sandbox", || !sandbox.is_alive());
        assert!(length(&log) < filled, "{user:?}: the log was truncated and contains only later writes");
        let (_directory, copy) = record::copy_home(&host);
        check_nothing_left(&copy, session, &needles);
        assert_eq!(record::count(&record::open(&copy), "PRAGMA secure_delete"), 1, "{user:?}");
        // The running host still has a valid ledger.
        assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "), "{user:?}");
        assert_eq!(host.entries("session.removed").len(), 1, "{user:?}");
        host.ctl(&["session", "show", &session.to_string()]).refused("there is no session");
    }
}

#[test]
fn agent_has_no_memory_of_a_removed_session() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        let (session, needles) = start_conversation(&host);
        host.ctl(&["session", "remove", &session.to_string(), "--yes"]).ok();
        let answer = host.chat("a", "what is my name?");
        assert_ne!(answer["session_id"].as_str(), Some(session.to_string().as_str()), "{user:?}");
        let reply = answer["reply"].as_str().expect("a reply");
        assert!(reply.contains("You have not told me your name"), "{user:?}: {reply}");
        let reply = host.say("a", "read bird.txt");
        assert!(reply.contains("could not read bird.txt"), "{user:?}: {reply}");
        if user == HostUser::current() {
            let lines = client::Client::of(&host).history("a");
            assert!(lines.iter().all(|line| !line.to_string().contains(SECRET)), "{user:?}: {lines:?}");
        }
        host.down();
        check_nothing_left(&host.home, session, &needles);
        host.up();
        assert!(host.say("a", "what is my name?").contains("You have not told me your name"), "{user:?}");
    }
}

#[test]
fn interrupted_removal_completes_at_the_next_start() {
    for user in host_users() {
        let mut host = TestHost::with(user, Build::Failpoints, None);
        let (session, needles) = start_conversation(&host);
        host.down();
        host.up_failing_at("erase");
        let host_pid = host.pid().expect("it runs");
        assert_ne!(host.ctl(&["session", "remove", &session.to_string(), "--yes"]).code, 0, "{user:?}");
        wait_for("the death of the host during the removal", || !alive(host_pid));
        assert!(host.home.join("sessions").join(session.to_string()).join("workspace/bird.txt").exists(), "{user:?}");
        host.up();
        let (_directory, copy) = record::copy_home(&host);
        check_nothing_left(&copy, session, &needles);
        assert_eq!(host.status()["sessions"], Value::Array(Vec::new()), "{user:?}");
        assert!(host.say("a", "what is my name?").contains("You have not told me your name"), "{user:?}");
    }
}
