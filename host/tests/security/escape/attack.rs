//! A host whose sandbox is the program `examples/attacker`, and the scripts that a test gives to this attacker.
//!
//! Agent `a` runs the scripts; agent `b` must not be disturbed. This file has no expectations. See `attempt`.

use crate::support::host_fixture::{Answer, Build, TestHost, programs};
use crate::support::jail_fixture::{HostUser, example};
use crate::support::processes::is_stocked;
use crate::support::record;
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Settings for fast failures: two launches and almost no backoff.
pub(crate) const FAST_FAILURE: &str = "[session]\nlaunch_attempts_max = 2\nbackoff_ms = 5\n";

/// An additional script of the model. Settings refer to it by the word `SCRIPT`.
const SCRIPT: &str = include_str!("model.toml");

/// A host with two agents whose program is the attacker.
pub(crate) struct Attacked {
    pub(crate) host: TestHost,
}

/// The result of a script.
pub(crate) struct Played {
    /// The output of `chat --json`.
    pub(crate) chat: Value,
    /// The values that the attacker saw, by name.
    pub(crate) seen: Value,
    /// The host's answers, in order.
    pub(crate) answers: Vec<Value>,
    /// Steps that failed in the attacker's own process.
    pub(crate) errors: Vec<Value>,
}

impl Attacked {
    pub(crate) fn new(config: &str) -> Self {
        let attacker = example("attacker");
        assert!(attacker.exists(), "`cargo test` builds the examples, `cargo test --test it` alone does not");
        let host = TestHost::with(HostUser::Ordinary, Build::Plain, Some(&attacker));
        let script = host.home.join("script.toml");
        std::fs::write(&script, SCRIPT).expect("written");
        host.configure(&config.replace("SCRIPT", &script.display().to_string()));
        host.up();
        host.agent("a");
        host.agent("b");
        Self { host }
    }

    /// Gives the attacker the script of its next turn. An agent without a session gets one by a first message.
    pub(crate) fn give_script(&self, agent: &str, script: &Value) {
        let status = self.host.status();
        let sessions = status["sessions"].as_array().expect("a list");
        if sessions.iter().all(|session| session["agent"] != agent) {
            self.say(agent, "hello");
        }
        let path = self.directory(&self.id(agent)).join("workspace/script");
        std::fs::write(path.with_extension("new"), script.to_string()).expect("written");
        std::fs::rename(path.with_extension("new"), path).expect("renamed");
    }

    /// Sends a message with a script. The file of the message makes it the text of others.
    pub(crate) fn send(&self, agent: &str, text: &str, script: &Value) -> Answer {
        self.give_script(agent, script);
        let file = self.host.home.join("script.json");
        std::fs::write(&file, escaped(script)).expect("written");
        let answer =
            self.host.ctl(&["--json", "chat", agent, text, "--file", &file.display().to_string(), "--wait", "40s"]);
        // The session may be removed or its workspace full.
        let _ = std::fs::write(self.directory(&self.id(agent)).join("workspace/answered"), "");
        answer
    }

    /// Sends a message with a script and expects an answer.
    pub(crate) fn play(&self, agent: &str, text: &str, script: &Value) -> Played {
        let chat = self.send(agent, text, script).ok().json();
        self.played(chat)
    }

    /// Sends an ordinary message.
    pub(crate) fn say(&self, agent: &str, text: &str) -> Played {
        self.played(self.host.chat(agent, text))
    }

    /// Returns the result of a script after its answer has arrived.
    pub(crate) fn played(&self, chat: Value) -> Played {
        let mut outcome = self.outcome(&chat);
        let mut list = |name: &str| match outcome[name].take() {
            Value::Array(list) => list,
            _ => Vec::new(),
        };
        let (answers, errors) = (list("answers"), list("errors"));
        Played { chat, seen: outcome["seen"].take(), answers, errors }
    }

    /// Returns the last outcome that the attacker wrote in the session of an answer.
    pub(crate) fn outcome(&self, chat: &Value) -> Value {
        let session = chat["session_id"].as_str().expect("an id");
        let outcome = std::fs::read(self.directory(session).join("workspace/outcome.json"));
        outcome.map_or(Value::Null, |text| serde_json::from_slice(&text).expect("JSON"))
    }

    /// Returns the texts of the messages and notices in the conversation of an agent, in their order.
    pub(crate) fn texts(&self, agent: &str) -> Vec<String> {
        let shown = self.host.ctl(&["session", "export", &self.id(agent)]).ok().stdout;
        let items = shown.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        let told = items.filter(|item| ["message", "notice"].contains(&item["kind"].as_str().unwrap_or_default()));
        told.filter_map(|item| item["text"].as_str().map(str::to_owned)).collect()
    }

    /// Checks that the other agent answers.
    #[track_caller]
    pub(crate) fn check_other_agent(&self) {
        assert!(self.host.say("b", "hello").contains("Hello."), "{}", self.host.status());
    }

    /// Returns the only session of an agent, from `status`.
    pub(crate) fn session(&self, agent: &str) -> Value {
        let status = self.host.status();
        let sessions = status["sessions"].as_array().expect("a list");
        sessions.iter().find(|session| session["agent"] == agent).expect("a session").clone()
    }
    pub(crate) fn id(&self, agent: &str) -> String {
        self.session(agent)["id"].as_str().expect("an id").to_owned()
    }
    pub(crate) fn directory(&self, session: &str) -> PathBuf {
        self.host.home.join("sessions").join(session)
    }

    /// Makes a sleeping session of `a` and returns its id. Its next jails come from stock.
    pub(crate) fn make_sleeping_session(&self) -> String {
        for _ in 0..30 {
            self.host.say("a", "hello");
            let id = self.id("a");
            self.host.ctl(&["session", "stop", &id]).ok();
            if is_stocked(self.host.pid().expect("it runs")) {
                return id;
            }
        }
        panic!("the host has no full stock of jails");
    }

    /// Sets the script that replaces the handshake from the next launch. Null restores the honest handshake.
    pub(crate) fn set_launch_script(&self, session: &str, script: &Value) {
        let path = self.directory(session).join("workspace/launch-script");
        match script {
            Value::Null => std::fs::remove_file(path).expect("removed"),
            script => std::fs::write(path, script.to_string()).expect("written"),
        }
    }
    pub(crate) fn restore_sandbox(&self) {
        let new = self.host.programs.join("new");
        let copied = Command::new("cp").arg(programs(Build::Plain).join("ironclaw-sandbox")).arg(&new).status();
        assert!(copied.is_ok_and(|status| status.success()));
        std::fs::rename(new, self.host.programs.join("ironclaw-sandbox")).expect("renamed");
    }

    /// Returns the ledger's entries with this event and session, each with its type.
    pub(crate) fn entries(&self, what: &str, session: &str) -> Vec<Value> {
        self.host.entries(what).into_iter().filter(|entry| entry["data"]["session"] == session).collect()
    }

    /// Returns the codes of all refused requests, in order. Checks that each refusal is a `RETRACT`.
    pub(crate) fn refusals(&self, session: &str) -> Vec<String> {
        let entries = self.entries("model.refused", session);
        assert!(entries.iter().all(|entry| entry["type"] == "RETRACT"), "{entries:?}");
        entries.iter().map(|entry| entry["data"]["code"].as_str().expect("a code").to_owned()).collect()
    }

    /// Opens `state.db` of a stopped host for reading.
    pub(crate) fn state(&self) -> Connection {
        let db = Connection::open(self.host.home.join("state.db")).expect("opens");
        let key = record::master(&self.host.home).state_key().to_hex();
        db.execute_batch(&format!(
            "PRAGMA key = \"x'{}'\"; PRAGMA cipher_page_size = 4096; PRAGMA cipher_hmac_algorithm = HMAC_SHA256;",
            key.as_str()
        ))
        .expect("the key is right");
        db
    }
    pub(crate) fn queue_key(&self, session: &str) -> SessionKey {
        let stored: Vec<u8> = self
            .state()
            .query_row("SELECT queue_key FROM sessions WHERE id = ?1", [session], |row| row.get(0))
            .expect("a key");
        record::master(&self.host.home)
            .wrapping_key()
            .queue_key(session.parse().expect("an id"), &stored)
            .expect("opens")
    }
}

/// Returns JSON with escaped brackets and non-ASCII characters in its strings. The host does not change such a text.
pub(crate) fn escaped(script: &Value) -> String {
    let (mut escaped, mut inside, mut backslash) = (String::new(), false, false);
    for character in script.to_string().chars() {
        match character {
            '[' | '<' if inside => escaped.push_str(&format!("\\u{:04x}", u32::from(character))),
            other if inside && !other.is_ascii() => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
            other => escaped.push(other),
        }
        inside ^= character == '"' && !backslash;
        backslash = character == '\\' && !backslash;
    }
    escaped
}

/// Returns a step that sends a request to the model with these refs.
pub(crate) fn generate(refs: Value) -> Value {
    json!({ "ask": { "ask": "generate", "turn": "$turn", "purpose": "reply", "refs": refs } })
}

/// Returns a step that asks the model about the message of the turn, and keeps the recorded output.
pub(crate) fn output() -> Value {
    generate(json!(["$own"]))
}

/// Returns a step that reports the result of a call.
pub(crate) fn report(call: &str, body: &str) -> Value {
    json!({ "ask": { "ask": "report", "turn": "$turn", "call_id": call, "ok": true, "body": body } })
}

/// Returns whether a path exists, without following a link.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
