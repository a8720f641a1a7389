//! A table test of recorded answers: each file of `tests/recordings` has one answer and its outcome.
//!
//! The form of a file is in `tests/recordings/README.md`. See `models`.

use crate::e2e::models::{ask, candidates, open, person, quick, spec};
use ironclaw_model::endpoint::Kind;
use ironclaw_model::fault::Failure;
use ironclaw_model::{Config, Error};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Bytes that the head of a broken answer announces and its body lacks.
const MISSING_BYTES: usize = 64;

/// One answer and its outcome.
#[derive(Debug, Default)]
struct Recording {
    name: String,
    head: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Recording {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("readable");
        let end = bytes.windows(2).position(|two| two == b"\n\n").expect("a head and a blank line");
        let head = std::str::from_utf8(&bytes[..end]).expect("a head of text");
        let line = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        let head = head.lines().map(|text| line(text).unwrap_or_else(|| panic!("{path:?}: {text}"))).collect();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        Self { name, head, body: bytes[end + 2..].to_vec() }
    }

    fn all(&self, wanted: &str) -> Vec<&str> {
        self.head.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
    }

    fn one(&self, wanted: &str) -> Option<&str> {
        self.all(wanted).first().copied()
    }

    /// Returns whether the answer has the format of this kind of endpoints. An answer without a format has that of both.
    fn is_of(&self, kind: Kind) -> bool {
        match self.one("wire") {
            Some("both") => true,
            Some("openai") => kind == Kind::Openai,
            Some("anthropic") => kind == Kind::Anthropic,
            other => panic!("{}: wire {other:?}", self.name),
        }
    }

    /// Returns the bytes of the HTTP answer. The end of the connection is the end of its body, unless it is broken.
    fn answer(&self) -> Vec<u8> {
        let status = self.one("status").expect("a status");
        let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
        if let Some(kind) = self.one("type") {
            let _ = write!(head, "content-type: {kind}\r\n");
        }
        if self.one("ends") == Some("broken") {
            let _ = write!(head, "content-length: {}\r\n", self.body.len() + MISSING_BYTES);
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// Reads the recordings, by name.
fn recordings() -> Vec<Recording> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let files = std::fs::read_dir(place).expect("the directory of recordings");
    let paths = files.map(|file| file.expect("a file").path());
    let mut all: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "http")).collect();
    all.sort();
    all.iter().map(|path| Recording::read(path)).collect()
}

/// Reads a whole request, so that the answer does not reset the connection.
async fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.expect("a request");
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return;
        }
    }
}

/// Starts a server that sends the current answer to each request. Returns its URL.
async fn server(current: Arc<Mutex<Vec<u8>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = current.lock().expect("not poisoned").clone();
            tokio::spawn(async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    url
}

fn check_failure(case: &str, recording: &Recording, failure: &Failure) {
    assert_eq!(Some(failure.fault.code()), recording.one("fault"), "{case}: {:?}", failure.detail.for_operator());
    let words = failure.detail.for_operator().unwrap_or_default();
    assert!(words.contains(recording.one("words").unwrap_or_default()), "{case}: {words:?}");
}

#[tokio::test]
async fn recorded_answers_have_their_outcomes() {
    let current = Arc::new(Mutex::new(Vec::new()));
    let url = server(Arc::clone(&current)).await;
    let config = Config { tries_max: 1, ..quick() };
    let recordings = recordings();
    assert!(recordings.len() > 80, "{}", recordings.len());
    for recording in &recordings {
        *current.lock().expect("not poisoned") = recording.answer();
        for (kind, streams) in
            [Kind::Openai, Kind::Anthropic].into_iter().flat_map(|kind| [(kind, true), (kind, false)])
        {
            let case = format!("{} of {kind:?}, streams {streams}", recording.name);
            let endpoints = open(&config, vec![spec("local", (kind, streams), &url)]);
            match ask(&candidates(&endpoints, "local"), vec![person("hello")]).await {
                Err(Error::Failed(failed)) if !recording.is_of(kind) => {
                    let expected = recording.one("other").or(recording.one("fault")).unwrap_or("other_api");
                    assert_eq!(failed.failures[0].fault.code(), expected, "{case}");
                }
                Ok(answered) => {
                    assert!(recording.is_of(kind), "{case}: {:?}", answered.output);
                    let call = |call: &ironclaw_model::WantedCall| format!("{} {}", call.tool, call.arguments);
                    let calls: Vec<String> = answered.output.calls.iter().map(call).collect();
                    assert_eq!(recording.one("fault"), None, "{case}: {:?}", answered.output);
                    assert_eq!(answered.output.text, recording.one("text").unwrap_or_default(), "{case}");
                    assert_eq!(calls, recording.all("call"), "{case}");
                }
                Err(Error::Failed(failed)) => check_failure(&case, recording, &failed.failures[0]),
                Err(error) => panic!("{case}: {error}"),
            }
        }
    }
}
