//! Commit and read-back of one row: the encrypted queues beside plain SQLite with the same statements and pragmas.
//!
//! Absolute figures depend on the machine; the ratio within a pair depends on this code. See `docs/performance.md`.
//! Run with `cargo bench -p ironclaw-contract --features queues`.

use divan::{Bencher, black_box};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{BootId, CallId, MessageId, PersonId, TurnId};
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::{InboundReader, InboundWriter, MessageIn};
use ironclaw_contract::seam::message::{Author, Kind, Span};
use ironclaw_contract::seam::outbound::{NewRow, OutboundReader, OutboundWriter};
use ironclaw_contract::seam::schema;
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::PathBuf;
use tempfile::TempDir;

fn main() {
    divan::main();
}

/// Makes a directory on a real disk, on which `synchronous=FULL` has an effect.
fn queue_path(name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let path = directory.path().canonicalize().expect("exists").join(name);
    (directory, path)
}

fn key() -> SessionKey {
    SessionKey::new([7; 32])
}

fn message(seq: u64) -> MessageIn {
    let id = MessageId::new();
    let person = PersonId::new();
    let content = "Please read the notes and tell me what is due this week.".to_owned();
    MessageIn {
        id,
        seq,
        kind: Kind::Chat,
        timestamp: 1_795_000_000_123,
        platform_id: Some(person.to_string()),
        channel_type: Some("loopback".to_owned()),
        thread_id: None,
        source_session_id: None,
        on_wake: false,
        trigger: true,
        sender: format!("loopback:{person}"),
        principal: person.to_string(),
        spans: vec![Span { author: Author::Person { person }, bytes: content.len() }],
        hop: 0,
        seal: Ref {
            item: id.item(),
            kind: ItemKind::Message,
            seq,
            issued_at: 1_795_000_000_123,
            boot: BootId::new(),
            digest: Digest::of(content.as_bytes()),
            seal: Digest::of(b"seal"),
        },
        content,
    }
}

fn row() -> NewRow {
    NewRow {
        id: MessageId::new(),
        in_reply_to: None,
        timestamp: 1_795_000_000_123,
        kind: Kind::Chat,
        platform_id: Some("per_x".to_owned()),
        channel_type: Some("loopback".to_owned()),
        thread_id: None,
        content: r#"{"reply":"itm_01kagq8t000000000000000001"}"#.to_owned(),
        turn: TurnId::new(),
        call_id: Some(CallId::new()),
    }
}

/// Opens both ends with the pragmas of the openers and without a key.
fn plain(path: &PathBuf, schema: &str, synchronous: &str) -> (Connection, Connection) {
    let writer = Connection::open(path).expect("made");
    writer.execute_batch(&format!("PRAGMA page_size = 4096; PRAGMA mmap_size = 0; PRAGMA journal_mode = DELETE; PRAGMA synchronous = {synchronous}; {schema}")).expect("set up");
    let reader = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opened");
    reader.execute_batch("PRAGMA mmap_size = 0; PRAGMA query_only = ON;").expect("set up");
    (writer, reader)
}

/// The host projects one message, the sandbox reads it (`synchronous=OFF`).
#[divan::bench_group(sample_count = 200)]
mod inbound {
    use super::*;

    #[divan::bench]
    fn encrypted(bencher: Bencher<'_, '_>) {
        let (_home, path) = queue_path("inbound.db");
        let mut writer = InboundWriter::open(&path, &key()).expect("made");
        let reader = InboundReader::open(&path, &key()).expect("opened");
        let mut seq = 0;
        bencher.bench_local(|| {
            seq += 2;
            let message = message(seq);
            let projected = writer.project(|inbound| {
                inbound.clear()?;
                inbound.message(&message)
            });
            projected.expect("projected");
            assert_eq!(black_box(reader.messages(seq - 1, 8).expect("read")).len(), 1);
        });
    }

    #[divan::bench]
    fn plain(bencher: Bencher<'_, '_>) {
        let (_home, path) = queue_path("inbound.db");
        let (mut writer, reader) =
            super::plain(&path, &format!("PRAGMA secure_delete = ON; {}", schema::INBOUND), "OFF");
        let mut seq = 0;
        bencher.bench_local(|| {
            seq += 2;
            let m = message(seq);
            let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate).expect("begun");
            tx.execute("DELETE FROM turns WHERE state = 'closed'", []).expect("deleted");
            tx.execute("DELETE FROM messages_in WHERE seq < ?1", [seq as i64]).expect("deleted");
            let values = params![
                m.id.to_string(),
                m.seq as i64,
                m.kind.name(),
                m.timestamp,
                m.platform_id,
                m.channel_type,
                m.thread_id,
                m.content,
                None::<String>,
                m.on_wake,
                m.trigger,
                m.sender,
                m.principal,
                canonical::to_string(&m.spans),
                m.hop,
                canonical::to_string(&m.seal),
            ];
            tx.prepare_cached(
                "INSERT OR IGNORE INTO messages_in VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)",
            )
            .expect("prepared")
            .execute(values)
            .expect("inserted");
            tx.commit().expect("committed");
            let mut select = reader
                .prepare_cached("SELECT * FROM messages_in WHERE seq > ?1 ORDER BY seq LIMIT 8")
                .expect("prepared");
            let read = select.query_map([seq as i64 - 1], |row| {
                let spans: Vec<Span> = serde_json::from_str(&row.get::<_, String>(13)?).expect("spans");
                let seal: Ref = serde_json::from_str(&row.get::<_, String>(15)?).expect("a ref");
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(7)?, row.get::<_, String>(11)?, spans, seal))
            });
            assert_eq!(black_box(read.expect("read").collect::<Result<Vec<_>, _>>().expect("read")).len(), 1);
        });
    }
}

/// The sandbox appends one row, the reader takes it (`synchronous=FULL`).
#[divan::bench_group(sample_count = 200)]
mod outbound {
    use super::*;

    #[divan::bench]
    fn encrypted(bencher: Bencher<'_, '_>) {
        let (_home, path) = queue_path("outbound.db");
        let mut writer = OutboundWriter::open(&path, &key()).expect("made");
        let mut reader = OutboundReader::open(&path, &key()).expect("opened");
        let mut cursor = 0;
        bencher.bench_local(|| {
            let seq = writer.append(&row(), cursor).expect("appended");
            assert_eq!(black_box(reader.look(cursor).expect("read")).rows.len(), 1);
            cursor = seq;
        });
    }

    #[divan::bench]
    fn plain(bencher: Bencher<'_, '_>) {
        let (_home, path) = queue_path("outbound.db");
        let (mut writer, reader) = super::plain(&path, schema::OUTBOUND, "FULL");
        let mut cursor = 0i64;
        bencher.bench_local(|| {
            let r = row();
            let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate).expect("begun");
            tx.prepare_cached("DELETE FROM messages_out WHERE seq <= ?1").expect("prepared").execute([cursor]).expect("deleted");
            let seq: i64 = tx
                .prepare_cached(
                    "INSERT INTO messages_out (id, seq, timestamp, kind, platform_id, channel_type, content, turn, call_id) \
                     SELECT ?1, (max(coalesce((SELECT max(seq) FROM messages_out), 0), ?2) + 1) | 1, ?3,?4,?5,?6,?7,?8,?9 RETURNING seq",
                )
                .expect("prepared")
                .query_row(
                    params![
                        r.id.to_string(), cursor, r.timestamp, r.kind.name(), r.platform_id, r.channel_type, r.content,
                        r.turn.to_string(), r.call_id.map(|id| id.to_string()),
                    ],
                    |row| row.get(0),
                )
                .expect("inserted");
            tx.commit().expect("committed");
            // The work of one look: one snapshot, the schema, the rows, the progress.
            let snapshot = reader.unchecked_transaction().expect("begun");
            let read = |sql: &str| {
                let mut statement = snapshot.prepare_cached(sql).expect("prepared");
                let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("read");
                rows.collect::<Result<Vec<_>, _>>().expect("read")
            };
            black_box(read("SELECT coalesce(sql, type || ' ' || name) FROM sqlite_master LIMIT 64"));
            assert_eq!(black_box(read("SELECT id, seq, in_reply_to, timestamp, kind, platform_id, channel_type, thread_id, content, turn, call_id FROM messages_out ORDER BY seq LIMIT 513")).len(), 1);
            black_box(read("SELECT message_id, status, status_changed FROM processing_ack ORDER BY status_changed DESC LIMIT 32"));
            black_box(read("SELECT key, value, updated_at FROM session_state ORDER BY updated_at DESC LIMIT 32"));
            cursor = seq;
        });
    }
}
