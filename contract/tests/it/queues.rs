//! Both queues: the view of the other side, and the refusals at open.

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{BootId, ItemId, MessageId, TurnId};
use ironclaw_contract::seam::crypt::{Error, SessionKey};
use ironclaw_contract::seam::inbound::{InboundReader, InboundWriter, MessageIn, Turn};
use ironclaw_contract::seam::limits::PROGRESS_ROWS_MAX;
use ironclaw_contract::seam::message::Status;
use ironclaw_contract::seam::outbound::{NewRow, Note, OutboundReader, OutboundWriter};
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

fn message(seq: u64) -> MessageIn {
    let (digest, seal) = (Digest::of(b"body"), Digest::of(b"seal"));
    let (item, boot) = (ItemId::new(), BootId::new());
    MessageIn { bytes: 19, seal: Ref { item, kind: ItemKind::Message, seq, issued_at: 1, boot, digest, seal } }
}

fn turn(messages: &[MessageIn]) -> Turn {
    let messages = messages.iter().map(|message| message.seal.item.message()).collect();
    Turn { turn: TurnId::new(), messages, deadline: 9, cursor: 3 }
}

fn row() -> NewRow {
    NewRow { turn: TurnId::new(), content: r#"{"end":"time"}"#.into(), note: None }
}

fn note(at: i64) -> Note {
    Note { message: MessageId::new(), status: Status::Completed, at }
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
    let messages = [message(2), message(4)];
    let turn = turn(&messages[1..]);
    for _ in 0..2 {
        writer.open_turn(&turn, &messages).expect("projected");
    }
    assert_eq!(reader.messages().expect("read"), messages);
    assert_eq!(reader.open_turn().expect("read"), Some(turn.clone()));
    writer.move_deadline(10).expect("projected");
    assert_eq!(reader.open_turn().expect("read"), Some(Turn { deadline: 10, ..turn.clone() }));
    assert!(writer.open_turn(&turn, &[message(3)]).is_err(), "a number of the wrong parity is never in the queue");
    assert_eq!(reader.messages().expect("read"), messages, "a failed projection changes nothing");
    writer.clear().expect("projected");
    assert_eq!((reader.open_turn().expect("read"), reader.messages().expect("read")), (None, Vec::new()));
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
    let noted = note(5);
    writer.note(&noted).expect("noted");
    let found = reader.look(0).expect("read");
    assert_eq!((&found.progress[0].message, found.progress[0].at), (&noted.message.to_string(), 5));
}

#[test]
fn appended_rows_keep_the_newest_statuses_alone() {
    let (_home, path) = queue_path("outbound.db");
    let mut writer = OutboundWriter::open(&path, &key(1)).expect("made");
    let appended = 2 * PROGRESS_ROWS_MAX as i64;
    let mut last = None;
    for number in 0..appended {
        let note = note(number);
        let row = NewRow { note: Some(note), ..row() };
        last = Some((note.message, writer.append(&row, 2 * number as u64).expect("appended")));
    }
    let mut reader = OutboundReader::open(&path, &key(1)).expect("opened");
    let found = reader.look(0).expect("read");
    let (message, seq) = last.expect("a row");
    assert_eq!(found.progress[0].message, message.to_string(), "the newest one comes first");
    drop(reader);
    drop(writer);
    let kept = count(&path, "SELECT count(*) FROM processing_ack");
    assert_eq!((kept, seq), (appended / 2, 2 * appended as u64 - 1));
}

/// The outbound queue before RFC 0049.
const BEFORE: &str = include_str!("outbound_before.sql");

#[test]
fn outbound_queue_of_the_version_before_is_made_again() {
    let (_home, path) = queue_path("outbound.db");
    drop(raw(&path, BEFORE));
    let row =
        "INSERT INTO messages_out (id, seq, timestamp, kind, content, turn) VALUES ('m', 41, 1, 'chat', '{}', 't');";
    drop(raw(&path, row));
    let refused = refusal(OutboundReader::open(&path, &key(1)));
    assert!(matches!(refused, Error::Schema { .. }), "only its writer changes it: {refused}");
    let mut writer = OutboundWriter::open(&path, &key(1)).expect("made again");
    assert_eq!(writer.append(&self::row(), 41).expect("appended"), 43);
    assert_eq!(OutboundReader::open(&path, &key(1)).expect("opened").look(0).expect("read").rows.len(), 1);
    for change in ["CREATE TABLE extra (x)", "DROP TABLE session_state", "CREATE INDEX i ON messages_out (kind)"] {
        let (_home, path) = queue_path("outbound.db");
        drop(raw(&path, &format!("{BEFORE} {change};")));
        let refused = refusal(OutboundWriter::open(&path, &key(1)));
        assert!(matches!(refused, Error::Schema { .. }), "{change}: {refused}");
    }
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
        "CREATE INDEX i ON messages_out (turn)",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "DROP TABLE messages_out; CREATE VIEW messages_out AS SELECT 1 AS id",
        "DROP TABLE processing_ack",
    ] {
        assert!(matches!(tampered(sql), Error::Schema { .. }), "{sql}");
    }
    let insert = "INSERT INTO messages_out (seq, turn, content)";
    for sql in [
        format!("{insert} VALUES (1, 't', printf('%.*c', 300000, 'x'))"),
        format!("{insert} VALUES (1, printf('%.*c', 3000, 'x'), '')"),
        format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 2 FROM n WHERE i < 1001) {insert} SELECT i, 't', '' FROM n"
        ),
        format!("PRAGMA ignore_check_constraints = ON; {insert} VALUES (2, 't', '')"),
        format!("PRAGMA ignore_check_constraints = ON; {insert} VALUES (-1, 't', '')"),
    ] {
        let error = tampered(&sql);
        assert!(matches!(error, Error::Row { .. } | Error::Sqlite { .. }), "{sql}: {error}");
    }
}

#[test]
fn no_row_is_readable_in_the_file() {
    let (_home, path) = queue_path("inbound.db");
    let mut writer = InboundWriter::open(&path, &key(1)).expect("made");
    let messages = [message(2)];
    writer.open_turn(&turn(&messages), &messages).expect("projected");
    let bytes = std::fs::read(&path).expect("read");
    assert!(!bytes.windows(4).any(|window| window == b"itm_" || window == b"trn_"));
    assert!(!bytes.starts_with(b"SQLite format"));
}
