//! Requests of the WebDriver protocol: JSON over HTTP on loopback, one connection each.
//!
//! Knows no command. See [`super::Browser`].

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// The longest time of a command. Loading a page is one.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// A command that the driver refused, or could not make.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The error code of the protocol, such as `stale element reference`; `connection` if the driver did not answer.
    pub(crate) code: String,
    pub(crate) message: String,
}

/// The port of a driver.
pub(super) struct Wire {
    pub(super) port: u16,
}

impl Wire {
    /// Sends a command and returns the value of its answer.
    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        let connection = |error: io::Error| Failure { code: "connection".to_owned(), message: error.to_string() };
        let answer = self.exchange(method, path, body).map_err(connection)?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|error| connection(error.into()))?;
        let value = &answer["value"];
        match value["error"].as_str() {
            Some(code) => {
                let message = value["message"].as_str().unwrap_or_default();
                Err(Failure { code: code.to_owned(), message: message.lines().next().unwrap_or_default().to_owned() })
            }
            None => Ok(value.clone()),
        }
    }

    /// Sends a request and returns the body of the answer.
    fn exchange(&self, method: &str, path: &str, body: &Value) -> io::Result<Vec<u8>> {
        // A command without parameters has an empty object.
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let length = body.len();
        // In one write, so that no part of it waits for an acknowledgement.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost:{}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}",
            self.port
        );
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let mut length = None;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(found) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = found.trim().parse::<usize>().ok();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut answer = Vec::new();
        match length {
            Some(length) => {
                answer.resize(length, 0);
                reader.read_exact(&mut answer)?;
            }
            None => drop(reader.read_to_end(&mut answer)?),
        }
        Ok(answer)
    }
}
