//! A local model server without a model, to try `ironctl model add` without a key:
//! `cargo run -p ironclaw-host --example model_server -- 11434`.
//!
//! It repeats its input. For `note TEXT` it writes a file with the tools and reads it. See `server.rs`.

#[allow(dead_code, reason = "the tests use more of it")]
mod server;

use serde_json::json;
use server::{Act, Seen, Server};

fn respond(seen: &Seen) -> Act {
    let asked = seen.asked();
    let results = seen.results();
    let Some(text) = asked.strip_prefix("note ") else { return Act::Say(format!("You said: {asked}")) };
    let call = |tool: &str, arguments| Act::Call(String::new(), vec![(tool.to_owned(), arguments)]);
    match results.len() {
        0 => call("write_file", json!({ "path": "note.txt", "content": text })),
        1 => call("read_file", json!({ "path": "note.txt" })),
        _ => Act::Say(format!("The file says: {}", results[results.len() - 1])),
    }
}

#[allow(clippy::print_stdout, reason = "a program for experiments")]
fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(11434);
    let server = Server::listen(port, respond)?;
    println!("listening on {}; end it with Ctrl-C", server.url());
    loop {
        std::thread::park();
    }
}
