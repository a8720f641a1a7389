//! Commit and read-back of one row: the encrypted queues beside plain SQLite with the same statements and pragmas.
//!
//! Absolute figures depend on the machine; the ratio within a pair depends on this code. See `docs/performance.md`.
//! Run with `cargo bench -p ironclaw-contract --features queues`.

use divan::{Bencher, black_box};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{BootId, ItemId, MessageId, TurnId};
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::{InboundReader, InboundWriter, MessageIn, Turn};
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
    let (digest, seal) = (Digest::of(b"body"), Digest::of(b"seal"));
    let (item, boot, issued_at) = (ItemId::new(), BootId::new(), 1_795_000_000_123);
    MessageIn { bytes: 56, seal: Ref { item, kind: ItemKind::Message, seq, issued_at, boot, digest, seal } }
}

fn turn() -> Turn {
    Turn { turn: TurnId::new(), messages: vec![MessageId::new()], deadline: 1_795_000_000_123, cursor: 3 }
}

fn row() -> NewRow {
    NewRow { turn: TurnId::new(), content: r#"{"reply":"itm_01kagq8t000000000000000001"}"#.to_owned(), note: None }
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
            writer.open_turn(&turn(), &[message(seq)]).expect("projected");
            assert_eq!(black_box(reader.messages().expect("read")).len(), 1);
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
            let (t, m) = (turn(), message(seq));
            let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate).expect("begun");
            let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
                tx.prepare_cached(sql).expect("prepared").execute(values).expect("executed")
            };
            run("DELETE FROM turns WHERE true", &[]);
            run("DELETE FROM messages_in WHERE true", &[]);
            run(
                "INSERT INTO messages_in VALUES (?1,?2,?3)",
                params![seq as i64, m.bytes, canonical::to_string(&m.seal)],
            );
            let messages = canonical::to_string(&t.messages);
            run(
                "INSERT INTO turns VALUES (?1,?2,?3,?4)",
                params![t.turn.to_string(), messages, t.deadline, t.cursor as i64],
            );
            tx.commit().expect("committed");
            let mut select =
                reader.prepare_cached("SELECT bytes, seal FROM messages_in ORDER BY seq").expect("prepared");
            let read = select.query_map([], |row| {
                let seal: Ref = serde_json::from_str(&row.get::<_, String>(1)?).expect("a ref");
                Ok((row.get::<_, i64>(0)?, seal))
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
            tx.prepare_cached("DELETE FROM messages_out WHERE seq <= ?1")
                .expect("prepared")
                .execute([cursor])
                .expect("deleted");
            let seq: i64 = tx
                .prepare_cached(
                    "INSERT INTO messages_out (seq, turn, content) \
                     SELECT (max(coalesce((SELECT max(seq) FROM messages_out), 0), ?1) + 1) | 1, ?2, ?3 RETURNING seq",
                )
                .expect("prepared")
                .query_row(params![cursor, r.turn.to_string(), r.content], |row| row.get(0))
                .expect("inserted");
            tx.commit().expect("committed");
            // The work of one look: one snapshot, the schema, the rows, the progress.
            let snapshot = reader.unchecked_transaction().expect("begun");
            let read = |sql: &str, column: usize| {
                let mut statement = snapshot.prepare_cached(sql).expect("prepared");
                let rows = statement.query_map([], |row| row.get::<_, String>(column)).expect("read");
                rows.collect::<Result<Vec<_>, _>>().expect("read")
            };
            black_box(read("SELECT coalesce(sql, type || ' ' || name) FROM sqlite_master LIMIT 64", 0));
            let rows = read("SELECT seq, turn, content FROM messages_out ORDER BY seq LIMIT 513", 2);
            assert_eq!(black_box(rows).len(), 1);
            black_box(read(
                "SELECT message_id, status, status_changed FROM processing_ack ORDER BY status_changed DESC LIMIT 32",
                0,
            ));
            cursor = seq;
        });
    }
}
