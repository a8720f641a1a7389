//! `ironctl change`: lists, shows and submits changes.
//!
//! Never decides: `approve`, `reject` and the `inbox` do. See [`crate::commands::inbox`].

use super::review::{self, Subject};
use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use crate::output::table::Columns;
use clap::Subcommand;
use ironclaw_operator::{
    Change, ChangeKind, ChangeStatus, ChangeSummary, Decision, DenialCode, NewChange, PAYLOAD_BYTES_MAX, Payload,
    Requester, routes,
};
use serde_json::json;
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Most changes of a list.
pub const LIST_MAX: usize = 200;

/// Time for the result of an approved change; packages may take longer.
pub const APPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two requests for the result of a change.
pub const POLL_PAUSE: Duration = Duration::from_millis(200);

/// The verbs of `ironctl change`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List changes, by default those that wait
    #[command(
        after_help = "Example:\n  ironctl change list\n  ironctl change list --own --status all\n  ironctl change list --agent assistant"
    )]
    List {
        /// Status: pending, approved, applied, rejected, expired, withdrawn, failed, unknown, or all [default: pending]
        #[arg(long)]
        status: Option<String>,
        /// Name or id of an agent
        #[arg(long)]
        agent: Option<String>,
        /// Only changes that you asked for, in person or through an agent
        #[arg(long)]
        own: bool,
        /// Most changes to list
        #[arg(long, default_value_t = LIST_MAX)]
        limit: usize,
    },
    /// Show the review page and the status of a change
    #[command(after_help = "Example:\n  ironctl change show chg_01j9zq4w0v2m6n8p0r2t4v6x8z")]
    Show {
        /// Id of the change
        id: String,
    },
    /// Submit a change; it waits for a decision, as the change of an agent does
    #[command(
        override_usage = "ironctl change submit [OPTIONS] --kind <KIND> --reason <REASON>\n                             --payload <@FILE|JSON|->",
        after_help = "Example:\n  ironctl change submit --kind persona --agent assistant --payload @persona.json --reason unfriendly"
    )]
    Submit {
        // The help lists every kind, so it is not a doc comment.
        #[arg(long, value_parser = kind, help = kinds())]
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
    match action {
        Action::List { status, agent, own, limit } => {
            let query = json!({ "own": own.then_some(true), "limit": limit, "status": status, "agent": agent });
            let found = at.client()?.query(routes::CHANGES, [], query).await?;
            at.out.json(&found.changes)?;
            let is_own = |change: &ChangeSummary| change.may_reject && !change.yours;
            let withdrawable = found.changes.iter().find(|change| is_own(change)).map(|change| change.id);
            list(at.out, found.changes)?;
            if let Some(id) = withdrawable {
                at.out
                    .remark(format!("other people decide on your own requests; `ironctl reject {id}` withdraws one"))?;
            }
            if found.more { at.out.remark("there are more changes: use --limit, --agent or --status") } else { Ok(()) }
        }
        Action::Show { id } => {
            let change = at.client()?.call(routes::CHANGE, [&id]).await?;
            if is_open(&change) {
                Subject::from(&change).verified()?;
            }
            at.out.json(&change)?;
            at.out.exact(&change.shown)?;
            at.out.line("")?;
            print_status(at.out, &change)
        }
        Action::Submit { kind, agent, payload, reason } => {
            let new = NewChange { kind, agent, payload: read_payload(&payload)?, reason };
            let submitted = at.client()?.post(routes::SUBMIT_CHANGE, [], &new).await?;
            at.out.json(&submitted)?;
            match submitted.again {
                true => at.out.line(format!("the same change already waits: {}", submitted.id))?,
                false => at.out.line(format!("{} is {}", submitted.id, submitted.status))?,
            }
            at.out.remark("decide on it: ironctl inbox")
        }
    }
}

/// Returns whether a change can still be decided.
pub fn is_open(change: &Change) -> bool {
    change.status.is_open()
}

/// Waits a short time for the result of an approved change.
pub async fn settled(client: &Client, decided: Change) -> Result<Change, Error> {
    settled_within(client, decided, APPLY_TIMEOUT).await
}

/// Waits up to `patience` for the result of an approved change.
pub async fn settled_within(client: &Client, mut decided: Change, patience: Duration) -> Result<Change, Error> {
    let until = Instant::now() + patience;
    while decided.status == ChangeStatus::Approved && Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        decided = client.poll(routes::CHANGE, &decided.id, left).await?;
        if decided.status == ChangeStatus::Approved {
            sleep(POLL_PAUSE).await;
        }
    }
    Ok(decided)
}

/// Prints the review page of a change and approves it.
pub async fn approve_printed(out: Output, client: &Client, waiting: &Change) -> Result<Change, Error> {
    let digest = review::print_whole(out, &waiting.into())?;
    client.post(routes::APPROVE_CHANGE, [&waiting.id], &Decision { shown: digest }).await
}

/// Prints the result of a decision; a change that could not be applied is a failure.
pub fn outcome(out: Output, change: &Change) -> Result<(), Error> {
    print_status(out, change)?;
    if change.status == ChangeStatus::Failed {
        let why = change.outcome.as_deref().unwrap_or("the host gave no reason");
        // The outcomes of earlier versions have no code.
        let with_code =
            why.split_once(": ").and_then(|(code, why)| Some((code.parse::<DenialCode>().ok()?.name(), why)));
        let (code, why) = with_code.unwrap_or(("change_failed", why));
        return Err(Error::failed(code, format!("{} was approved but could not be applied: {why}", change.id)));
    }
    Ok(())
}

fn print_status(out: Output, change: &Change) -> Result<(), Error> {
    let (id, approvals) = (&change.id, &change.approvals);
    let outcome = in_words(change.outcome.as_deref());
    match change.status {
        ChangeStatus::Pending => {
            out.line(format!("{id} waits: {} of {} approvals", approvals.by.len(), approvals.needed))
        }
        ChangeStatus::Approved => out.line(format!("{id} is approved and is being applied: ironctl change show {id}")),
        status => out.line(format!("{id} is {status}{outcome}")),
    }
}

/// Formats an outcome behind a status, on one line: a reason of several lines could look like the next question.
pub fn in_words(outcome: Option<&str>) -> String {
    let words = outcome.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

fn list(out: Output, changes: Vec<ChangeSummary>) -> Result<(), Error> {
    if changes.is_empty() {
        return out.line("no changes");
    }
    let rows = changes.into_iter().map(|change| {
        [
            change.id.to_string(),
            change.kind.to_string(),
            change.agent.map(|agent| agent.name).unwrap_or_default(),
            change.status.to_string(),
            requester(&change.requested_by),
            format!("{} of {}", change.approvals.by.len(), change.approvals.needed),
            clock::to_the_minute(&change.created_at),
        ]
    });
    let columns = ["CHANGE", "KIND", "AGENT", "STATUS", "REQUESTED BY", "APPROVALS", "REQUESTED AT"];
    out.table(Columns::new(columns).with_least(&["APPROVALS"]), rows)
}

/// Formats a requester: `agent helper`.
pub fn requester(requester: &Requester) -> String {
    format!("{} {}", requester.kind, requester.name)
}

fn kind(text: &str) -> Result<ChangeKind, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("known kinds: {}", known.join(", "))
    })
}

/// Returns the names of the kinds for a sentence.
fn kinds() -> String {
    let names: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
    match names.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
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
