//! A direct client of the operator's API, for requests that `ironctl` does not offer: a chosen event id, and the history.
//!
//! Works only for a host of the current user, because a host serves no other user. See `chaos::kill`.

use super::host_fixture::TestHost;
use super::jail_fixture::HostUser;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A client of the host on one home, over all its restarts.
#[derive(Clone)]
pub(crate) struct Client {
    home: PathBuf,
    token: String,
}

impl Client {
    /// Returns a client of this host, which need not run yet.
    pub(crate) fn of(host: &TestHost) -> Self {
        assert_eq!(host.user, HostUser::current(), "a host serves only its own user");
        let token = std::fs::read_to_string(host.home.join("owner.token")).expect("a token");
        Self { home: host.home.clone(), token }
    }

    /// Sends a message. A repeated event id is the same message. Fails if no host answers.
    pub(crate) fn send(&self, agent: &str, text: &str, event: &str) -> io::Result<Value> {
        let body = json!({ "text": text, "event_id": event }).to_string();
        self.ask("POST", &format!("/v1/agents/{agent}/messages"), &body)
    }

    /// Sends a message in a request that waits at most `wait` for the answer.
    pub(crate) fn send_and_wait(&self, agent: &str, text: &str, event: &str, wait: Duration) -> io::Result<Value> {
        let body = json!({ "text": text, "event_id": event }).to_string();
        self.ask("POST", &format!("/v1/agents/{agent}/messages?wait_ms={}", wait.as_millis()), &body)
    }
    pub(crate) fn send_in(&self, agent: &str, thread: &str, text: &str, event: &str) -> io::Result<Value> {
        let body = json!({ "text": text, "event_id": event, "thread": thread }).to_string();
        self.ask("POST", &format!("/v1/agents/{agent}/messages"), &body)
    }
    pub(crate) fn status(&self) -> io::Result<Value> {
        self.ask("GET", "/v1/status", "")
    }

    /// Returns the state of a message, and waits at most `wait` for its answer.
    pub(crate) fn message(&self, id: &str, wait: Duration) -> io::Result<Value> {
        self.ask("GET", &format!("/v1/messages/{id}?wait_ms={}", wait.as_millis()), "")
    }
    pub(crate) fn history(&self, agent: &str) -> Vec<Value> {
        let lines = self.ask("GET", &format!("/v1/agents/{agent}/history?limit=500"), "").expect("the host answers");
        lines["lines"].as_array().expect("a list").clone()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> io::Result<Value> {
        let run: Value = serde_json::from_slice(&std::fs::read(self.home.join("run.json"))?)?;
        let mut stream = UnixStream::connect(run["socket"].as_str().unwrap_or_default())?;
        stream.set_read_timeout(Some(super::host_fixture::WAIT_MAX))?;
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

/// A client for arbitrary requests, which returns every status.
#[derive(Clone)]
pub(crate) struct Raw {
    run: Value,
    pub(crate) token: String,
}

impl Raw {
    /// Returns a client of the unix socket of this host, with the token of the owner.
    pub(crate) fn of(host: &TestHost) -> Self {
        assert_eq!(host.user, HostUser::current(), "a host serves only its own user");
        let read = |name: &str| std::fs::read_to_string(host.home.join(name)).expect("a file of the home");
        let run = serde_json::from_str(&read("run.json")).expect("JSON");
        Self { run, token: read("owner.token").trim().to_owned() }
    }

    /// Returns a client with a new token of this person.
    pub(crate) fn of_person(host: &TestHost, person: &str) -> Self {
        let made = host.ctl(&["--json", "token", "add", "--person", person]).ok().json();
        Self::of(host).with_token(made["text"].as_str().expect("a token"))
    }

    /// Adds a person and returns a client with their token.
    pub(crate) fn add_person(host: &TestHost, person: &str, more: &[&str]) -> Self {
        host.ctl(&[&["person", "add", person], more].concat()).ok();
        Self::of_person(host, person)
    }
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }
    pub(crate) fn port(&self) -> String {
        self.run["listen"].as_str().expect("the port is open").to_owned()
    }

    /// Sends `GET` with the token of this client.
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "")
    }

    /// Sends `GET` with these headers and without a token.
    pub(crate) fn get_with(&self, headers: &[(&str, &str)], path: &str) -> (u16, Value) {
        self.ask_with("GET", path, headers, "")
    }

    /// Sends a message to an agent, optionally under another name.
    pub(crate) fn say(&self, agent: &str, text: &str, speak_as: Option<&str>) -> (u16, Value) {
        let body = json!({ "text": text, "as": speak_as }).to_string();
        self.ask("POST", &format!("/v1/agents/{agent}/messages"), &body)
    }

    /// Sends a message that the host accepts, and returns its id.
    pub(crate) fn send(&self, agent: &str, text: &str) -> String {
        self.send_body(agent, &json!({ "text": text }))
    }

    /// Sends this JSON as a message that the host accepts, and returns its id.
    pub(crate) fn send_body(&self, agent: &str, body: &Value) -> String {
        let (status, recorded) = self.ask("POST", &format!("/v1/agents/{agent}/messages"), &body.to_string());
        assert_eq!(status, 202, "{recorded}");
        recorded["message_id"].as_str().expect("an id").to_owned()
    }

    /// Sends a request with the token of this client.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let bearer = format!("Bearer {}", self.token);
        self.ask_with(method, path, &[("authorization", &bearer)], body)
    }
    pub(crate) fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let headers = [&[("host", "ironclaw")], headers].concat();
        let (status, _, body) = exchange(self.connect(), method, path, &headers, body);
        (status, body)
    }

    /// Sends a request with the token of this client to a host that may be dead or die during it.
    pub(crate) fn try_ask(&self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        let stream = self.try_connect()?;
        let bearer = format!("Bearer {}", self.token);
        let headers = [("host", "ironclaw"), ("authorization", bearer.as_str())];
        try_exchange(stream, method, path, &headers, body).map(|(status, _, body)| (status, body))
    }

    /// Sends a request with the token of this client and returns the connection. Dropping it disconnects the client.
    pub(crate) fn begin(&self, method: &str, path: &str, body: &str) -> UnixStream {
        let mut stream = self.connect();
        let bearer = format!("Bearer {}", self.token);
        let request = request(method, path, &[("host", "ironclaw"), ("authorization", &bearer)], body);
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    }

    fn connect(&self) -> UnixStream {
        self.try_connect().expect("the host listens")
    }

    fn try_connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(self.run["socket"].as_str().unwrap_or_default())?;
        stream.set_read_timeout(Some(super::host_fixture::WAIT_MAX))?;
        Ok(stream)
    }

    /// Follows a message as a present person, at a host that may be dead. The host notices at once that the connection is dropped.
    pub(crate) fn try_decide_at(&self, message: &str) -> io::Result<UnixStream> {
        let mut stream = self.try_connect()?;
        let path = format!("/v1/messages/{message}/events?decides=true");
        write!(stream, "GET {path} HTTP/1.1\r\nhost: ironclaw\r\nauthorization: Bearer {}\r\n\r\n", self.token)?;
        Ok(stream)
    }
}

/// Checks that a request was refused with this status and code, and with a reason.
#[track_caller]
pub(crate) fn check_refused(answer: &(u16, Value), status: u16, code: &str) {
    assert_eq!((answer.0, answer.1["error"]["code"].as_str()), (status, Some(code)), "{answer:?}");
    assert!(answer.1["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer:?}");
}

/// Returns the status and the code of a refusal.
pub(crate) fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["error"]["code"].as_str().unwrap_or_default())
}

/// Sends one request on a connection. Returns status, head and body of the answer.
pub(crate) fn exchange(
    stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String, Value) {
    try_exchange(stream, method, path, headers, body).expect("answered")
}

/// Sends one request to a host that may die during it.
pub(crate) fn try_exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<(u16, String, Value)> {
    stream.write_all(request(method, path, headers, body).as_bytes())?;
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        // A host that refuses a body may close the connection before it has read all of it. The answer arrives before the reset.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => {}
        read => drop(read?),
    }
    let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is cut off");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(cut)?;
    Ok((status, head.to_ascii_lowercase(), serde_json::from_str(body).unwrap_or(Value::Null)))
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request + &format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
