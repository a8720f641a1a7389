//! One kept-alive connection to the host's API, without a runtime or a library in the measured time.
//!
//! Understands only answers with a length, which is the form of the host's answers. See `main`.

use crate::host_fixture::TestHost;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    token: String,
}

impl Client {
    /// Connects to this host as its owner.
    pub(crate) fn connect(host: &TestHost) -> Self {
        let read = |name: &str| std::fs::read_to_string(host.home.join(name)).expect("a running host's home");
        let run: Value = serde_json::from_str(&read("run.json")).expect("JSON");
        let stream = UnixStream::connect(run["socket"].as_str().expect("a path")).expect("the host listens");
        Self { stream: BufReader::new(stream), token: read("owner.token").trim().to_owned() }
    }

    pub(crate) fn get(&mut self, path: &str) -> Value {
        self.ask("GET", path, "")
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Value {
        self.ask("POST", path, body)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Value {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: ironclaw\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("the host reads");
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the host answers");
        let ok = line.split(' ').nth(1).is_some_and(|status| status.starts_with('2'));
        let mut length = 0;
        loop {
            let mut header = String::new();
            self.stream.read_line(&mut header).expect("a header");
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).expect("a body");
        assert!(ok, "{method} {path}: {line}{}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).unwrap_or(Value::Null)
    }
}
