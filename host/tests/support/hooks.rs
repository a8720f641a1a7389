//! The two ends of a webhook channel: a sender that signs, and a receiver on loopback that checks signatures and follows a script.
//!
//! The receiver checks the signature only. See `e2e::webhook` and `e2e::deliveries`.

use super::client::exchange;
use super::host_fixture::{Build, TestHost, WAIT_MAX, wait_for};
use ironclaw_host::driven::signature::{Claimed, Secret, check};
use ironclaw_state::keys::SecretText;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// The receiver's response to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Response {
    Status(u16),
    /// A status with this value of `retry-after`.
    Later(u16, &'static str),
    /// No response; the connection stays open.
    Hang,
    /// No response; the connection is closed.
    Close,
}
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) body: Value,
}

type Script = Box<dyn Fn(&Received, usize) -> Response + Send>;

/// The receiving end of a channel.
pub(crate) struct Receiver {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<Received>>>,
    secret: Arc<Mutex<Option<String>>>,
    over: Arc<AtomicBool>,
}

impl Receiver {
    /// Starts a receiver whose responses come from `script`, which gets the request and the number of earlier ones.
    pub(crate) fn new(script: impl Fn(&Received, usize) -> Response + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/in", listener.local_addr().expect("an address"));
        let (got, secret) = (Arc::<Mutex<Vec<Received>>>::default(), Arc::<Mutex<Option<String>>>::default());
        let over = Arc::<AtomicBool>::default();
        let (script, all, key, stop) =
            (Box::new(script) as Script, Arc::clone(&got), Arc::clone(&secret), Arc::clone(&over));
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // Serves one request at a time, because the requests are short.
                if let Some(stream) = serve(stream, &script, &all, &key) {
                    held.push(stream);
                }
            }
        });
        Self { url, got, secret, over }
    }

    /// Starts a receiver that accepts every request.
    pub(crate) fn accepting() -> Self {
        Self::new(|_, _| Response::Status(200))
    }

    /// Requires signatures with this secret from now on.
    pub(crate) fn expect(&self, secret: &str) {
        *self.secret.lock().expect("not poisoned") = Some(secret.to_owned());
    }
    pub(crate) fn got(&self) -> Vec<Received> {
        self.got.lock().expect("not poisoned").clone()
    }

    /// Returns all requests except tests of the channel.
    pub(crate) fn replies(&self) -> Vec<Received> {
        self.got().into_iter().filter(|got| got.body["type"] != "test").collect()
    }

    /// Returns the texts of all notifications so far.
    pub(crate) fn notifications(&self) -> Vec<String> {
        let got = self.got().into_iter().filter(|got| got.body["type"] == "notification");
        got.map(|got| got.body["text"].as_str().expect("a text").to_owned()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let address = self.url.trim_start_matches("http://").trim_end_matches("/in");
        drop(TcpStream::connect(address));
    }
}

fn serve(
    mut stream: TcpStream,
    script: &Script,
    all: &Mutex<Vec<Received>>,
    secret: &Mutex<Option<String>>,
) -> Option<TcpStream> {
    stream.set_read_timeout(Some(WAIT_MAX)).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        headers.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        let found = headers.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        found.unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (id, timestamp, signatures) = (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"));
    if let Some(text) = secret.lock().expect("not poisoned").clone() {
        let secret = Secret::read(&SecretText::new(text)).expect("a secret");
        let claimed = Claimed { id: &id, timestamp: &timestamp, signatures: &signatures };
        assert!(check(Some(&secret), &claimed, &body).is_ok(), "an unsigned request: {headers:?}");
    }
    let got = Received { id, body: serde_json::from_slice(&body).expect("JSON") };
    let response = {
        let mut all = all.lock().expect("not poisoned");
        let response = script(&got, all.len());
        all.push(got);
        response
    };
    let (status, more) = match response {
        Response::Status(status) => (status, String::new()),
        Response::Later(status, seconds) => (status, format!("retry-after: {seconds}\r\n")),
        Response::Hang => return Some(stream),
        Response::Close => return None,
    };
    let _ = write!(stream, "HTTP/1.1 {status} x\r\n{more}connection: close\r\ncontent-length: 2\r\n\r\nok");
    None
}

/// The sending end of one channel.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) secret: String,
    pub(crate) hook: String,
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64
}

impl Hook {
    /// Adds a channel of this name for agent `a`, and links its sender `ann` to the owner.
    pub(crate) fn add(host: &TestHost, name: &str, receiver: &Receiver, more: &[&str]) -> Self {
        let arguments = ["--json", "channel", "add", "webhook", name, "--url", &receiver.url, "--agent", "a", "--yes"];
        let made = host.ctl(&[arguments.as_slice(), more].concat()).ok().json();
        host.ctl(&["person", "link", "owner", &format!("{name}:ann"), "--yes"]).ok();
        let text = |key: &str| made[key].as_str().unwrap_or_else(|| panic!("{key}: {made}")).to_owned();
        receiver.expect(&text("secret"));
        Self { name: name.to_owned(), secret: text("secret"), hook: text("hook") }
    }

    /// Reads the address again after a restart, which changes the port.
    pub(crate) fn follow_restart(&mut self, host: &TestHost) {
        let channels = host.ctl(&["--json", "channel", "list"]).ok().json();
        let found = channels.as_array().expect("a list").iter().find(|channel| channel["name"] == self.name.as_str());
        self.hook = found.and_then(|channel| channel["hook"].as_str()).expect("a listed channel").to_owned();
    }
    pub(crate) fn sign(&self, id: &str, at: i64, body: &str) -> String {
        Secret::read(&SecretText::new(self.secret.clone())).expect("a secret").sign(id, at, body.as_bytes())
    }

    /// Returns the body of a message of `ann`.
    pub(crate) fn words(text: &str) -> String {
        json!({ "sender": "ann", "text": text }).to_string()
    }

    /// Sends a signed event.
    pub(crate) fn send(&self, id: &str, body: &str) -> (u16, Value) {
        let at = now();
        self.post(
            &[
                ("webhook-id", id),
                ("webhook-timestamp", &at.to_string()),
                ("webhook-signature", &self.sign(id, at, body)),
            ],
            body,
        )
    }

    /// Sends a message as `ann` and returns its id.
    pub(crate) fn say(&self, id: &str, text: &str) -> String {
        let (status, answer) = self.send(id, &Self::words(text));
        assert_eq!(status, 200, "{answer}");
        answer["message_id"].as_str().expect("an id").to_owned()
    }
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let (status, _, answer) =
            exchange(self.connect(), "POST", &self.path(), &[&[("host", "x")], headers].concat(), body);
        (status, answer)
    }
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("the port is open");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
        stream
    }

    pub(crate) fn address(&self) -> String {
        self.hook.trim_start_matches("http://").split('/').next().expect("an address").to_owned()
    }

    pub(crate) fn path(&self) -> String {
        format!("/hooks/{}", self.name)
    }
}

/// Adds a channel `desk` that no agent hears, and makes `desk:ann` the place where the owner is told.
pub(crate) fn add_place(host: &TestHost, receiver: &Receiver, more: &[&str]) {
    let arguments = ["--json", "channel", "add", "webhook", "desk", "--url", &receiver.url];
    let made = host.ctl(&[arguments.as_slice(), more].concat()).ok().json();
    receiver.expect(made["secret"].as_str().expect("a secret"));
    host.ctl(&["person", "link", "owner", "desk:ann", "--yes"]).ok();
    host.ctl(&["person", "set", "owner", "--notify", "desk"]).ok();
}

/// Starts a host with an agent `a` and an open port for webhooks.
pub(crate) fn new_host(build: Build, more: &str) -> TestHost {
    TestHost::own(build).configured(&format!("[webhook]\nlisten = \"127.0.0.1:0\"\n{more}")).started_with("a")
}

/// Starts the same with the channel `shop` to a receiver that accepts every request.
pub(crate) fn host_with_shop(more: &str) -> (TestHost, Receiver, Hook) {
    let host = new_host(Build::Plain, more);
    let (receiver, hook) = add_shop(&host);
    (host, receiver, hook)
}

/// Adds the channel `shop` to a receiver that accepts every request.
pub(crate) fn add_shop(host: &TestHost) -> (Receiver, Hook) {
    let receiver = Receiver::accepting();
    let hook = Hook::add(host, "shop", &receiver, &[]);
    (receiver, hook)
}

/// Waits until the answer to a message has this receipt. Returns the output of `why`.
#[track_caller]
pub(crate) fn receipt(host: &TestHost, message: &str, receipt: &str) -> Value {
    let mut why = Value::Null;
    wait_for(&format!("receipt {receipt} of {message}"), || {
        why = host.ctl(&["--json", "why", message]).ok().json();
        why["message"]["receipt"] == receipt
    });
    why
}
