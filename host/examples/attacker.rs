//! A program in the sandbox's place that does what its script says, not what the contract says. Without a script it plays fair.
//!
//! A script is JSON: a list of [`Step`]s. It comes as a file that goes with the message, or, for what happens before there is a
//! message, as [`LAUNCH_SCRIPT`]. What came of it is written to [`OUTCOME`] after each step. For tests; never part of an
//! installation. Next: `host/tests/it/forged.rs` and `hostile.rs`, which write the scripts.

use ironclaw_contract::ids::{CallId, MessageId, TurnId};
use ironclaw_contract::seam;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::InboundReader;
use ironclaw_contract::seam::link::{BELL, GATE_FD, Hello, LINK_FD, Welcome, path};
use ironclaw_contract::seam::message::{Author, Kind};
use ironclaw_contract::seam::outbound::{Chat, EndReason, NewRow, OutboundWriter};
use ironclaw_contract::seam::seal::Ref;
use ironclaw_contract::seam::socket::{Request, Response, Verdict, read_frame, write_frame};
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// In place of the handshake, as long as it lies there.
const LAUNCH_SCRIPT: &str = "/workspace/launch-script";
/// Answers, refs and errors so far.
const OUTCOME: &str = "/workspace/outcome.json";
/// Stands there once a script's `once` was played.
const ONCE: &str = "/workspace/once";

/// One thing to do. In every value `"$name.0.field"` stands for what was seen, in a list for its entries; and
/// `{"$of": "$name.0", "change": "field", "with": {"field": …}}` for the same with other fields.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// Says hello with this fingerprint; null is the right one.
    Hello(Option<String>),
    /// Takes the welcome with the key.
    Welcome,
    /// Opens both queues, as far as they open.
    Open,
    /// Rings so many bells.
    Ring(u32),
    /// Rings for ever.
    Flood,
    /// Writes these bytes to the link.
    Link(Vec<u8>),
    /// One request on the model socket, as it stands here.
    Ask(Value),
    /// A prefix and a text on a new connection to the model socket, then the end of what we write.
    Raw { length: u32, text: String },
    /// A row, through the contract's own writer.
    Row(Value),
    /// Statements on the outbound queue.
    Sql(String),
    /// The same, on a connection that stays open.
    SqlHeld(String),
    /// A read of the inbound queue that never ends.
    HoldInbound,
    /// Puts this in place of the outbound queue: `directory` or `garbage`.
    Plant(String),
    /// A journal beside the outbound queue that asks whoever rolls it back to remove this file.
    Journal(String),
    /// These steps, unless an earlier launch did them.
    Once(Vec<Step>),
    /// Does nothing any more.
    Hang,
    /// Ends the process.
    Exit,
}

struct Attacker {
    link: UnixStream,
    key: Option<SessionKey>,
    inbound: Option<InboundReader>,
    outbound: Option<OutboundWriter>,
    held: Vec<Connection>,
    /// By name: `turn own items output result calls message`.
    seen: Map<String, Value>,
    answers: Vec<Value>,
    errors: Vec<String>,
}

fn main() {
    // SAFETY: the launcher gives every program these two descriptors, and nobody else here has them.
    let (link, mut gate) = unsafe { (UnixStream::from_raw_fd(LINK_FD), UnixStream::from_raw_fd(GATE_FD)) };
    gate.write_all(b"!").expect("process 1 of the jail listens at the gate");
    gate.read_exact(&mut [0]).expect("process 1 of the jail opens the gate");
    let mut attacker = Attacker {
        link,
        key: None,
        inbound: None,
        outbound: None,
        held: Vec::new(),
        seen: Map::new(),
        answers: Vec::new(),
        errors: Vec::new(),
    };
    let launch = match fs::read_to_string(LAUNCH_SCRIPT) {
        Ok(script) => serde_json::from_str(&script).expect("a script of a test"),
        Err(_) => vec![Step::Hello(None), Step::Welcome, Step::Open, Step::Ring(1)],
    };
    attacker.play(launch);
    let mut handled = None;
    loop {
        let mut bells = [0; 64];
        if attacker.link.read(&mut bells).unwrap_or(0) == 0 {
            return;
        }
        if let Some((turn, script)) = attacker.turn().filter(|(turn, _)| handled != Some(*turn)) {
            handled = Some(turn);
            attacker.play(script);
            attacker.note();
            attacker.end_fairly(turn);
        }
    }
}

impl Attacker {
    /// The open turn and the script that came with it.
    fn turn(&mut self) -> Option<(TurnId, Vec<Step>)> {
        let inbound = self.inbound.as_ref()?;
        let turn = inbound.open_turn().ok()??;
        let messages = inbound.messages(0, 64).unwrap_or_default();
        let texts: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        let own: Vec<&Ref> = messages
            .iter()
            .filter(|message| turn.messages.contains(&message.id))
            .map(|message| &message.seal)
            .collect();
        self.answers.clear();
        self.errors.clear();
        let script = messages.iter().rfind(|message| turn.messages.contains(&message.id)).and_then(|message| {
            let last = message.spans.last().filter(|span| matches!(span.author, Author::File { .. }))?;
            serde_json::from_str(&message.content[message.content.len() - last.bytes..]).ok()
        });
        self.seen = Map::new();
        self.seen.insert("turn".into(), json!(turn.turn));
        self.seen.insert("own".into(), json!(own));
        self.seen.insert("message".into(), json!(turn.messages.last()));
        self.seen.insert("texts".into(), json!(texts));
        self.ask(&json!(Request::Items { after_seq: 0 }));
        self.answers.clear();
        Some((turn.turn, script.unwrap_or_default()))
    }

    fn play(&mut self, script: Vec<Step>) {
        for step in script {
            if let Err(error) = self.step(step) {
                self.errors.push(error.to_string());
            }
            self.note();
        }
    }

    /// Whole or not at all: a test may read it at any time.
    fn note(&self) {
        let outcome = json!({ "seen": self.seen, "answers": self.answers, "errors": self.errors });
        let new = format!("{OUTCOME}.new");
        // Before the workspace is there, or when it is full, there is nothing to tell.
        let _ = fs::write(&new, outcome.to_string()).and_then(|()| fs::rename(&new, OUTCOME));
    }

    fn step(&mut self, step: Step) -> Result<(), Box<dyn std::error::Error>> {
        match step {
            Step::Hello(fingerprint) => {
                let fingerprint = fingerprint.unwrap_or_else(seam::fingerprint);
                write_frame(&mut self.link, &Hello { fingerprint, version: "0".to_owned() })?;
            }
            Step::Welcome => {
                let frame = read_frame(&mut self.link)?.ok_or("the host closed the link")?;
                let welcome: Welcome = serde_json::from_slice(&frame)?;
                self.key = SessionKey::from_hex(&welcome.key);
            }
            Step::Open => {
                let key = self.key.as_ref().ok_or("no key")?;
                self.inbound = Some(InboundReader::open(&Path::new(path::IN).join(path::INBOUND_DB), key)?);
                self.outbound = Some(OutboundWriter::open(&outbound_db(), key)?);
            }
            Step::Ring(count) => (0..count).try_for_each(|_| self.link.write_all(&[BELL]))?,
            Step::Flood => loop {
                self.link.write_all(&[BELL; 64])?;
            },
            Step::Link(bytes) => self.link.write_all(&bytes)?,
            Step::Ask(request) => {
                let request = self.filled(request);
                self.ask(&request);
            }
            Step::Raw { length, text } => {
                let mut socket = UnixStream::connect(model_sock())?;
                socket.write_all(&length.to_be_bytes())?;
                socket.write_all(text.as_bytes())?;
                socket.shutdown(std::net::Shutdown::Write)?;
                self.answers.push(answer(&mut socket));
            }
            Step::Row(row) => {
                let row = self.filled(row);
                self.append(&row)?;
            }
            Step::Sql(statements) => self.connect()?.execute_batch(&statements)?,
            Step::SqlHeld(statements) => {
                let db = self.connect()?;
                db.execute_batch(&statements)?;
                self.held.push(db);
            }
            Step::HoldInbound => {
                let db = self.open_raw(&Path::new(path::IN).join(path::INBOUND_DB), true)?;
                db.execute_batch("BEGIN")?;
                db.query_row("SELECT count(*) FROM turns", [], |_| Ok(()))?;
                self.held.push(db);
            }
            Step::Plant(what) => {
                self.outbound = None;
                let _ = fs::remove_file(outbound_db());
                match what.as_str() {
                    "directory" => fs::create_dir(outbound_db())?,
                    _ => fs::write(outbound_db(), [0xa5; 3 * 4096])?,
                }
            }
            Step::Journal(victim) => {
                let pages = fs::metadata(outbound_db())?.len() / 4096;
                fs::write(outbound_db().with_extension("db-journal"), journal(&victim, u32::try_from(pages)?))?;
            }
            Step::Once(steps) => {
                if fs::exists(ONCE)? {
                    return Ok(());
                }
                fs::write(ONCE, "")?;
                self.play(steps);
            }
            Step::Hang => loop {
                std::thread::park();
            },
            Step::Exit => std::process::exit(0),
        }
        Ok(())
    }

    /// Sends a request on a connection of its own and keeps what it gave.
    fn ask(&mut self, request: &Value) {
        let answer = UnixStream::connect(model_sock()).and_then(|mut socket| {
            write_frame(&mut socket, request)?;
            Ok(answer(&mut socket))
        });
        let answer = answer.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        match serde_json::from_value(answer.clone()) {
            Ok(Response::Output { item, calls, .. }) => {
                self.seen.insert("output".into(), json!(item));
                self.seen.insert("calls".into(), json!(calls));
            }
            Ok(Response::Sealed { item, .. }) => {
                self.seen.insert("result".into(), json!(item));
            }
            Ok(Response::Items { items, .. }) => {
                let refs: Vec<&Ref> = items.iter().map(|item| &item.reference).collect();
                self.seen.insert("items".into(), json!(refs));
            }
            Ok(Response::Refused { .. }) | Err(_) => {}
        }
        self.answers.push(answer);
    }

    /// The value with what was seen in place of names.
    fn filled(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => self.found(name),
                None => Value::String(text),
            },
            Value::Array(entries) => {
                let fill = |entry: Value| match entry.as_str().filter(|text| text.starts_with('$')) {
                    Some(name) => match self.found(&name[1..]) {
                        Value::Array(many) => many,
                        one => vec![one],
                    },
                    None => vec![self.filled(entry)],
                };
                entries.into_iter().flat_map(fill).collect()
            }
            Value::Object(mut fields) if fields.contains_key("$of") => {
                let mut of = self.filled(fields["$of"].take());
                if let Some(field) = fields.get("change").and_then(Value::as_str) {
                    of[field] = changed(field, &of[field]);
                }
                for (field, value) in fields.remove("with").iter().filter_map(Value::as_object).flatten() {
                    of[field] = self.filled(value.clone());
                }
                of
            }
            Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, self.filled(value))).collect(),
            other => other,
        }
    }

    fn found(&self, path: &str) -> Value {
        let mut at = &Value::Object(self.seen.clone());
        for step in path.split('.') {
            at = match step.parse::<usize>() {
                Ok(place) => &at[place],
                Err(_) => &at[step],
            };
        }
        at.clone()
    }

    fn append(&mut self, row: &Value) -> Result<(), Box<dyn std::error::Error>> {
        let cursor = self.inbound.as_ref().ok_or("no inbound queue")?.routing()?.unwrap_or_default().outbound_cursor;
        let content = match &row["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let row = NewRow {
            id: MessageId::new(),
            in_reply_to: None,
            timestamp: 0,
            kind: row["kind"].as_str().unwrap_or("chat").parse::<Kind>()?,
            platform_id: None,
            channel_type: None,
            thread_id: None,
            content,
            turn: row["turn"].as_str().or(self.seen["turn"].as_str()).ok_or("no turn")?.parse::<TurnId>()?,
            call_id: row["call"].as_str().map(str::parse::<CallId>).transpose()?,
        };
        self.outbound.as_mut().ok_or("no outbound queue")?.append(&row, cursor)?;
        Ok(())
    }

    /// What an honest sandbox without tools would do: ask, report, ask again, reply.
    fn end_fairly(&mut self, turn: TurnId) {
        let chat = self.fair_answer(turn);
        self.note();
        // A queue that an attack broke, or a turn that it ended, takes no row: then the host has the next word.
        if self.append(&json!({ "content": chat, "turn": turn })).is_ok() {
            let _ = self.link.write_all(&[BELL]);
        }
    }

    fn fair_answer(&mut self, turn: TurnId) -> Chat {
        loop {
            self.ask(&json!(Request::Items { after_seq: 0 }));
            let generate = json!({ "ask": "generate", "turn": turn, "purpose": "reply", "refs": self.seen["items"] });
            self.ask(&generate);
            let answer = serde_json::from_value(self.answers.last().cloned().unwrap_or_default());
            let Ok(Response::Output { item, bytes, calls }) = answer else { return Chat::End(EndReason::Failed) };
            if calls.is_empty() {
                return if bytes == 0 { Chat::End(EndReason::Empty) } else { Chat::Reply(item.item) };
            }
            for call in calls.iter().filter(|call| call.verdict == Verdict::Local) {
                let body = "done".to_owned();
                self.ask(&json!(Request::Report { turn, call_id: call.call_id, ok: true, body }));
            }
        }
    }

    fn connect(&self) -> Result<Connection, Box<dyn std::error::Error>> {
        self.open_raw(&outbound_db(), false)
    }

    fn open_raw(&self, path: &Path, read_only: bool) -> Result<Connection, Box<dyn std::error::Error>> {
        use rusqlite::OpenFlags;
        let flags = if read_only { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
        let db = Connection::open_with_flags(path, flags)?;
        let key = self.key.as_ref().ok_or("no key")?.to_hex();
        db.execute_batch(&format!("PRAGMA key = \"x'{}'\"; PRAGMA cipher_page_size = 4096;", key.as_str()))?;
        Ok(db)
    }
}

/// What comes back on a connection: a frame, or its end.
fn answer(socket: &mut UnixStream) -> Value {
    match read_frame(socket) {
        Ok(Some(frame)) => serde_json::from_slice(&frame).unwrap_or_else(|error| json!({ "error": error.to_string() })),
        Ok(None) => json!({ "closed": true }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => json!({ "closed": true }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Another value of the same shape: one character or one number beside it.
fn changed(field: &str, value: &Value) -> Value {
    match (field, value) {
        ("kind", kind) => json!(if kind == "message" { "output" } else { "message" }),
        (_, Value::Number(number)) => json!(number.as_i64().unwrap_or_default() + 2),
        (_, Value::String(text)) => {
            let (rest, last) = text.split_at(text.len() - 1);
            json!(format!("{rest}{}", if last == "0" { "1" } else { "0" }))
        }
        (_, other) => other.clone(),
    }
}

/// A rollback journal without a page in it, whose super-journal is `victim`: SQLite removes that file once nothing needs it.
fn journal(victim: &str, pages: u32) -> Vec<u8> {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const SECTOR: u32 = 512;
    let mut bytes = MAGIC.to_vec();
    for field in [0, 0, pages, SECTOR, 4096] {
        bytes.extend(u32::to_be_bytes(field));
    }
    bytes.resize(SECTOR as usize, 0);
    let lock_page = 0x4000_0000 / 4096 + 1;
    let checksum: u32 = victim.bytes().map(u32::from).sum();
    bytes.extend(u32::to_be_bytes(lock_page));
    bytes.extend(victim.as_bytes());
    bytes.extend(u32::to_be_bytes(victim.len() as u32));
    bytes.extend(checksum.to_be_bytes());
    bytes.extend(MAGIC);
    bytes
}

fn outbound_db() -> PathBuf {
    Path::new(path::OUT).join(path::OUTBOUND_DB)
}

fn model_sock() -> PathBuf {
    Path::new(path::RUN).join(path::MODEL_SOCK)
}
