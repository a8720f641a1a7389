//! A program in place of the sandbox that follows a script and not the contract. Without a script it acts like an honest sandbox.
//!
//! A script is a JSON list of [`Step`]s: [`SCRIPT`] for the next turn, or [`LAUNCH_SCRIPT`] for steps before a message. The program writes
//! its results to [`OUTCOME`] after each step. Only for tests. See `host/tests/security/escape/` for the scripts.

mod files;
mod seen;
mod steps;

use ironclaw_contract::ids::TurnId;
use ironclaw_contract::seam;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::{InboundReader, MessageIn};
use ironclaw_contract::seam::link::{BELL, GATE_FD, Hello, LINK_FD, Welcome, path};
use ironclaw_contract::seam::outbound::{Content, EndReason, NewRow, OutboundWriter};
use ironclaw_contract::seam::seal::Ref;
use ironclaw_contract::seam::socket::{Request, Response, Verdict, frame, read_frame, write_frame};
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use steps::Step;

/// The script of the next turn. The program moves it to [`PLAYED`].
const SCRIPT: &str = "/workspace/script";
/// The newest script with its message, for another launch in the same message.
const PLAYED: &str = "/workspace/played";
/// The file that the test makes when the person has the answer.
const ANSWERED: &str = "/workspace/answered";
/// A script that replaces the handshake while this file exists.
const LAUNCH_SCRIPT: &str = "/workspace/launch-script";
/// The answers, refs and errors so far.
const OUTCOME: &str = "/workspace/outcome.json";
/// The message whose step `once` was played last.
const ONCE: &str = "/workspace/once";

/// The values that a step `keep` saved.
const KEPT: &str = "/workspace/kept.json";
/// The longest wait of a step.
const WAIT_MAX: Duration = Duration::from_secs(30);

struct Attacker {
    link: UnixStream,
    dialled: Vec<UnixStream>,
    leaving: bool,
    done: bool,
    key: Option<SessionKey>,
    inbound: Option<InboundReader>,
    outbound: Option<OutboundWriter>,
    /// The host's cursor at the start of the turn.
    cursor: u64,
    held: Vec<Connection>,
    /// The received values by name: `turn own items output result calls message`.
    seen: Map<String, Value>,
    answers: Vec<Value>,
    errors: Vec<String>,
}

fn main() {
    // SAFETY: the launcher gives every program these two descriptors, and no other code here has them.
    let (link, mut gate) = unsafe { (UnixStream::from_raw_fd(LINK_FD), UnixStream::from_raw_fd(GATE_FD)) };
    gate.write_all(b"!").expect("process 1 of the jail listens at the gate");
    gate.read_exact(&mut [0]).expect("process 1 of the jail opens the gate");
    let mut attacker = Attacker {
        link,
        dialled: Vec::new(),
        leaving: false,
        done: false,
        key: None,
        inbound: None,
        outbound: None,
        cursor: 0,
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
            attacker.leaving = false;
            attacker.play(script);
            attacker.note();
            if !attacker.leaving {
                attacker.end_fairly(turn);
            }
            attacker.dialled.clear();
            attacker.done = true;
            attacker.note();
            attacker.done = false;
        }
    }
}

impl Attacker {
    /// Returns the open turn and its script.
    fn turn(&mut self) -> Option<(TurnId, Vec<Step>)> {
        let inbound = self.inbound.as_ref()?;
        let turn = inbound.open_turn().ok()??;
        let messages = inbound.messages().unwrap_or_default();
        let own = |message: &&MessageIn| turn.messages.contains(&message.seal.item.message());
        let own: Vec<&Ref> = messages.iter().filter(own).map(|message| &message.seal).collect();
        self.cursor = turn.cursor;
        self.answers.clear();
        self.errors.clear();
        let _ = fs::remove_file(ANSWERED);
        let script = script_of(&json!(turn.messages.last()));
        self.seen = Map::new();
        self.seen.insert("turn".into(), json!(turn.turn));
        self.seen.insert("own".into(), json!(own));
        self.seen.insert("message".into(), json!(turn.messages.last()));
        let kept = fs::read(KEPT).ok().and_then(|kept| serde_json::from_slice(&kept).ok());
        self.seen.insert("kept".into(), kept.unwrap_or_default());
        self.ask(&json!(Request::Items { after_seq: 0 }));
        self.answers.clear();
        Some((turn.turn, script))
    }

    fn play(&mut self, script: Vec<Step>) {
        for step in script {
            if let Err(error) = self.step(step) {
                self.errors.push(error.to_string());
            }
            self.note();
        }
    }

    /// Writes the outcome atomically, because a test may read it at any time.
    fn note(&self) {
        let outcome = json!({ "seen": self.seen, "answers": self.answers, "errors": self.errors, "done": self.done });
        let new = format!("{OUTCOME}.new");
        // The write fails if the workspace is missing or full.
        let _ = fs::write(&new, outcome.to_string()).and_then(|()| fs::rename(&new, OUTCOME));
    }

    fn step(&mut self, step: Step) -> Result<(), Box<dyn Error>> {
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
            Step::Sql(statements) => self.connect()?.execute_batch(&self.spelled(&statements))?,
            Step::SqlHeld(statements) => {
                let db = self.connect()?;
                // Reading a row is enough to hold a lock.
                db.execute_batch(&self.spelled(&statements))?;
                self.held.push(db);
            }
            Step::SqlAt { path, sql } => {
                self.open_raw(Path::new(&path), false)?.execute_batch(&self.spelled(&sql))?;
            }
            Step::Remake { key, page } => {
                let made = PathBuf::from("/out/made.db");
                let key = key.or_else(|| Some(self.key.as_ref()?.to_hex().to_string())).ok_or("no key")?;
                let db = Connection::open(&made)?;
                db.execute_batch(&format!("PRAGMA key = \"x'{key}'\"; PRAGMA cipher_page_size = {page};"))?;
                db.execute_batch(seam::schema::OUTBOUND)?;
                drop(db);
                self.outbound = None;
                fs::rename(made, outbound_db())?;
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
                fs::write(outbound_db().with_extension("db-journal"), files::journal(&victim, u32::try_from(pages)?))?;
            }
            Step::Once(steps) => {
                let message = json!(self.seen.get("message")).to_string();
                if fs::read_to_string(ONCE).is_ok_and(|done| done == message) {
                    return Ok(());
                }
                fs::write(ONCE, message)?;
                self.play(steps);
            }
            Step::Repeat { times, step } => {
                let answers = self.answers.len();
                for _ in 0..times {
                    self.answers.truncate(answers);
                    self.step((*step).clone())?;
                }
            }
            Step::Keep => fs::write(KEPT, serde_json::to_vec(&self.seen)?)?,
            Step::AwaitAnswered => await_answered()?,
            Step::Leave => self.leaving = true,
            Step::CloseLink => self.link.shutdown(std::net::Shutdown::Both)?,
            Step::Linger => {
                std::thread::spawn(|| {
                    loop {
                        std::thread::park();
                    }
                });
                // SAFETY: this ends only the current thread, and the other thread uses no value of it.
                unsafe { libc::syscall(libc::SYS_exit, 0) };
            }
            Step::Hang => loop {
                std::thread::park();
            },
            Step::Exit => std::process::exit(0),
            Step::HangUp => self.dialled.clear(),
            Step::Dial(count) => self.dial(count)?,
            Step::Say(bytes) => self.dialled.first_mut().ok_or("no connection was opened")?.write_all(&bytes)?,
            Step::Deaf { request, times } => {
                let request = frame(&self.filled(request))?;
                let socket = self.dialled.first_mut().ok_or("no connection was opened")?;
                (0..times).try_for_each(|_| socket.write_all(&request))?;
            }
            Step::Pipelined(requests) => {
                let requests = requests.map(|request| frame(&self.filled(request)));
                let mut socket = UnixStream::connect(model_sock())?;
                socket.write_all(&requests.into_iter().collect::<io::Result<Vec<_>>>()?.concat())?;
                self.answers.extend([answer(&mut socket), answer(&mut socket)]);
            }
            Step::Descriptors(count) => {
                give_descriptors(&self.link, &[BELL], count)?;
                let mut socket = UnixStream::connect(model_sock())?;
                give_descriptors(&socket, &frame(&Request::Items { after_seq: u64::MAX >> 2 })?, count)?;
                self.answers.push(answer(&mut socket));
            }
            other => files::play(other)?,
        }
        Ok(())
    }

    /// Opens connections and counts the ones that the host keeps open.
    fn dial(&mut self, count: u32) -> io::Result<()> {
        for _ in 0..count {
            self.dialled.push(UnixStream::connect(model_sock())?);
        }
        let items = frame(&Request::Items { after_seq: u64::MAX >> 2 })?;
        let mut held = 0;
        for socket in &mut self.dialled {
            // If the host closed a connection, the write fails or the connection ends without an answer.
            let alive = socket.write_all(&items).is_ok() && answer(socket).get("answer").is_some();
            held += u32::from(alive);
        }
        self.answers.push(json!({ "held": held }));
        Ok(())
    }

    /// Sends a request on a new connection and keeps its result.
    fn ask(&mut self, request: &Value) {
        let answer = UnixStream::connect(model_sock()).and_then(|mut socket| {
            write_frame(&mut socket, request)?;
            Ok(answer(&mut socket))
        });
        let answer = answer.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        match serde_json::from_value(answer.clone()) {
            Ok(Response::Output { item, calls, .. }) => {
                self.seen.entry("first").or_insert_with(|| json!(item));
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

    fn append(&mut self, row: &Value) -> Result<(), Box<dyn Error>> {
        let content = match &row["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let turn = row["turn"].as_str().or(self.seen["turn"].as_str()).ok_or("no turn")?.parse::<TurnId>()?;
        let row = NewRow { turn, content, note: None };
        self.outbound.as_mut().ok_or("no outbound queue")?.append(&row, self.cursor)?;
        Ok(())
    }

    /// Acts like an honest sandbox without tools: requests an output, reports results, requests again, and replies.
    fn end_fairly(&mut self, turn: TurnId) {
        let content = self.fair_answer(turn);
        self.note();
        // After an attack the queue may be broken or the turn closed. Then no row is written, and the host decides.
        if self.append(&json!({ "content": content, "turn": turn })).is_ok() {
            let _ = self.link.write_all(&[BELL]);
        }
    }

    fn fair_answer(&mut self, turn: TurnId) -> Content {
        loop {
            self.ask(&json!(Request::Items { after_seq: 0 }));
            let generate = json!({ "ask": "generate", "turn": turn, "purpose": "reply", "refs": self.seen["items"] });
            self.ask(&generate);
            let answer = serde_json::from_value(self.answers.last().cloned().unwrap_or_default());
            let Ok(Response::Output { item, bytes, calls }) = answer else { return Content::End(EndReason::Failed) };
            if calls.is_empty() {
                return if bytes == 0 { Content::End(EndReason::Empty) } else { Content::Reply(item.item) };
            }
            for call in calls.iter().filter(|call| call.verdict == Verdict::Local) {
                let body = "done".to_owned();
                self.ask(&json!(Request::Report { turn, call_id: call.call_id, ok: true, body }));
            }
        }
    }

    fn connect(&self) -> Result<Connection, Box<dyn Error>> {
        self.open_raw(&outbound_db(), false)
    }

    fn open_raw(&self, path: &Path, read_only: bool) -> Result<Connection, Box<dyn Error>> {
        use rusqlite::OpenFlags;
        let flags = if read_only { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
        let db = Connection::open_with_flags(path, flags)?;
        let key = self.key.as_ref().ok_or("no key")?.to_hex();
        db.execute_batch(&format!("PRAGMA key = \"x'{}'\"; PRAGMA cipher_page_size = 4096;", key.as_str()))?;
        Ok(db)
    }
}

/// Waits until the test says that the person has the answer.
fn await_answered() -> Result<(), Box<dyn Error>> {
    let until = Instant::now() + WAIT_MAX;
    while !Path::new(ANSWERED).exists() {
        if Instant::now() > until {
            return Err("no answer reached the person".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Returns the script for a message: a new one, or the one that an earlier launch began. Messages of a test without a script have none.
fn script_of(message: &Value) -> Vec<Step> {
    if let Ok(script) = fs::read(SCRIPT) {
        let script: Value = serde_json::from_slice(&script).expect("a script of a test");
        fs::write(PLAYED, json!([message, script]).to_string()).expect("the workspace has room");
        fs::remove_file(SCRIPT).expect("it is there");
    }
    let played = fs::read(PLAYED).ok().and_then(|played| serde_json::from_slice::<(Value, Value)>(&played).ok());
    let own = played.filter(|(of, _)| of == message).map(|(_, script)| script);
    own.map_or_else(Vec::new, |script| serde_json::from_value(script).expect("a script of a test"))
}

/// Reads the answer on a connection, which is a frame or the end of the connection.
fn answer(socket: &mut UnixStream) -> Value {
    match read_frame(socket) {
        Ok(Some(frame)) => serde_json::from_slice(&frame).unwrap_or_else(|error| json!({ "error": error.to_string() })),
        Ok(None) => json!({ "closed": true }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => json!({ "closed": true }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Sends bytes together with file descriptors.
fn give_descriptors(socket: &UnixStream, bytes: &[u8], count: usize) -> Result<(), Box<dyn Error>> {
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
    use std::os::fd::AsRawFd;
    let descriptors = vec![socket.as_raw_fd(); count];
    let control = [ControlMessage::ScmRights(&descriptors)];
    sendmsg::<()>(socket.as_raw_fd(), &[io::IoSlice::new(bytes)], &control, MsgFlags::empty(), None)?;
    Ok(())
}

fn outbound_db() -> PathBuf {
    Path::new(path::OUT).join(path::OUTBOUND_DB)
}

fn model_sock() -> PathBuf {
    Path::new(path::RUN).join(path::MODEL_SOCK)
}
