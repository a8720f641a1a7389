//! `ironctl change`: lists and shows changes of agents, and asks for one.
//!
//! Never decides: `approve` and `reject` do, or a person in the `inbox`. See [`crate::commands::inbox`].

use super::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{
    Change, ChangeKind, ChangeSummary, Digest, NewChange, PAYLOAD_BYTES_MAX, Payload, Requester,
};
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

/// Changes of one list.
pub const LIST_MAX: usize = 200;

/// Longest wait for the result of an approved change; packages may take longer.
const APPLY_PATIENCE: Duration = Duration::from_secs(10);

/// What to do with changes.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the changes that wait
    #[command(after_help = "Example:\n  ironctl change list\n  ironctl change list --status all --agent assistant")]
    List {
        /// pending, approved, applied, rejected, expired, withdrawn, failed, unknown, or all [default: pending]
        #[arg(long)]
        status: Option<String>,
        /// Of this agent only, by name or id
        #[arg(long)]
        agent: Option<String>,
        /// So many at most
        #[arg(long, default_value_t = LIST_MAX)]
        limit: usize,
    },
    /// Show a change: exactly what would happen, and where it stands
    #[command(after_help = "Example:\n  ironctl change show chg_01j9zq4w0v2m6n8p0r2t4v6x8z")]
    Show {
        /// Its id
        id: String,
    },
    /// Ask for a change; it waits for a person, as one that an agent asked for does
    #[command(
        after_help = "Example:\n  ironctl change submit --kind persona --agent assistant --payload @persona.json --reason unfriendly"
    )]
    Submit {
        // Without a doc comment: its help names every kind.
        #[arg(long, value_parser = kind, help = kinds())]
        kind: ChangeKind,
        /// Name or id of the agent; none for create_agent, mcp_register and the default model
        #[arg(long)]
        agent: Option<String>,
        /// What would be set: JSON, @FILE that holds it, or - for stdin
        #[arg(long, value_name = "@FILE|JSON|-")]
        payload: String,
        /// Why
        #[arg(long)]
        reason: String,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::List { status, agent, limit } => {
            let found = at.client()?.changes(status.as_deref(), agent.as_deref(), limit).await?;
            at.out.json(&found)?;
            list(at.out, found.changes)?;
            if found.more { at.out.remark("there are more: --limit, --agent or --status") } else { Ok(()) }
        }
        Action::Show { id } => {
            let change = at.client()?.change(&id, Duration::ZERO).await?;
            if is_open(&change) {
                verified(&change)?;
            }
            at.out.json(&change)?;
            at.out.exact(&change.shown)?;
            at.out.line("")?;
            standing(at.out, &change)
        }
        Action::Submit { kind, agent, payload, reason } => {
            let new = NewChange { kind, agent, payload: read_payload(&payload)?, reason };
            let submitted = at.client()?.submit_change(&new).await?;
            at.out.json(&submitted)?;
            match submitted.again {
                true => at.out.line(format!("the same is asked for already: {}", submitted.id))?,
                false => at.out.line(format!("{} is {}", submitted.id, submitted.status))?,
            }
            at.out.remark("a person decides: ironctl inbox")
        }
    }
}

/// Returns whether it can still be decided.
pub fn is_open(change: &Change) -> bool {
    matches!(change.status.as_str(), "pending" | "unknown")
}

/// Returns the digest of the text that is shown with a change, if it is the one that the host names. [`Output::exact`] decides
/// what the text may hold.
pub fn verified(change: &Change) -> Result<Digest, Error> {
    let digest = Digest::of(change.shown.as_bytes());
    if digest != change.shown_digest {
        let message = format!("the text of {} is not what its digest says; nothing was decided", change.id);
        return Err(Error::failed("shown_forged", message).hinting("look at `ironctl audit verify` and `ironctl logs`"));
    }
    Ok(digest)
}

/// Waits a moment for what comes of an approved change.
pub async fn settled(client: &Client, decided: Change) -> Result<Change, Error> {
    if decided.status == "approved" {
        client.change(&decided.id.to_string(), APPLY_PATIENCE).await
    } else {
        Ok(decided)
    }
}

/// Prints the result of a decision; a change that could not be done is a failure.
pub fn outcome(out: Output, change: &Change) -> Result<(), Error> {
    standing(out, change)?;
    if change.status == "failed" {
        let why = change.outcome.as_deref().unwrap_or("the host does not say why");
        return Err(Error::failed("change_failed", format!("{} was approved and could not be done: {why}", change.id)));
    }
    Ok(())
}

fn standing(out: Output, change: &Change) -> Result<(), Error> {
    let (id, approvals) = (&change.id, &change.approvals);
    // On one line: a reason of several could look like the next question.
    let words = |outcome: &String| outcome.split_whitespace().collect::<Vec<_>>().join(" ");
    let outcome = change.outcome.as_ref().map(|outcome| format!(": {}", words(outcome))).unwrap_or_default();
    match change.status.as_str() {
        "pending" => out.line(format!("{id} waits: {} of {} said yes", approvals.by.len(), approvals.needed)),
        "approved" => out.line(format!("{id} is approved and being applied: ironctl change show {id}")),
        status => out.line(format!("{id} is {status}{outcome}")),
    }
}

fn list(out: Output, changes: Vec<ChangeSummary>) -> Result<(), Error> {
    if changes.is_empty() {
        return out.line("no changes");
    }
    let rows = changes.into_iter().map(|change| {
        [
            change.id.to_string(),
            change.kind,
            change.agent.map(|agent| agent.name).unwrap_or_default(),
            change.status,
            asker(&change.requested_by),
            format!("{} of {}", change.approvals.by.len(), change.approvals.needed),
            clock::date_and_time(&change.created_at),
        ]
    });
    out.table(["CHANGE", "KIND", "AGENT", "STATUS", "ASKED BY", "YES", "ASKED AT"], rows)
}

fn asker(requester: &Requester) -> String {
    format!("{} {}", requester.kind, requester.name)
}

fn kind(text: &str) -> Result<ChangeKind, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("one is {}", known.join(", "))
    })
}

/// Returns the names of the kinds, as a sentence lists them.
fn kinds() -> String {
    let names: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
    match names.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Reads JSON as it was given, from a file or from stdin; a duplicate key is refused.
fn read_payload(given: &str) -> Result<Payload, Error> {
    let text = match given.strip_prefix('@') {
        Some(path) => {
            let unreadable = |cause| Error::failed("file_refused", format!("cannot read {path}")).because(cause);
            bounded(File::open(path).map_err(unreadable)?).map_err(unreadable)?
        }
        None if given == "-" => bounded(io::stdin().lock())
            .map_err(|cause| Error::failed("stdin_unreadable", "cannot read the payload from stdin").because(cause))?,
        None => given.to_owned(),
    };
    NewChange::read_payload(&text)
        .map_err(|why| Error::usage(format!("the payload is wrong: {why}"), "a payload is a JSON object or list"))
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
    fn a_payload_that_is_none_or_says_a_thing_twice_is_refused() {
        for given in ["", "\"text\"", "1", "{\"a\": 1, \"a\": 2}", "[", "@/nonexistent/file"] {
            assert!(read_payload(given).is_err(), "{given}");
        }
        let payload = read_payload("{\"instructions\": \"x\"}").expect("one");
        assert_eq!(payload.value()["instructions"], "x");
    }
}
