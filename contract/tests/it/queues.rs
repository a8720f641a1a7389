//! Both queues: the view of the other side, and the refusals at open.

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{BootId, MessageId, SessionId, TurnId};
use ironclaw_contract::seam::crypt::{Error, SessionKey};
use ironclaw_contract::seam::inbound::{InboundReader, InboundWriter, MessageIn, Routing, Turn};
use ironclaw_contract::seam::limits::PROGRESS_ROWS_MAX;
use ironclaw_contract::seam::message::{Author, Kind, Span, Status};
use ironclaw_contract::seam::outbound::{NewRow, OutboundReader, OutboundWriter};
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn key(byte: u8) -> SessionKey {
    SessionKey::new([byte; 32])
}

fn queue_path(name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().canonicalize().expect("exists").join(name);
    (directory, path)
}

pub fn message(seq: u64) -> MessageIn {
    let id = MessageId::new();
    let content = "the quick brown fox".to_owned();
    MessageIn {
        id,
        seq,
        kind: Kind::Chat,
        timestamp: 1_700_000_000_000,
        platform_id: Some("p".into()),
        channel_type: Some("loopback".into()),
        thread_id: None,
        spans: vec![Span { author: Author::Quoted, bytes: content.len() }],
        source_session_id: Some(SessionId::new()),
        on_wake: false,
        trigger: true,
        sender: "loopback:p".into(),
        principal: "per_x".into(),
        hop: 0,
        seal: Ref {
            item: id.item(),
            kind: ItemKind::Message,
            seq,
            issued_at: 1,
            boot: BootId::new(),
            digest: Digest::of(content.as_bytes()),
            seal: Digest::of(b"seal"),
        },
        content,
    }
}

pub fn row() -> NewRow {
    NewRow {
        id: MessageId::new(),
        in_reply_to: Some(MessageId::new()),
        timestamp: 1,
        kind: Kind::Chat,
        platform_id: None,
        channel_type: None,
        thread_id: None,
        content: r#"{"end":"time"}"#.into(),
        turn: TurnId::new(),
        call_id: None,
    }
}

fn refusal<T>(result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("must be refused"),
        Err(error) => error,
    }
}

#[test]
fn a_wrong_key_is_refused_at_open_and_named() {
    let (_home, path) = queue_path("inbound.db");
    drop(InboundWriter::open(&path, &key(1)).expect("made"));
    for error in [refusal(InboundReader::open(&path, &key(2))), refusal(InboundWriter::open(&path, &key(2)))] {
        assert!(matches!(error, Error::WrongKey { .. }), "{error}");
        assert!(error.to_string().contains("wrong key or damaged file"), "{error}");
    }
}

#[test]
fn queue_that_is_a_link_directory_pipe_or_garbage_is_refused() {
    let (_home, path) = queue_path("outbound.db");
    let elsewhere = path.with_file_name("elsewhere");
    drop(OutboundWriter::open(&elsewhere, &key(1)).expect("made"));
    std::os::unix::fs::symlink(&elsewhere, &path).expect("linked");
    assert!(refusal(OutboundReader::open(&path, &key(1))).to_string().contains("a link"));
    assert!(refusal(OutboundWriter::open(&path, &key(1))).to_string().contains("a link"));
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("made");
    assert!(refusal(OutboundReader::open(&path, &key(1))).to_string().contains("a directory"));
    std::fs::remove_dir(&path).expect("removed");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
    assert!(refusal(OutboundReader::open(&path, &key(1))).to_string().contains("a pipe"));
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, vec![7; 8192]).expect("written");
    assert!(matches!(refusal(OutboundReader::open(&path, &key(1))), Error::WrongKey { .. }));
}

/// Returns whether each descriptor of this process on a file is open for reading alone.
fn is_open_for_reading_alone(path: &Path) -> bool {
    let own = std::fs::read_dir("/proc/self/fd").expect("a list").map(|entry| entry.expect("an entry").path());
    let on_file = own.filter(|fd| std::fs::read_link(fd).is_ok_and(|at| at == path));
    let flags: Vec<u32> = on_file
        .map(|fd| {
            let number = fd.file_name().expect("a number").to_string_lossy().into_owned();
            let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).expect("its flags");
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
            u32::from_str_radix(flags.trim(), 8).expect("octal")
        })
        .collect();
    // The last two bits are the access mode; 0 is reading.
    !flags.is_empty() && flags.iter().all(|flags| flags & 0o3 == 0)
}

#[test]
fn read_only_opener_refuses_a_write() {
    let (_home, path) = queue_path("inbound.db");
    let writer = InboundWriter::open(&path, &key(1)).expect("made");
    assert!(!is_open_for_reading_alone(&path), "a writer writes");
    drop(writer);
    let _reader = InboundReader::open(&path, &key(1)).expect("opened");
    assert!(is_open_for_reading_alone(&path));
    let (_home, path) = queue_path("outbound.db");
    let writer = OutboundWriter::open(&path, &key(1)).expect("made");
    assert!(!is_open_for_reading_alone(&path), "a writer writes");
    drop(writer);
    let _reader = OutboundReader::open(&path, &key(1)).expect("opened");
    assert!(is_open_for_reading_alone(&path));
}

#[test]
fn inbound_reader_sees_each_projection_once() {
    let (_home, path) = queue_path("inbound.db");
    let mut writer = InboundWriter::open(&path, &key(1)).expect("made");
    let reader = InboundReader::open(&path, &key(1)).expect("opened");
    let first = message(2);
    let turn = Turn { turn: TurnId::new(), messages: vec![first.id], deadline: 9, open: true };
    let routing =
        Routing { channel_type: "loopback".into(), platform_id: "p".into(), thread_id: None, outbound_cursor: 3 };
    for _ in 0..2 {
        writer
            .project(|inbound| {
                inbound.message(&first)?;
                inbound.turn(&turn)?;
                inbound.routing(&routing)
            })
            .expect("projected");
    }
    assert_eq!(reader.messages(0, 10).expect("read"), vec![first.clone()]);
    assert_eq!(reader.open_turn().expect("read"), Some(turn.clone()));
    assert_eq!(reader.routing().expect("read"), Some(routing));
    let odd = MessageIn { seq: 3, ..message(4) };
    assert!(writer.project(|inbound| inbound.message(&odd)).is_ok(), "ignored by INSERT OR IGNORE");
    assert_eq!(reader.messages(0, 10).expect("read").len(), 1, "a number of the wrong parity is never in the queue");
    writer.project(|inbound| inbound.turn(&Turn { open: false, ..turn.clone() })).expect("closed");
    assert_eq!(reader.open_turn().expect("read"), None);
}

#[test]
fn outbound_seqs_are_odd_above_the_cursor_and_taken_rows_go() {
    let (_home, path) = queue_path("outbound.db");
    let mut writer = OutboundWriter::open(&path, &key(1)).expect("made");
    assert_eq!(writer.append(&row(), 0).expect("appended"), 1);
    assert_eq!(writer.append(&row(), 0).expect("appended"), 3);
    assert_eq!(writer.append(&row(), 40).expect("appended"), 41);
    assert_eq!(writer.append(&row(), 41).expect("appended"), 43);
    let mut reader = OutboundReader::open(&path, &key(1)).expect("opened");
    let found = reader.look(41).expect("read");
    assert_eq!(found.rows.len(), 1);
    assert_eq!(found.taken.len(), 0, "taken rows are deleted with the next append");
    writer.progress(&MessageId::new(), Status::Processing, ("doing", "read_file"), 5).expect("noted");
    let found = reader.look(0).expect("read");
    assert!(found.progress.iter().any(|note| note.value == "read_file"));
}

#[test]
fn appended_rows_keep_the_newest_statuses_alone() {
    let (_home, path) = queue_path("outbound.db");
    let mut writer = OutboundWriter::open(&path, &key(1)).expect("made");
    let appended = PROGRESS_ROWS_MAX as i64;
    let mut last = None;
    for number in 0..appended {
        let message = MessageId::new();
        let row = NewRow { in_reply_to: Some(message), timestamp: number, ..row() };
        last = Some((message, writer.append(&row, 2 * number as u64).expect("appended")));
    }
    let mut reader = OutboundReader::open(&path, &key(1)).expect("opened");
    let found = reader.look(0).expect("read");
    let (message, seq) = last.expect("a row");
    assert_eq!(found.progress[0].key, message.to_string(), "the newest one comes first");
    drop(reader);
    drop(writer);
    let kept = count(&path, "SELECT count(*) FROM processing_ack");
    assert_eq!((kept, seq), (appended / 2, 2 * appended as u64 - 1));
}

fn tampered(sql: &str) -> Error {
    let (_home, path) = queue_path("outbound.db");
    drop(OutboundWriter::open(&path, &key(1)).expect("made"));
    raw(&path, sql);
    match OutboundReader::open(&path, &key(1)) {
        Err(error) => error,
        Ok(mut reader) => refusal(reader.look(0)),
    }
}

fn raw(path: &Path, sql: &str) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(path).expect("opened");
    db.execute_batch(&format!(
        "PRAGMA cipher_log_level = NONE; PRAGMA key = \"x'{}'\"; {sql}",
        key(1).to_hex().as_str()
    ))
    .expect(sql);
    db
}

fn count(path: &Path, sql: &str) -> i64 {
    raw(path, "").query_row(sql, [], |row| row.get(0)).expect(sql)
}

#[test]
fn a_malicious_outbound_database_is_refused() {
    for sql in [
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON messages_out BEGIN DELETE FROM messages_out; END",
        "CREATE TABLE extra (x)",
        "CREATE INDEX i ON messages_out (kind)",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "DROP TABLE messages_out; CREATE VIEW messages_out AS SELECT 1 AS id",
        "DROP TABLE session_state",
    ] {
        assert!(matches!(tampered(sql), Error::Schema { .. }), "{sql}");
    }
    let insert = "INSERT INTO messages_out (id, seq, timestamp, kind, content, turn)";
    for sql in [
        format!("{insert} VALUES ('m', 1, 1, 'chat', printf('%.*c', 300000, 'x'), 't')"),
        format!("{insert} VALUES (printf('%.*c', 3000, 'x'), 1, 1, 'chat', '', 't')"),
        format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 2 FROM n WHERE i < 1001) {insert} SELECT i, i, 1, 'chat', '', 't' FROM n"
        ),
        format!("PRAGMA ignore_check_constraints = ON; {insert} VALUES ('m', 2, 1, 'chat', '', 't')"),
        format!("PRAGMA ignore_check_constraints = ON; {insert} VALUES ('m', -1, 1, 'chat', '', 't')"),
    ] {
        let error = tampered(&sql);
        assert!(matches!(error, Error::Row { .. } | Error::Sqlite { .. }), "{sql}: {error}");
    }
}

#[test]
fn no_message_is_readable_in_the_file() {
    let (_home, path) = queue_path("inbound.db");
    let mut writer = InboundWriter::open(&path, &key(1)).expect("made");
    writer.project(|inbound| inbound.message(&message(2))).expect("projected");
    let bytes = std::fs::read(&path).expect("read");
    assert!(!bytes.windows(9).any(|window| window == b"brown fox"));
    assert!(!bytes.starts_with(b"SQLite format"));
}
