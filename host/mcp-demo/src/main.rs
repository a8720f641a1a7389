//! `ironclaw-mcp-demo DIR [STATE]`: a small MCP server for trying, on its standard input and output.
//!
//! Reads files of one directory, and writes only below its state directory. Opens no socket and starts no program. See
//! [`protocol`] for the messages, [`tools`] for the tools.

#![forbid(unsafe_code)]

mod directory;
mod protocol;
mod state;
mod tools;

use directory::Directory;
use protocol::Server;
use state::State;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tools::Tools;

/// The state directory in the jail of a server.
const STATE: &str = "/state";

/// Bytes of one message.
const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(files), state, None) = (words.next(), words.next(), words.next()) else {
        complain("usage: ironclaw-mcp-demo DIR [STATE]");
        return ExitCode::from(2);
    };
    if !files.is_dir() {
        complain(&format!("error: {} is no directory: name the directory with the files", files.display()));
        return ExitCode::from(2);
    }
    let state = State::new(state.unwrap_or_else(|| STATE.into()));
    let server = Server::new(Tools { files: Directory::new(files), state });
    match serve(&server, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Answers one message a line until the end of the input.
///
/// # Errors
/// A stream that fails, and a line over [`MESSAGE_BYTES_MAX`].
fn serve(server: &Server, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        input.by_ref().take(MESSAGE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.len() > MESSAGE_BYTES_MAX {
            return Err(io::Error::other(format!("a message has over {MESSAGE_BYTES_MAX} bytes")));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if let Some(answer) = server.answer(&line) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
}

/// Prints a line to standard error. A closed standard error is ignored, because there is no other place for it.
fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns the answers to these lines.
    fn answers(lines: &str) -> io::Result<Vec<Value>> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let tools =
            Tools { files: Directory::new(directory.path().into()), state: State::new(directory.path().into()) };
        let mut output = Vec::new();
        serve(&Server::new(tools), lines.as_bytes(), &mut output)?;
        let output = String::from_utf8(output).expect("JSON is UTF-8");
        Ok(output.lines().map(|line| serde_json::from_str(line).expect("one message a line")).collect())
    }

    #[test]
    fn each_request_has_one_answer_on_one_line() {
        let lines = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}";
        let wanted =
            [json!({"jsonrpc": "2.0", "id": 1, "result": {}}), json!({"jsonrpc": "2.0", "id": "b", "result": {}})];
        assert_eq!(answers(lines).expect("served"), wanted);
        assert_eq!(answers("").expect("served"), Vec::<Value>::new());
    }

    #[test]
    fn message_over_the_bound_ends_the_server() {
        assert!(answers(&"x".repeat(MESSAGE_BYTES_MAX + 1)).is_err());
        let longest = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(answers(&longest).expect("served")[0]["error"]["code"], -32700);
    }
}
