//! The listing of a server on standard input and output, as the host reads it.
//!
//! `list_tools [--session] PROGRAM ARGUMENT…` starts the program without a jail and prints one JSON object with the form of the protocol
//! and the tools; `--session` is for a program that ends at the first question of the newest form. The templates of the judge
//! (`host/judge/templates`) have the digests of these tools.

use ironclaw_mcp::{Client, Era, Limits};
use serde_json::{Value, json};
use std::env;
use std::error::Error;
use std::io::Write as _;
use std::process::Stdio;
use tokio::process::Command;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1).peekable();
    let era = words.next_if(|word| word == "--session").map(|_| Era::Session);
    let program = words.next().ok_or("the program is missing")?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn()?;
    let output = server.stdout.take().ok_or("the program has no output")?;
    let input = server.stdin.take().ok_or("the program has no input")?;
    let client = Client::over_streams(output, input, Limits { era, ..Limits::default() }).await?;
    let listing = client.list().await?;
    if let Some(cut) = listing.cut {
        return Err(cut.into());
    }
    let era = match listing.server.era {
        Era::Session => "session",
        Era::Stateless => "stateless",
    };
    let tools: Vec<Value> = listing.tools.into_iter().map(|tool| tool.listed).collect();
    writeln!(std::io::stdout(), "{}", json!({ "era": era, "tools": tools }))?;
    client.close().await;
    Ok(())
}
