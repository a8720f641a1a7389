//! Rows of both queues as the file stores them, column by column. Every value is fixed. See `operator`.

use super::seam::{AT, id, reference};
use super::{Shape, rewritten};
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::{InboundReader, InboundWriter, MessageIn, Turn};
use ironclaw_contract::seam::message::Status;
use ironclaw_contract::seam::outbound::{NewRow, Note, OutboundReader, OutboundWriter};
use ironclaw_contract::seam::seal::ItemKind;
use rusqlite::types::Value as Stored;
use serde_json::{Map, Value};
use std::path::Path;

const KEY: [u8; 32] = [0x4b; 32];

/// Returns every row of every table as SQLite stores it: text, integers and nulls.
fn dump(path: &Path, tables: &[&str]) -> Vec<Shape> {
    let db = rusqlite::Connection::open(path).expect("opened");
    let key = SessionKey::new(KEY).to_hex();
    db.execute_batch(&format!("PRAGMA key = \"x'{}'\"", key.as_str())).expect("keyed");
    let rows = |table: &str| -> Vec<Value> {
        let mut statement = db.prepare(&format!("SELECT * FROM {table} ORDER BY 1")).expect(table);
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let read = |row: &rusqlite::Row<'_>| {
            let mut object = Map::new();
            for (at, column) in columns.iter().enumerate() {
                let value = match row.get(at)? {
                    Stored::Null => Value::Null,
                    Stored::Integer(value) => value.into(),
                    Stored::Text(value) => value.into(),
                    Stored::Real(_) | Stored::Blob(_) => {
                        panic!("{table}.{column}: no table of the seam has such a type")
                    }
                };
                object.insert(column.clone(), value);
            }
            Ok(Value::Object(object))
        };
        statement.query_map([], read).expect(table).collect::<Result<_, _>>().expect(table)
    };
    let shape = |table: &&str| {
        let bytes = serde_json::to_vec(&rows(table)).expect("serializes");
        Shape { of: format!("row of {table}"), ..rewritten::<Value>(&format!("rows.{table}"), bytes) }
    };
    tables.iter().map(shape).collect()
}

pub(super) fn shapes() -> Vec<Shape> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path().canonicalize().expect("exists");
    let mut shapes = inbound(&directory.join("inbound.db"));
    shapes.extend(outbound(&directory.join("outbound.db")));
    shapes
}

fn inbound(path: &Path) -> Vec<Shape> {
    let key = SessionKey::new(KEY);
    let mut writer = InboundWriter::open(path, &key).expect("made");
    let turn = Turn { turn: id("trn", 2), messages: vec![id("msg", 1)], deadline: AT + 120_000, cursor: 3 };
    let message = MessageIn { bytes: 25, seal: reference(ItemKind::Message) };
    writer.open_turn(&turn, std::slice::from_ref(&message)).expect("projected");
    let reader = InboundReader::open(path, &key).expect("opened");
    assert_eq!(reader.messages().expect("read"), [message]);
    assert_eq!(reader.open_turn().expect("read"), Some(turn));
    dump(path, &["messages_in", "turns"])
}

fn outbound(path: &Path) -> Vec<Shape> {
    let key = SessionKey::new(KEY);
    let mut writer = OutboundWriter::open(path, &key).expect("made");
    let note = |status| Note { message: id("msg", 1), status, at: AT };
    let reply = NewRow {
        turn: id("trn", 2),
        content: r#"{"reply":"itm_01kagq8t000000000000000001"}"#.to_owned(),
        note: Some(note(Status::Completed)),
    };
    let content = r#"{"call":"call_01kagq8t000000000000000001"}"#.to_owned();
    let call = NewRow { content, note: None, ..reply.clone() };
    writer.note(&note(Status::Processing)).expect("noted");
    assert_eq!(writer.append(&call, 4).expect("appended"), 5);
    assert_eq!(writer.append(&reply, 4).expect("appended"), 7);
    let found = OutboundReader::open(path, &key).expect("opened").look(4).expect("read");
    assert_eq!((found.rows.len(), found.progress.len(), found.taken.len()), (2, 1, 0));
    dump(path, &["messages_out", "processing_ack"])
}
