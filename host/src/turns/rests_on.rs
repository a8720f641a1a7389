//! What a reply rests on: the items that were in the prompts of the outputs of its turn.
//!
//! Changes no judgement, and never says that a reply is true. The host records the numbers of these items beside each output, see
//! [`record`]. See [`mod@shown`] for the marks and the URLs in a reply.

mod kind;
mod marks;
mod ranges;
pub mod shown;
mod urls;

pub use ranges::Ranges;

use crate::registry::{agent_by_id, name_or_id, person_by_id};
use crate::sessions::store::Session;
use crate::turns::items::{self, Recorded};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::{Source, Sources};
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::items as tables;
use kind::Kinds;

/// The bound on items that are read for one reply. A prompt has at most as many parts.
const ITEMS_READ_MAX: usize = 4096;

/// The bound on sources in a list. Older ones are counted alone.
const LISTED_MAX: usize = 200;

/// Records the items in the prompt of an output, beside the output.
pub fn record(tx: &mut WriteTx<'_>, output: ItemId, prompt: &Ranges) -> Result<(), ironclaw_state::Error> {
    tables::set_prompt(tx, output, &canonical::to_string(prompt))
}

/// Returns what a reply of a session rests on.
pub fn sources(tx: &ReadTx<'_>, session: &Session, reply: &Recorded, key: &ContentKey) -> Result<Sources, Error> {
    let Some((prompt, items)) = prompted(tx, session, reply)? else { return Ok(unrecorded()) };
    let mut kinds = Kinds::new(tx, session, reply, key);
    let (mut listed, mut results) = (Vec::new(), 0);
    for item in &items {
        // The prompt of a model has no result of a script.
        let Some(found) = kinds.find(item)? else { continue };
        results += u64::from(found.kind.counts());
        let spans = item.spans();
        let by = spans.iter().map(|span| by(tx, &span.author)).collect::<Result<Vec<_>, Error>>()?;
        listed.push(Source {
            item: item.tuple.item,
            seq: item.tuple.seq,
            kind: found.kind,
            counts: found.kind.counts(),
            at: ironclaw_ledger::rfc3339(item.tuple.issued_at),
            authors: distinct(spans.iter().map(|span| author(&span.author))),
            by: distinct(by).join(" + "),
            labels: item.tuple.labels.clone(),
            tool: found.tool,
            path: found.path,
            covers: match item.tuple.kind {
                ItemKind::Summary => {
                    items::summary::covered(tx, item.tuple.item)?.map(|covered| [covered.from, covered.upto])
                }
                ItemKind::Message | ItemKind::Output | ItemKind::Result | ItemKind::Notice => None,
            },
        });
    }
    let left_off = listed.len().saturating_sub(LISTED_MAX);
    let rests_on = listed.split_off(left_off);
    let dropped_upto = items::dropped_upto(tx, session.id)?;
    let is_whole = prompt.is_whole && prompt.first().is_none_or(|first| first > dropped_upto);
    Ok(Sources { results: Some(results), rests_on, left_off: left_off as u64, is_whole, summary: summary(results) })
}

/// Returns the number of results that a reply rests on; `None` if the record does not have it.
fn results(tx: &ReadTx<'_>, session: &Session, reply: &Recorded, key: &ContentKey) -> Result<Option<u64>, Error> {
    let Some((_, items)) = prompted(tx, session, reply)? else { return Ok(None) };
    let mut kinds = Kinds::new(tx, session, reply, key);
    let mut results = 0;
    for item in items.iter().filter(|item| item.tuple.kind != ItemKind::Summary) {
        results += u64::from(kinds.find(item)?.is_some_and(|found| found.kind.counts()));
    }
    Ok(Some(results))
}

/// Returns the items in the prompts of the outputs of a reply's turn, in order; `None` if the record does not have them.
fn prompted(
    tx: &ReadTx<'_>,
    session: &Session,
    reply: &Recorded,
) -> Result<Option<(Ranges, Vec<Recorded>)>, ironclaw_state::Error> {
    let Some(turn) = reply.tuple.turn.filter(|_| reply.tuple.kind == ItemKind::Output) else { return Ok(None) };
    let prompts = tables::prompts_in_turn(tx, session.id, turn, reply.tuple.seq)?;
    if prompts.is_empty() {
        return Ok(None);
    }
    let damaged = |_| ironclaw_state::Error::Stored(format!("the prompt of {}", reply.tuple.item));
    let read = prompts.iter().map(|prompt| serde_json::from_str(prompt).map_err(damaged));
    let mut all = Ranges::joined(read.collect::<Result<Vec<Ranges>, _>>()?);
    let mut found = Vec::new();
    for [from, upto] in all.ranges.iter().rev() {
        let left = ITEMS_READ_MAX - found.len();
        found.extend(tables::sources_between(tx, session.id, *from, *upto, left)?);
    }
    all.is_whole &= found.len() < ITEMS_READ_MAX;
    found.reverse();
    Ok(Some((all, found)))
}

/// Returns the sources of a reply whose prompts are not in the record: it is older than this list, or no output.
fn unrecorded() -> Sources {
    let summary = "the record does not have what it rests on".to_owned();
    Sources { results: None, rests_on: Vec::new(), left_off: 0, is_whole: false, summary }
}

/// Returns the line about a number of results.
fn summary(results: u64) -> String {
    match results {
        0 => "rests on no result".to_owned(),
        1 => "rests on 1 result".to_owned(),
        more => format!("rests on {more} results"),
    }
}

/// Returns an author in words.
pub fn author(author: &Author) -> String {
    match author {
        Author::Person { person } => format!("person {person}"),
        Author::Quoted => "quoted".to_owned(),
        Author::File { name } => format!("file {name}"),
        Author::Model => "model".to_owned(),
        Author::Agent { agent } => format!("agent {agent}"),
        Author::Tool { tool } => format!("tool {tool}"),
        Author::Host => "host".to_owned(),
    }
}

/// Returns an author in words for people, by name.
fn by(tx: &ReadTx<'_>, of: &Author) -> Result<String, Error> {
    Ok(match of {
        Author::Person { person } => name_or_id(person_by_id(tx, *person)?.map(|found| found.name), person),
        Author::Agent { agent } => {
            format!("agent {}", name_or_id(agent_by_id(tx, *agent)?.map(|found| found.name), agent))
        }
        Author::Quoted | Author::File { .. } | Author::Model | Author::Tool { .. } | Author::Host => author(of),
    })
}

/// Returns texts in order, each once.
fn distinct(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
