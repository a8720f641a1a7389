//! `ironctl change`: submits changes.
//!
//! Never decides: `approve`, `reject` and the `inbox` do. See [`crate::commands::inbox`].

use crate::at::At;
use crate::failure::Error;
use crate::output::{alternatives, joined};
use clap::Subcommand;
use ironclaw_operator::{ChangeKind, NewChange, PAYLOAD_BYTES_MAX, Payload, routes};
use std::fs::File;
use std::io::{self, Read};

/// The verbs of `ironctl change`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Submit a change; it waits for a decision, as the change of an agent does
    #[command(
        override_usage = "ironctl change submit [OPTIONS] --kind <KIND> --reason <REASON>\n                             --payload <@FILE|JSON|->",
        after_help = "Example:\n  ironctl change submit --kind persona --agent assistant --payload @persona.json --reason unfriendly"
    )]
    Submit {
        // The help lists every kind, so it is not a doc comment.
        #[arg(long, value_parser = kind, help = alternatives(ChangeKind::ALL))]
        kind: ChangeKind,
        /// Name or id of the agent; absent for create_agent, mcp_register, mcp_confirm, groups and the default model
        #[arg(long)]
        agent: Option<String>,
        /// New settings: JSON, @FILE with JSON, or - for stdin
        #[arg(long, value_name = "@FILE|JSON|-")]
        payload: String,
        /// Reason for the change
        #[arg(long)]
        reason: String,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let Action::Submit { kind, agent, payload, reason } = action;
    let new = NewChange { kind, agent, payload: read_payload(&payload)?, reason };
    let submitted = at.client()?.post(routes::SUBMIT_CHANGE, [], &new).await?;
    at.out.json(&submitted)?;
    match submitted.again {
        true => at.out.line(format!("the same change already waits: {}", submitted.id))?,
        false => at.out.line(format!("{} is {}", submitted.id, submitted.status))?,
    }
    at.out.remark("decide on it: ironctl inbox")
}

fn kind(text: &str) -> Result<ChangeKind, String> {
    text.parse().map_err(|_| format!("known kinds: {}", joined(ChangeKind::ALL, ", ")))
}

/// Reads JSON from the argument, a file or stdin; refuses a duplicate key.
fn read_payload(given: &str) -> Result<Payload, Error> {
    NewChange::read_payload(&read_given(given)?)
        .map_err(|why| Error::usage(format!("the payload is invalid: {why}"), "use a JSON object or list"))
}

/// Reads a text of a change: from `@FILE`, from stdin for `-`, else the argument itself. The host refuses a text over its bounds.
pub fn read_given(given: &str) -> Result<String, Error> {
    match given.strip_prefix('@') {
        Some(path) => {
            let unreadable = |cause| Error::failed("file_refused", format!("cannot read {path}")).because(cause);
            bounded(File::open(path).map_err(unreadable)?).map_err(unreadable)
        }
        None if given == "-" => bounded(io::stdin().lock())
            .map_err(|cause| Error::failed("stdin_unreadable", "cannot read the text from stdin").because(cause)),
        None => Ok(given.to_owned()),
    }
}

fn bounded(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(PAYLOAD_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_payload_and_duplicate_key_are_refused() {
        for given in ["", "\"text\"", "1", "{\"a\": 1, \"a\": 2}", "[", "@/nonexistent/file"] {
            assert!(read_payload(given).is_err(), "{given}");
        }
        let payload = read_payload("{\"instructions\": \"x\"}").expect("one");
        assert_eq!(payload.value()["instructions"], "x");
    }
}
