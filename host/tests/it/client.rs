//! Speaks the operator's API directly, for what `ironctl` does not offer: an event id of one's own, and the history.
//!
//! Only for a world whose user is our own; the host serves nobody else. Next: `moments`.

use crate::stage::Who;
use crate::world::World;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Who of the users of a world we are ourselves.
pub(crate) fn own() -> Who {
    if nix::unistd::geteuid().is_root() { Who::Root } else { Who::Ordinary }
}

/// The API of the host on one home, over all its restarts.
#[derive(Clone)]
pub(crate) struct Client {
    home: PathBuf,
    token: String,
}

impl Client {
    /// A client of this world's host, whether or not it runs now.
    pub(crate) fn of(world: &World) -> Self {
        assert_eq!(world.who, own(), "the host serves its own user only");
        let token = std::fs::read_to_string(world.home.join("owner.token")).expect("a token");
        Self { home: world.home.clone(), token }
    }

    /// Hands in a message; the same event is the same message. Fails where no host answers.
    pub(crate) fn send(&self, agent: &str, text: &str, event: &str) -> io::Result<Value> {
        let body = json!({ "text": text, "event_id": event }).to_string();
        self.ask("POST", &format!("/v1/agents/{agent}/messages"), &body)
    }

    /// Where a message stands, after at most `wait`.
    pub(crate) fn message(&self, id: &str, wait: Duration) -> io::Result<Value> {
        self.ask("GET", &format!("/v1/messages/{id}?wait_ms={}", wait.as_millis()), "")
    }

    /// The conversation with an agent.
    pub(crate) fn history(&self, agent: &str) -> Vec<Value> {
        let lines = self.ask("GET", &format!("/v1/agents/{agent}/history?limit=500"), "").expect("the host answers");
        lines.as_array().expect("a list").clone()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<Value> {
        let run: Value = serde_json::from_slice(&std::fs::read(self.home.join("run.json"))?)?;
        let mut stream = UnixStream::connect(run["socket"].as_str().unwrap_or_default())?;
        stream.set_read_timeout(Some(crate::world::PATIENCE))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: ironclaw\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is cut off");
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).and_then(|n| n.parse().ok());
        if length != Some(body.len()) {
            return Err(cut());
        }
        if !head.starts_with("HTTP/1.1 20") {
            return Err(io::Error::other(format!("{path}: {body}")));
        }
        Ok(serde_json::from_str(body)?)
    }
}
