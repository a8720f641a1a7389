//! A fake host: answers HTTP/1.1 on a unix socket as each test defines, and records the requests.
//!
//! Serves one request on each connection. See [`crate::questions`] for its simplest use.

use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Returns a command of the built binary with a home and a fixed environment.
pub fn ironctl(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ironctl"));
    command.env_remove("IRONCLAW_HOME").env("TZ", "UTC").stdin(Stdio::null());
    command.arg("--home").arg(home);
    command
}

/// Returns exit code, stdout and stderr.
pub fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("ironctl prints UTF-8");
    (output.status.code().expect("not killed"), text(output.stdout), text(output.stderr))
}

/// Reads one JSON document.
pub fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("one JSON document: {error}: {text}"))
}

/// Returns the code of a failure that was printed for a script.
pub fn code_of(err: &str) -> String {
    json_of(err)["error"]["code"].as_str().expect("a code").to_owned()
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Method and path, e.g. `GET /v1/status`.
    pub line: String,
    /// The authorization header.
    pub token: String,
    /// The JSON body, or null.
    pub body: Value,
}

/// An answer of the fake host.
pub struct Answer {
    status: u16,
    kind: &'static str,
    body: String,
    /// True if the content length is larger than the body.
    hangs: bool,
    /// Later server-sent events; the stream ends when their sender is dropped.
    later: Option<Receiver<(&'static str, Value)>>,
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

impl Answer {
    /// Returns a success with this body.
    pub fn json(body: Value) -> Self {
        Self { status: 200, kind: "application/json", body: body.to_string(), hangs: false, later: None }
    }

    /// Returns a refusal.
    pub fn refusal(code: &str, message: &str, hint: &str) -> Self {
        let body = json!({"error": {"code": code, "message": message, "hint": hint}});
        Self { status: 409, kind: "application/json", body: body.to_string(), hangs: false, later: None }
    }

    /// Returns the refusal of an unknown object.
    pub fn missing(code: &str, message: &str) -> Self {
        Self { status: 404, ..Self::refusal(code, message, "") }
    }

    /// Returns an internal error.
    pub fn breakdown(message: &str) -> Self {
        Self { status: 500, ..Self::refusal("internal", message, "`ironctl logs` has more") }
    }

    /// Closes the connection without an answer, as a killed host does.
    pub fn closed() -> Self {
        Self { status: 0, ..Self::json(Value::Null) }
    }

    /// Returns server-sent events and ends the stream.
    pub fn events(events: &[(&str, Value)]) -> Self {
        let body = events.iter().map(|(name, data)| event(name, data));
        Self { status: 200, kind: "text/event-stream", body: body.collect(), hangs: false, later: None }
    }

    /// Returns the server-sent events that a test sends.
    pub fn later_events(later: Receiver<(&'static str, Value)>) -> Self {
        Self { later: Some(later), ..Self::events(&[]) }
    }

    /// Returns server-sent events and keeps the stream open.
    pub fn hanging_events(events: &[(&str, Value)]) -> Self {
        Self { hangs: true, ..Self::events(events) }
    }
}

/// A fake host and its home.
pub struct FakeHost {
    /// The home; removed on drop.
    pub home: TempDir,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeHost {
    /// Starts a host that answers with `answer(method and path, request)`.
    pub fn new(answer: impl Fn(&str, &Asked) -> Answer + Send + 'static) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let host = Self::silent(home, answer);
        host.write_run_file();
        host
    }

    /// Starts a host without a run file, so that clients do not find it yet.
    pub fn silent(home: TempDir, answer: impl Fn(&str, &Asked) -> Answer + Send + 'static) -> Self {
        fs::set_permissions(home.path(), Permissions::from_mode(0o700)).expect("own directory");
        let listener = UnixListener::bind(home.path().join("api.sock")).expect("a short path");
        let token = home.path().join("owner.token");
        fs::write(&token, "tok_secret\n").expect("written");
        fs::set_permissions(token, Permissions::from_mode(0o600)).expect("own file");
        fs::write(home.path().join("state.db"), "a record").expect("written");
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let kept = Arc::clone(&asked);
        // The thread ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &kept, &answer);
            }
        });
        Self { home, asked }
    }

    /// Returns the content of the run file.
    pub fn run_file(&self) -> String {
        let socket = self.home.path().join("api.sock");
        json!({"pid": 4242, "socket": socket, "version": "0.1.0"}).to_string()
    }

    /// Writes the run file, so that clients find the host.
    pub fn write_run_file(&self) {
        fs::write(self.home.path().join("run.json"), self.run_file()).expect("written");
    }

    /// Returns every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no test panics while it holds this").clone()
    }

    /// Returns every POST so far, without those that only take unread replies.
    pub fn posted(&self) -> Vec<Asked> {
        let is_act = |asked: &Asked| asked.line.starts_with("POST") && !asked.line.ends_with("/unread");
        self.asked().into_iter().filter(is_act).collect()
    }

    /// Waits for a request that ends with this path.
    pub fn wait_for_request(&self, path: &str) {
        let until = Instant::now() + Duration::from_secs(30);
        while !self.asked().iter().any(|asked| asked.line.ends_with(path)) {
            assert!(Instant::now() < until, "{:?}", self.asked());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs ironctl against this host; returns exit code, stdout and stderr.
    pub fn ironctl(&self, words: &[&str]) -> (i32, String, String) {
        ended(ironctl(self.home.path()).args(words).output().expect("ironctl runs"))
    }

    /// Runs a command that succeeds; returns its stdout.
    pub fn output(&self, words: &[&str]) -> String {
        let (code, out, err) = self.ironctl(words);
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }

    /// Runs a command that succeeds without a word on stderr; returns its stdout.
    pub fn quiet(&self, words: &[&str]) -> String {
        let (code, out, err) = self.ironctl(words);
        assert_eq!((code, err.as_str()), (0, ""), "{words:?}: {out}");
        out
    }

    /// Runs a command for a script that succeeds; returns its document.
    pub fn json(&self, words: &[&str]) -> Value {
        json_of(&self.output(&[words, &["--json"]].concat()))
    }

    /// Runs a command for a script that fails; returns its exit code and the code of the failure.
    pub fn failed(&self, words: &[&str]) -> (i32, String) {
        let (code, _, err) = self.ironctl(&[words, &["--json"]].concat());
        (code, code_of(&err))
    }

    /// Runs ironctl with this text on its stdin, from a pipe.
    pub fn piped(&self, words: &[&str], text: &str) -> (i32, String, String) {
        let mut command = ironctl(self.home.path());
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("ironctl runs");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("written");
        ended(child.wait_with_output().expect("ironctl ends"))
    }
}

/// Completes the answer to a request for a list that may be cut: a test writes its entries alone, and then there are no more.
fn with_its_list(line: &str, answer: Answer) -> Answer {
    let path = line.split_once(' ').map_or(line, |(_, path)| path);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let named = match path {
        "/v1/waiting" => "entries",
        "/v1/dead" => "letters",
        path if path.starts_with("/v1/agents/") && path.ends_with("/history") => "lines",
        path if path.ends_with("/threads") => "threads",
        path if path.starts_with("/v1/agents/") && path.ends_with("/unread") => "replies",
        _ => return answer,
    };
    match serde_json::from_str::<Value>(&answer.body) {
        Ok(Value::Array(entries)) => Answer { body: json!({ named: entries }).to_string(), ..answer },
        _ => answer,
    }
}

fn serve(stream: UnixStream, kept: &Mutex<Vec<Asked>>, answer: &impl Fn(&str, &Asked) -> Answer) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut line = String::new();
    let mut asked = Asked { line: String::new(), token: String::new(), body: Value::Null };
    let mut length = 0;
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        let text = line.trim_end().to_owned();
        line.clear();
        let lower = text.to_ascii_lowercase();
        if text.is_empty() {
            break;
        } else if asked.line.is_empty() {
            asked.line = text.trim_end_matches(" HTTP/1.1").to_owned();
        } else if lower.starts_with("authorization:") {
            asked.token = text["authorization:".len()..].trim().to_owned();
        } else if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    if asked.line.is_empty() {
        return;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the whole body");
    asked.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let answer = with_its_list(&asked.line, answer(&asked.line, &asked));
    kept.lock().expect("no test panics while it holds this").push(asked);
    let Answer { status, kind, body, hangs, later } = answer;
    if let Some(later) = later {
        let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_owned();
        // The thread ends with the sender of the events, or with the client.
        std::thread::spawn(move || {
            let events = later.into_iter().map(|(name, data)| event(name, &data));
            std::iter::once(head).chain(events).try_for_each(|part| (&stream).write_all(part.as_bytes()))
        });
        return;
    }
    if status == 0 {
        return;
    }
    let length = body.len() + usize::from(hangs);
    if hangs {
        // The thread ends with the test process.
        std::mem::forget(stream.try_clone().expect("a second handle"));
    }
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    // A killed client does not read its answer.
    let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
}

/// Returns the answer to `GET /v1/status` with one awake session and `pid` as the process of the host.
pub fn status(home: &Path, pid: u32) -> Value {
    json!({
        "host": {
            "version": "0.1.0", "pid": pid, "home": home, "started_at": "2026-01-02T03:04:05.678Z",
            "fingerprint": "ab".repeat(32), "launcher_pid": 4243, "ledger_entries": 7,
            "warnings": ["mode is dangerous_warn"]
        },
        "sessions": [{
            "id": "ses_00000000000000000000000001", "agent": "assistant", "state": "awake", "mode": "enforce",
            "origin": "loopback:per_00000000000000000000000001", "waiting": 0, "pid": 4300,
            "jail": {
                "namespaces": {"net": 1}, "own_namespaces": ["net", "user"], "seccomp": 2,
                "seccomp_filters": 1, "capabilities": {"effective": "0000000000000000"},
                "no_new_privs": true, "landlock": true, "landlock_abi": 6,
                "interfaces": ["lo down"], "uid": 65534, "gid": 65534, "root": ["in", "out"],
                "mounts": ["/in ro"]
            },
            "reader": null
        }]
    })
}

/// Returns an agent of this name.
pub fn agent(name: &str) -> Value {
    json!({
        "id": "agt_00000000000000000000000001", "name": name, "model": "scripted", "persona": "", "enabled_tools": [],
        "created_at": "2026-01-02T03:04:05Z", "sessions": 1
    })
}

/// Returns the answer to a recorded message.
pub fn recorded() -> Answer {
    Answer::json(
        json!({"message_id": "msg_00000000000000000000000001", "session_id": "ses_00000000000000000000000001"}),
    )
}

/// Returns a message, settled if it has a `reply` or a `reason`.
pub fn view(reply: Option<&str>, reason: Option<&str>) -> Value {
    json!({
        "message_id": "msg_00000000000000000000000001", "session_id": "ses_00000000000000000000000001", "turn_id": "trn_00000000000000000000000001",
        "status": if reply.is_some() { "delivered" } else { "queued" },
        "reply": reply, "notice": false, "receipt": if reply.is_some() { "received" } else { "pending" },
        "reason": reason
    })
}

/// Returns a message that a notice of the host settled.
pub fn notice(text: &str) -> Value {
    let mut view = view(Some(text), None);
    view["notice"] = true.into();
    view
}

/// A directory with `ironctl` and the fake binaries of `fake_binary.sh`.
pub struct Programs {
    pub directory: TempDir,
    /// The path of `ironctl`.
    pub ironctl: PathBuf,
}

impl Programs {
    pub fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let ironctl = directory.path().join("ironctl");
        fs::hard_link(env!("CARGO_BIN_EXE_ironctl"), &ironctl).expect("same file system");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fake_binary.sh");
        for name in ["ironclaw-host", "ironclaw-sandbox"] {
            symlink(&script, directory.path().join(name)).expect("linked");
        }
        Self { directory, ironctl }
    }

    /// Writes a file that the fake binaries read.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.directory.path().join(name), text).expect("written");
    }

    /// Returns the command lines of the fake binaries so far.
    pub fn asked(&self) -> String {
        fs::read_to_string(self.directory.path().join("asked")).expect("one was run")
    }

    /// Returns a command of `ironctl` with a home.
    pub fn command(&self, home: &Path) -> Command {
        let mut command = Command::new(&self.ironctl);
        command.env_remove("IRONCLAW_HOME").stdin(Stdio::null()).arg("--home").arg(home);
        command
    }

    /// Runs `ironctl` with a home; returns exit code, stdout and stderr.
    pub fn run(&self, home: &Path, words: &[&str]) -> (i32, String, String) {
        ended(self.command(home).args(words).output().expect("ironctl runs"))
    }
}
