//! Search for the ledger entries of a message whose row was removed.
//!
//! Searches the live chain, then a bounded number of archives from the time in the message's id. See [`mod@crate::stages`].

pub use super::table::{forget, forgettable};

use super::{archive, stages, table};
use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_operator::{LedgerEvent, Stage};
use ironclaw_state::ReadTx;
use ironclaw_state::home::Home;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::BufRead;

/// Archives that one search reads. Any client may ask for any id.
const ARCHIVES_MAX: usize = 4;

/// Archives that one search reads after the first that names the message; they may name its turns.
const ARCHIVES_AFTER: usize = 2;

/// Characters of an id that encode its time.
const TIME_CHARACTERS: usize = 10;

/// A message without a row.
#[derive(Debug)]
pub struct Forgotten {
    /// Its principal, `per_…`.
    pub person: String,
    pub session: SessionId,
    /// The stages of the message.
    pub stages: Vec<Stage>,
    turns: BTreeSet<String>,
}

/// Finds the message in the live chain, without its stages; `None` if the live chain does not record it.
///
/// # Errors
/// Those of the database.
pub fn find_live(tx: &ReadTx<'_>, message: MessageId) -> Result<Option<Forgotten>, ironclaw_state::Error> {
    Ok(table::first_about(tx, message)?.as_ref().and_then(recorded_for))
}

/// Finds the message in the nearest archives, with its stages there; `None` if none of them records it. Reads whole files, so an async
/// thread or a thread of the record must not call it.
///
/// An unreadable archive becomes a stage, at `now`.
pub fn find_archived(home: &Home, message: MessageId, now: i64) -> Option<Forgotten> {
    let id = message.to_string();
    // `audit verify` names a directory or an archive that is not readable.
    let firsts = archive::firsts(home).unwrap_or_default();
    let near = nearest(home, &firsts, time_of(&id));
    let (first, mut found) = near.into_iter().find_map(|first| Some((first, recorded_in(home, first, &id)?)))?;
    for first in firsts.iter().filter(|other| **other >= first).take(1 + ARCHIVES_AFTER) {
        if let Err(error) = stages::archived(home, *first, message, &mut found.turns, &mut found.stages) {
            found.stages.push(stages::unreadable(home, *first, now, &error));
        }
    }
    Some(found)
}

impl Forgotten {
    /// Adds the stages of the live chain.
    ///
    /// # Errors
    /// Those of the database.
    pub fn add_live(&mut self, tx: &ReadTx<'_>, message: MessageId) -> Result<(), ironclaw_state::Error> {
        self.turns.extend(table::turns_of(tx, message)?);
        stages::live(tx, message, &self.turns, &mut self.stages)
    }
}

/// Reads the message from an entry `message.recorded`.
fn recorded_for(data: &Map<String, Value>) -> Option<Forgotten> {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    (text("what") == Some(LedgerEvent::MessageRecorded.name())).then_some(())?;
    let (person, session) = (text("person")?.to_owned(), text("session")?.parse().ok()?);
    Some(Forgotten { person, session, stages: Vec::new(), turns: BTreeSet::new() })
}

fn recorded_in(home: &Home, first: u64, id: &str) -> Option<Forgotten> {
    let lines = archive::open(home, first).ok()?.lines().map_while(Result::ok);
    let mut named = lines.filter(|line| line.contains(id)).filter_map(|line| stages::data_of(&line));
    named.find(|data| data.get("message").and_then(Value::as_str) == Some(id)).as_ref().and_then(recorded_for)
}

/// Returns the archives that most likely name a message of this time: the chain in use at that time, and its neighbours.
fn nearest(home: &Home, firsts: &[u64], time: i64) -> Vec<u64> {
    let begun = |first: u64| {
        let line = archive::open(home, first).ok()?.lines().next()?.ok()?;
        stages::data_of(&line)?.get("at")?.as_i64()
    };
    let place = firsts.partition_point(|first| begun(*first).is_some_and(|at| at <= time));
    let from = place.saturating_sub(2);
    let mut near: Vec<u64> = firsts.iter().skip(from).take(ARCHIVES_MAX).copied().collect();
    // The last chain that began before that time comes first.
    let likeliest = place.saturating_sub(1).saturating_sub(from).min(near.len().saturating_sub(1));
    if !near.is_empty() {
        near.swap(0, likeliest);
    }
    near
}

/// Returns the time in an id, milliseconds since the epoch: the first 48 bits of a ULID, in Crockford's base 32.
fn time_of(id: &str) -> i64 {
    const DIGITS: &str = "0123456789abcdefghjkmnpqrstvwxyz";
    let text = id.rsplit('_').next().unwrap_or_default();
    let digit = |time: i64, c: char| time * 32 + DIGITS.find(c).unwrap_or(0) as i64;
    text.chars().take(TIME_CHARACTERS).fold(0, digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_an_id_is_its_creation() {
        let before = ironclaw_state::wall_clock();
        let time = time_of(&MessageId::new().to_string());
        assert!((before - 1..=ironclaw_state::wall_clock() + 1).contains(&time), "{time}");
    }
}
