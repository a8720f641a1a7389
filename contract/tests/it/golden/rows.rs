//! Rows of both queues as the file stores them, column by column. Every value is fixed. See `operator`.

use super::seam::{AT, id, reference};
use super::{Shape, rewritten};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::{InboundReader, InboundWriter, MessageIn, Routing, Turn};
use ironclaw_contract::seam::message::{Author, Kind, Span, Status};
use ironclaw_contract::seam::outbound::{NewRow, OutboundReader, OutboundWriter};
use ironclaw_contract::seam::seal::ItemKind;
use rusqlite::types::Value as Stored;
use serde_json::{Map, Value};
use std::path::Path;

const KEY: [u8; 32] = [0x4b; 32];

fn message() -> MessageIn {
    MessageIn {
        id: id("msg", 1),
        seq: 4,
        kind: Kind::Chat,
        timestamp: AT,
        platform_id: Some("per_01kagq8t000000000000000001".to_owned()),
        channel_type: Some("loopback".to_owned()),
        thread_id: None,
        content: "What stands in the notes?".to_owned(),
        source_session_id: Some(id("ses", 2)),
        on_wake: true,
        trigger: true,
        sender: "loopback:per_01kagq8t000000000000000001".to_owned(),
        principal: id::<PersonId>("per", 1).to_string(),
        spans: vec![
            Span { author: Author::Person { person: id("per", 1) }, bytes: 20 },
            Span { author: Author::Quoted, bytes: 5 },
        ],
        hop: 1,
        seal: reference(ItemKind::Message),
    }
}

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
    let turn =
        |number, open| Turn { turn: id("trn", number), messages: vec![id("msg", 1)], deadline: AT + 120_000, open };
    let routing = Routing {
        channel_type: "loopback".to_owned(),
        platform_id: "per_01kagq8t000000000000000001".to_owned(),
        thread_id: None,
        outbound_cursor: 3,
    };
    let project = writer.project(|inbound| {
        inbound.message(&message())?;
        inbound.turn(&turn(1, false))?;
        inbound.turn(&turn(2, true))?;
        inbound.routing(&routing)?;
        inbound.delivered(&id("msg", 9), Status::Delivered.name(), AT + 7)
    });
    project.expect("projected");
    let reader = InboundReader::open(path, &key).expect("opened");
    assert_eq!(reader.messages(0, 10).expect("read"), [message()]);
    assert_eq!(reader.open_turn().expect("read"), Some(turn(2, true)));
    assert_eq!(reader.routing().expect("read"), Some(routing));
    assert_eq!(reader.delivered(&id("msg", 9)).expect("read"), Some(("delivered".to_owned(), AT + 7)));
    dump(path, &["messages_in", "turns", "session_routing", "delivered"])
}

fn outbound(path: &Path) -> Vec<Shape> {
    let key = SessionKey::new(KEY);
    let mut writer = OutboundWriter::open(path, &key).expect("made");
    let reply = NewRow {
        id: id("msg", 9),
        in_reply_to: Some(id("msg", 1)),
        timestamp: AT,
        kind: Kind::Chat,
        platform_id: Some("per_01kagq8t000000000000000001".to_owned()),
        channel_type: Some("loopback".to_owned()),
        thread_id: None,
        content: r#"{"reply":"itm_01kagq8t000000000000000001"}"#.to_owned(),
        turn: id("trn", 2),
        call_id: None,
    };
    let action = NewRow {
        id: id("msg", 8),
        in_reply_to: None,
        kind: Kind::System,
        content: r#"{"action":"schedule_task","prompt":"water the plants"}"#.to_owned(),
        call_id: Some(id("call", 1)),
        ..reply.clone()
    };
    writer.progress(&id("msg", 1), Status::Processing, ("turn", "trn_01kagq8t000000000000000002"), AT).expect("noted");
    assert_eq!(writer.append(&action, 4).expect("appended"), 5);
    assert_eq!(writer.append(&reply, 4).expect("appended"), 7);
    let found = OutboundReader::open(path, &key).expect("opened").look(4).expect("read");
    assert_eq!((found.rows.len(), found.progress.len(), found.taken.len()), (2, 2, 0));
    dump(path, &["messages_out", "processing_ack", "session_state"])
}
