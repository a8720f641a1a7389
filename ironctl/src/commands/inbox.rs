//! `ironctl inbox`: shows the calls, questions and changes that wait, one at a time, and asks a person for a decision or an answer.
//!
//! Never decides by itself: `commands::review` reads the decision. For scripts it lists them. See [`crate::commands::decidable`] for
//! one of them by its id.

use super::allowance;
use super::decidable::Decidable;
use super::question::{self, Asked, QUESTION_PREFIX};
use super::review::{self, Choice, Words};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::output::{NARROW, Output};
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::{EntryId, Inbox, InboxEntry, NewRequestReset, routes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// Least width of the terminal; the pages are a little narrower.
const COLUMNS_MIN: usize = 80;

/// Lines of the number of waiting entries, and of the result of a decision, each with an empty line below.
const NUMBER_ROWS: usize = 2;
const RESULT_ROWS: usize = 2;

/// Characters of the effect of an entry in a list.
const EFFECT_CHARS_MAX: usize = 100;

/// Options of `ironctl inbox`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl inbox\n  ironctl inbox --json\n  ironctl inbox --reset assistant\n  ironctl inbox --reset assistant --person mara"
)]
pub struct Args {
    /// Begin the counts of this agent's requests anew, so that it may ask again; decides nothing
    #[arg(long, value_name = "AGENT")]
    reset: Option<String>,
    /// Only the requests on behalf of this person
    #[arg(long, value_name = "PERSON", requires = "reset")]
    person: Option<String>,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    match args.reset {
        Some(agent) => reset(at, &agent, args.person).await,
        None => decide_each(at).await,
    }
}

/// Shows each call, question and change that waits and applies the decision of the person; lists them for a script.
pub async fn decide_each(at: &At) -> Result<(), Error> {
    if at.out.is_json() {
        return for_script(at).await;
    }
    check_terminal(at.out)?;
    let client = at.client()?;
    let (mut seen, mut not_shown) = (BTreeSet::new(), 0);
    let mut above = NUMBER_ROWS;
    while let Some((id, waiting)) = first_new(&client, &seen).await? {
        at.out.line(format!("{waiting} to decide\n"))?;
        let next = decide(at.out, &client, &id, Words::Inbox, above).await;
        seen.insert(id);
        match next {
            Ok(Next::Continue) => {}
            Ok(Next::Skip) => not_shown += 1,
            Ok(Next::Quit) => return result(not_shown),
            // Another person decided first, it expired, or this person may not decide on it: continue with the next.
            Err(Error::Refused(failure)) => {
                at.out.failure(&Error::Refused(failure));
                at.out.line("")?;
            }
            Err(error) => return Err(error),
        }
        above = NUMBER_ROWS + RESULT_ROWS;
    }
    print_rest(at.out, &client.call(routes::INBOX, []).await?)?;
    print_unread(at.out, &client).await?;
    allowance::print_offers(at, &client.call(routes::ALLOWANCE_OFFERS, []).await?)?;
    result(not_shown)
}

/// Takes the requests of an agent so far out of every count.
async fn reset(at: &At, agent: &str, person: Option<String>) -> Result<(), Error> {
    let done = at.client()?.post(routes::RESET_REQUESTS, [&agent], &NewRequestReset { person }).await?;
    let of = done.person.as_ref().map_or_else(String::new, |person| format!(" for {person}"));
    let counted = match done.requests {
        1 => "1 request no longer counts".to_owned(),
        many => format!("{many} requests no longer count"),
    };
    at.out.result(&done, format!("agent {}{of} may ask again: {counted}", done.agent))
}

/// Prints the entries of the inbox, and after them the unread replies of each conversation.
async fn for_script(at: &At) -> Result<(), Error> {
    let client = at.client()?;
    let mut all: Vec<Value> = client.call(routes::INBOX, []).await?.entries.iter().map(|entry| json!(entry)).collect();
    all.extend(client.call(routes::UNREAD_COUNTS, []).await?.iter().map(|replies| json!(replies)));
    at.out.json(&all)
}

/// Prints a line for each agent with unread replies. Ignores a failed request: nothing is to be decided on them.
pub async fn print_unread(out: Output, client: &Client) -> Result<(), Error> {
    let mut of_agents: BTreeMap<String, u64> = BTreeMap::new();
    for replies in client.call(routes::UNREAD_COUNTS, []).await.unwrap_or_default() {
        *of_agents.entry(replies.agent).or_default() += replies.count;
    }
    for (agent, count) in of_agents {
        if let Some(count) = count_of_replies(count) {
            out.line(format!("{count} of {agent}: ironctl chat {agent}"))?;
        }
    }
    Ok(())
}

/// Formats `1 unread reply`; `None` without one.
fn count_of_replies(count: u64) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 unread reply".to_owned()),
        many => Some(format!("{many} unread replies")),
    }
}

/// Prints the number of entries that this person skipped, and each entry that waits for other people.
fn print_rest(out: Output, left: &Inbox) -> Result<(), Error> {
    let Inbox { entries: left, more } = left;
    if left.is_empty() {
        return out.line("nothing waits");
    }
    if let Some(count) = count_of(left) {
        out.line(format!("{count} (already shown)"))?;
    }
    left.iter()
        .filter(|entry| !entry.yours)
        .try_for_each(|entry| out.line(format!("{} {}: {}", entry.id, why_not_yours(entry), in_a_line(entry))))?;
    if *more { out.remark("there are more: decide on these, then run ironctl inbox again") } else { Ok(()) }
}

/// Returns the reason why a person cannot decide on an entry.
fn why_not_yours(entry: &InboxEntry) -> String {
    let id = &entry.id;
    match id {
        EntryId::Question(_) => format!("can no longer be answered (`ironctl reject {id}` removes it)"),
        EntryId::Call(_) if entry.may_reject => format!("waits for other people (`ironctl reject {id}` ends it)"),
        EntryId::Change(_) if entry.may_reject => {
            format!("waits for other people (`ironctl reject {id}` withdraws it)")
        }
        EntryId::Call(_) | EntryId::Change(_) => "waits for other people".to_owned(),
    }
}

/// Shows one call or change and applies the decision of the person.
pub async fn one(at: &At, client: &Client, id: &str) -> Result<(), Error> {
    check_terminal(at.out)?;
    match decide(at.out, client, id, Words::One, 0).await? {
        Next::Continue | Next::Quit => Ok(()),
        Next::Skip => result(1),
    }
}

/// Returns the calls and changes of an agent, by name or id, that wait for this person.
pub async fn list_for_agent(client: &Client, agent: &str) -> Result<Vec<InboxEntry>, Error> {
    let mut waiting = client.call(routes::INBOX, []).await?.entries;
    waiting.retain(|entry| entry.yours);
    if waiting.is_empty() {
        return Ok(waiting);
    }
    let name = match agent.parse::<AgentId>() {
        Ok(_) => client.call(routes::AGENT, [&agent]).await?.name,
        Err(_) => agent.to_owned(),
    };
    waiting.retain(|entry| entry.agent.as_ref() == Some(&name));
    Ok(waiting)
}

/// Returns whether a page fits on the width of the terminal.
pub fn is_wide(out: Output) -> bool {
    out.columns().is_none_or(|columns| columns >= COLUMNS_MIN)
}

/// Fails unless a person can read a page and answer.
fn check_terminal(out: Output) -> Result<(), Error> {
    if !review::is_possible(out) {
        return Err(Error::usage(
            "the inbox is for a person on a terminal",
            "in a script use: ironctl inbox --json, change show ID, why ID, approve ID, reject ID, answer ID TEXT",
        ));
    }
    match out.columns().filter(|columns| *columns < COLUMNS_MIN) {
        Some(columns) => {
            let message = format!("the terminal has {columns} columns, and the inbox needs {COLUMNS_MIN}");
            Err(Error::failed("terminal_narrow", message).hinting(NARROW))
        }
        None => Ok(()),
    }
}

/// Returns the result of the inbox: a failure if a change was not shown.
fn result(not_shown: u64) -> Result<(), Error> {
    match not_shown {
        0 => Ok(()),
        1 => Err(Error::failed("shown_forged", "1 page was not shown and is undecided")),
        many => Err(Error::failed("shown_forged", format!("{many} pages were not shown and are undecided"))),
    }
}

/// Formats the number of entries that wait for this person; `None` without one.
pub fn count_of(entries: &[InboxEntry]) -> Option<String> {
    let mine = || entries.iter().filter(|entry| entry.yours);
    let of = |is: fn(&EntryId) -> bool| mine().filter(|entry| is(&entry.id)).count() as u64;
    let calls = of(|id| matches!(id, EntryId::Call(_)));
    let questions = of(|id| matches!(id, EntryId::Question(_)));
    let changes = of(|id| matches!(id, EntryId::Change(_)));
    (calls + questions + changes > 0).then(|| count(calls, questions, changes))
}

/// Formats `1 change waits`, `2 calls and 1 change wait`, `1 call, 1 question and 1 change wait`.
pub fn count(calls: u64, questions: u64, changes: u64) -> String {
    let some = |number: u64, noun: &str| match number {
        0 => None,
        1 => Some(format!("1 {noun}")),
        many => Some(format!("{many} {noun}s")),
    };
    let all = [some(calls, "call"), some(questions, "question"), some(changes, "change")];
    let all: Vec<String> = all.into_iter().flatten().collect();
    let verb = if calls + questions + changes == 1 { "waits" } else { "wait" };
    let listed = match all.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.concat(),
    };
    format!("{listed} {verb}")
}

/// Returns an entry for a list: its type and its effect, in a part of a line.
pub fn in_a_line(entry: &InboxEntry) -> String {
    let effect = match entry.id {
        EntryId::Question(_) => question::in_a_line(entry),
        EntryId::Call(_) | EntryId::Change(_) => entry.effect.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let cut = if effect.chars().count() > EFFECT_CHARS_MAX { "…" } else { "" };
    format!("{}: {}{cut}", entry.entry_type, effect.chars().take(EFFECT_CHARS_MAX).collect::<String>())
}

/// The next step of the inbox.
enum Next {
    Continue,
    /// Skip an entry that could not be shown safely.
    Skip,
    Quit,
}

/// Returns the entry with the soonest end that this person may decide on and that was not shown yet, and the number of these entries.
async fn first_new(client: &Client, seen: &BTreeSet<String>) -> Result<Option<(String, usize)>, Error> {
    let mut new = client.call(routes::INBOX, []).await?.entries;
    new.retain(|entry| entry.yours && !seen.contains(&entry.id.to_string()));
    let waiting = new.len();
    // The host lists the one with the soonest end first.
    Ok(new.into_iter().next().map(|entry| (entry.id.to_string(), waiting)))
}

/// Shows a call or a change and applies the decision of the person. So many lines stay `above` it.
async fn decide(out: Output, client: &Client, id: &str, words: Words, above: usize) -> Result<Next, Error> {
    if id.starts_with(QUESTION_PREFIX) {
        return answer(out, client, id).await;
    }
    let waiting = Decidable::read(client, id).await?;
    let decided = match waiting.ask(out, client, words, above).await {
        Ok(Choice::Quit) => return Ok(Next::Quit),
        Ok(Choice::Skip) => {
            out.line("")?;
            return Ok(Next::Continue);
        }
        Ok(Choice::Approve(shown)) => Decidable::approve(client, id, shown).await?,
        Ok(Choice::Reject(reason)) => Decidable::reject(client, id, reason).await?,
        Err(error @ Error::Failed { code: "shown_forged" | "text_unsafe", .. }) => {
            let forged = Error::failed("shown_forged", format!("{id} is undecided: {error}"));
            out.failure(&forged.hinting("look at `ironctl audit verify` and `ironctl logs`"));
            out.line("")?;
            return Ok(Next::Skip);
        }
        Err(error) => return Err(error),
    };
    let decided = decided.settled(client).await?;
    match decided.outcome(out) {
        Err(error @ Error::Failed { .. }) => out.failure(&error),
        other => other?,
    }
    out.line("")?;
    Ok(Next::Continue)
}

/// Shows a question and takes the answer of the person.
async fn answer(out: Output, client: &Client, id: &str) -> Result<Next, Error> {
    let waiting = client.call(routes::QUESTION, [&id]).await?;
    match question::ask(out, client, &waiting).await? {
        Asked::Quit => return Ok(Next::Quit),
        Asked::Left => {}
        Asked::Answered(recorded) => {
            out.line(format!("answered {id}; ironctl why {} shows what the agent does", recorded.message_id))?;
        }
    }
    out.line("")?;
    Ok(Next::Continue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_calls_and_changes_is_in_words() {
        assert_eq!((count(0, 0, 1), count(1, 0, 0)), ("1 change waits".to_owned(), "1 call waits".to_owned()));
        assert_eq!(
            (count(2, 0, 1), count(0, 1, 0)),
            ("2 calls and 1 change wait".to_owned(), "1 question waits".to_owned())
        );
        assert_eq!(count(1, 1, 1), "1 call, 1 question and 1 change wait");
        assert_eq!(
            (count(0, 0, 2), count(1, 0, 1)),
            ("2 changes wait".to_owned(), "1 call and 1 change wait".to_owned())
        );
    }
}
