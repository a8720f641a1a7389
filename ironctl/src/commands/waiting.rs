//! A call, a question or a change that waits for people: read, decided or answered, and followed to its end, in one way for every kind.
//!
//! Page, effect and summary are words of the host. Never approves without the digest of a page. See [`super::review`] for the question
//! about a page, [`question`] for that of an agent, and [`super::inbox`].

pub mod question;
pub mod together;
pub mod words;

use super::review::{self, Choice, Subject, Words};
use crate::client::{Client, POLL_MAX};
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{Decision, DenialCode, Waiting, WaitingEntry, WaitingId, WaitingKind, WaitingStatus, routes};
use std::time::Duration;
use tokio::time::Instant;
use words::{approvals, one_line};

/// Time for the outcome of an approval; packages may take longer.
pub const OUTCOME_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads it with its page.
pub async fn read(client: &Client, id: WaitingId) -> Result<Waiting, Error> {
    client.call(routes::WAITING, [&id]).await
}

/// Decides on it.
pub async fn decide(client: &Client, id: WaitingId, decision: Decision) -> Result<Waiting, Error> {
    client.post(routes::DECIDE, [&id], &decision).await
}

/// Prints its page and approves it, without a question.
pub async fn approve_printed(out: Output, client: &Client, waiting: &Waiting) -> Result<Waiting, Error> {
    let shown = review::print_whole(out, &waiting.into())?;
    decide(client, waiting.entry.id, Decision::Approve(shown)).await
}

/// The end of a question about what waits.
pub enum Asked {
    /// The person decided or answered.
    Decided(Box<Waiting>),
    /// It still waits; the person changes its text.
    Edit,
    /// It still waits; the person continues.
    Left,
    /// It still waits; the person leaves.
    Quit,
}

/// Shows it and applies the decision or the answer of the person at the terminal. So many lines stay `above` its page.
pub async fn ask(out: Output, client: &Client, waiting: &Waiting, words: Words, above: usize) -> Result<Asked, Error> {
    if let Some(asked) = question::details(waiting) {
        return question::ask(out, client, waiting, asked).await;
    }
    match review::ask(out, &Subject::with_diff(waiting, client), words, above).await? {
        Choice::Decide(decision) => {
            decide(client, waiting.entry.id, decision).await.map(|decided| Asked::Decided(Box::new(decided)))
        }
        Choice::Edit => Ok(Asked::Edit),
        Choice::Skip | Choice::Each => Ok(Asked::Left),
        Choice::Quit => Ok(Asked::Quit),
    }
}

/// Waits up to `patience` for the outcome of an approval.
pub async fn settled(client: &Client, mut waiting: Waiting, patience: Duration) -> Result<Waiting, Error> {
    let until = Instant::now() + patience;
    while waiting.entry.status.is_underway() {
        let (status, left) = (waiting.entry.status, until.saturating_duration_since(Instant::now()));
        let asked = Instant::now();
        waiting = client.poll(routes::WAITING, &waiting.entry.id, left).await?;
        // The time is up. A host that stops answers before that, and would answer the next request at once.
        if waiting.entry.status == status && (Instant::now() >= until || asked.elapsed() < left.min(POLL_MAX)) {
            break;
        }
    }
    Ok(waiting)
}

/// Prints the result of a decision or an answer; an approval without its effect is a failure.
pub fn outcome(out: Output, waiting: &Waiting) -> Result<(), Error> {
    let summary = one_line(&waiting.summary);
    if let Some(code) = failure_code(&waiting.entry) {
        return Err(Error::failed(code, summary).hinting(format!("ironctl why {}", waiting.entry.id)));
    }
    out.line(summary)?;
    match question::recorded(waiting) {
        Some(answer) => out.line(format!("ironctl why {} shows what the agent does", answer.message_id)),
        None => Ok(()),
    }
}

/// Prints the approvals, the decision and the end.
pub fn print_end(out: Output, waiting: &Waiting) -> Result<(), Error> {
    let entry = &waiting.entry;
    if entry.approvals.needed > 0 {
        out.line(format!("approvals: {}", approvals(entry)))?;
    }
    if let (Some(person), Some(decided)) = (&entry.decided_by, &entry.decided_at) {
        out.line(format!("decided by {} at {}", person.name, clock::date_and_time(decided)))?;
    }
    if let Some(ended) = &entry.ended_at {
        out.line(format!("ended at {}", clock::date_and_time(ended)))?;
    }
    out.line(one_line(&waiting.summary))
}

/// Returns the stable word for an approval without its effect.
fn failure_code(entry: &WaitingEntry) -> Option<&'static str> {
    match (entry.status, entry.kind) {
        (WaitingStatus::Failed, WaitingKind::Call) => Some("call_failed"),
        (WaitingStatus::Failed, WaitingKind::Change) => Some(code_in_outcome(entry).unwrap_or("change_failed")),
        (WaitingStatus::Failed, _) => Some("not_done"),
        (WaitingStatus::Unknown, _) => Some("call_unknown"),
        (WaitingStatus::Expired | WaitingStatus::Withdrawn, WaitingKind::Call) => Some("call_not_made"),
        _ => None,
    }
}

/// Returns the code in front of an outcome; those of earlier versions have none.
fn code_in_outcome(entry: &WaitingEntry) -> Option<&'static str> {
    let (code, _) = entry.outcome.as_deref()?.split_once(": ")?;
    code.parse::<DenialCode>().ok().map(DenialCode::name)
}
