//! The stages of a message, read from the ledger, for `why`.
//!
//! It never guesses: archived entries are read from their archive, and an unavailable archive is reported as such. See `api::chat`
//! of the host.

use super::archive;
use super::line::{self, Line};
use super::{rfc3339, table};
use ironclaw_contract::ids::MessageId;
use ironclaw_contract::ledger_entry::{Kind, Verifier};
use ironclaw_operator::{Stage, StageOutcome};
use ironclaw_state::ReadTx;
use ironclaw_state::home::Home;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{self, BufRead};

/// Returns all entries after `after_seq` about a message or one of its turns.
pub fn stages(
    tx: &ReadTx<'_>,
    home: &Home,
    message: MessageId,
    after_seq: Option<u64>,
) -> Result<Vec<Stage>, ironclaw_state::Error> {
    let mut stages = Vec::new();
    let mut turns = BTreeSet::new();
    let mut done = BTreeSet::new();
    let mut open: BTreeSet<u64> = table::archives_of(tx, message)?;
    while let Some(first) = open.pop_first() {
        done.insert(first);
        if let Err(error) = archived(home, first, message, &mut turns, &mut stages) {
            stages.push(unreadable(home, first, tx.now(), &error));
        }
        for turn in &turns {
            // A chain before the first one that names the message has no entry about its turns.
            let others = table::archives_of(tx, turn)?.into_iter();
            open.extend(others.filter(|other| *other > first && !done.contains(other)));
        }
    }
    turns.extend(table::turns_of(tx, message)?);
    live(tx, message, &turns, &mut stages)?;
    stages.retain(|stage| after_seq.is_none_or(|after| stage.seq > after));
    Ok(stages)
}

/// Returns the ids of the turns that the live chain names with a message.
///
/// # Errors
/// Errors of the record.
pub fn turns_of(tx: &ReadTx<'_>, message: MessageId) -> Result<Vec<String>, ironclaw_state::Error> {
    table::turns_of(tx, message)
}

/// Returns the stage for an unreadable archive that may name the message.
pub(super) fn unreadable(home: &Home, first: u64, now: i64, error: &io::Error) -> Stage {
    Stage {
        seq: first,
        at: rfc3339(now),
        stage: "ledger.archived".to_owned(),
        outcome: StageOutcome::Unknown,
        reason: format!("its entries are in {}: {error}", archive::path(home, first).display()),
    }
}

/// Adds the stages of the message and its turns in the live chain.
pub(super) fn live(
    tx: &ReadTx<'_>,
    message: MessageId,
    turns: &BTreeSet<String>,
    stages: &mut Vec<Stage>,
) -> Result<(), ironclaw_state::Error> {
    stages.extend(table::about(tx, message, turns)?.iter().map(|entry| stage(entry.seq, entry.kind, &entry.data)));
    Ok(())
}

/// Adds the stages of the message and its turns in an archive, and the turns that it finds.
///
/// # Errors
/// An archive that is not whole is an error; the stages before the fault are added. The missing entries may be about the message.
pub(super) fn archived(
    home: &Home,
    first: u64,
    message: MessageId,
    turns: &mut BTreeSet<String>,
    stages: &mut Vec<Stage>,
) -> io::Result<()> {
    let message = message.to_string();
    let mut verifier = Verifier::starting_at(first);
    for text in archive::open(home, first)?.lines() {
        let text = text?;
        let parts = match line::parse(&text) {
            Some(Line::Entry(parts)) => parts,
            Some(Line::Head(head)) if head.seq + 1 == verifier.next_seq() && head.hash == verifier.head() => {
                return Ok(());
            }
            Some(Line::Head(_)) | None => {
                return Err(damaged(verifier.next_seq(), "the line is not an entry of the archive"));
            }
        };
        verifier
            .accept(parts.seq, parts.kind, parts.canonical, parts.hash)
            .map_err(|bad| damaged(bad.seq, &bad.why))?;
        // Most lines are about other messages; parsing each would take ten times as long.
        if !text.contains(&message) && !turns.iter().any(|turn| text.contains(turn.as_str())) {
            continue;
        }
        let (Ok(data), Ok(kind)) = (serde_json::from_str::<Map<String, Value>>(parts.canonical), parts.kind.parse())
        else {
            continue;
        };
        let named = |key: &str| data.get(key).and_then(Value::as_str);
        let turn = named("turn");
        if named("message") == Some(message.as_str()) {
            turns.extend(turn.map(str::to_owned));
        } else if !turn.is_some_and(|turn| turns.contains(turn)) {
            continue;
        }
        stages.push(stage(parts.seq, kind, &data));
    }
    Err(damaged(verifier.next_seq(), "the archive ends without its signed head"))
}

fn damaged(seq: u64, why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("it is damaged from entry {seq} on ({why}): restore a copy of it"),
    )
}

/// Returns the data of a line of an archive, if the line is an entry.
pub(super) fn data_of(text: &str) -> Option<Map<String, Value>> {
    match line::parse(text) {
        Some(Line::Entry(parts)) => serde_json::from_str(parts.canonical).ok(),
        _ => None,
    }
}

fn stage(seq: u64, kind: Kind, data: &Map<String, Value>) -> Stage {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let outcome = match (kind, data.get("outcome").and_then(Value::as_str)) {
        (_, Some("unknown")) => StageOutcome::Unknown,
        (_, Some("failed")) => StageOutcome::Failed,
        (_, Some("queued")) => StageOutcome::Queued,
        (Kind::Retract, _) => StageOutcome::Refused,
        (Kind::Genesis | Kind::Boot | Kind::Claim | Kind::Verify | Kind::Meta, _) => StageOutcome::Done,
    };
    let mut details: Vec<String> = Vec::new();
    for key in ["tool", "call", "row", "delivery", "reason"] {
        let value = text(key);
        if !value.is_empty() {
            details.push(if key == "reason" { value } else { format!("{key} {value}") });
        }
    }
    Stage {
        seq,
        at: rfc3339(data.get("at").and_then(Value::as_i64).unwrap_or(0)),
        stage: text("what"),
        outcome,
        reason: details.join(", "),
    }
}
