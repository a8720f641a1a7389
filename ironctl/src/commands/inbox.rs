//! `ironctl inbox`: shows what waits, one at a time, and asks a person for a decision or an answer; lists it, and shows one.
//!
//! Never decides by itself: `commands::review` reads the decision. See [`crate::commands::waiting`] for one of them by its id.

use super::allowance;
use super::named_agent::NamedAgent;
use super::review::{self, Choice, Subject, Words};
use super::waiting::words::{approvals, calls_together, count_yours, in_a_line, one_line, requester};
use super::waiting::{self, Asked, OUTCOME_TIMEOUT, together};
use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::table::Columns;
use crate::output::{NARROW, Output, alternatives};
use clap::Subcommand;
use ironclaw_operator::{
    NewRequestReset, WaitingEntry, WaitingId, WaitingKind, WaitingList, WaitingStatus, WaitingTogether, routes,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Least width of the terminal; the pages are a little narrower.
const COLUMNS_MIN: usize = 80;

/// Lines of the number of waiting entries, and of the result of a decision, each with an empty line below.
const NUMBER_ROWS: usize = 2;
const RESULT_ROWS: usize = 2;

/// Most entries of a list.
const LIST_MAX: usize = 200;

/// The columns of a list.
const COLUMNS: Columns<'_, 8> =
    Columns::new(["ID", "TYPE", "AGENT", "STATUS", "SUBJECT", "REQUESTED BY", "APPROVALS", "UNTIL"])
        .with_least(&["TYPE", "APPROVALS"]);

/// Options of `ironctl inbox`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl inbox\n  ironctl inbox --json\n  ironctl inbox list --own --status all\n  ironctl inbox --reset assistant\n  ironctl inbox --reset assistant --person mara"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Begin the counts of this agent's requests anew, so that it may ask again; decides nothing
    #[arg(long, value_name = "AGENT")]
    reset: Option<String>,
    /// Only the requests on behalf of this person
    #[arg(long, value_name = "PERSON", requires = "reset")]
    person: Option<String>,
}

/// The verbs of `ironctl inbox`.
#[derive(Debug, Subcommand)]
enum Action {
    /// List calls, questions and changes, by default those that wait and concern you
    #[command(
        after_help = "Example:\n  ironctl inbox list\n  ironctl inbox list --own --status all\n  ironctl inbox list assistant --type change"
    )]
    List(List),
    /// Show the page and the status of a call, a question or a change
    #[command(after_help = "Example:\n  ironctl inbox show chg_01j9zq4w0v2m6n8p0r2t4v6x8z")]
    Show {
        /// Id of the call's approval request (req_…), of the question (qst_…) or of the change (chg_…)
        id: WaitingId,
    },
}

/// Options of `ironctl inbox list`.
#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    of: NamedAgent,
    // The help of these two lists every word, so it is not a doc comment.
    #[arg(long = "type", value_name = "TYPE", help = format!("Type: {}", alternatives(WaitingKind::ALL)))]
    kind: Option<String>,
    #[arg(long, help = format!("Status: {}; several with commas, or all [default: {}]", alternatives(WaitingStatus::ALL), alternatives(WaitingStatus::OPEN)))]
    status: Option<String>,
    /// Only what you asked for, in person or through an agent
    #[arg(long)]
    own: bool,
    /// Most entries to list
    #[arg(long, default_value_t = LIST_MAX)]
    limit: usize,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    match (args.action, args.reset) {
        (Some(_), Some(_)) => Err(Error::usage("--reset does not list or show", "ironctl inbox --reset AGENT")),
        (Some(Action::List(wanted)), None) => list(at, wanted).await,
        (Some(Action::Show { id }), None) => show(at, id).await,
        (None, Some(agent)) => reset(at, &agent, args.person).await,
        (None, None) => decide_each(at).await,
    }
}

/// Shows each call, question and change that waits and applies the decision of the person; lists them for a script.
pub async fn decide_each(at: &At) -> Result<(), Error> {
    if at.out.is_json() {
        return for_script(at).await;
    }
    check_terminal(at.out)?;
    let client = at.client()?;
    let (mut shown, mut not_shown) = (Shown::default(), 0);
    let mut above = NUMBER_ROWS;
    while let Some((first, waiting)) = first_new(&client, &shown.seen).await? {
        let id = first.id;
        at.out.line(format!("{waiting} to decide\n"))?;
        shown.seen.insert(id);
        let decided = match shown.together(&client, &first).await? {
            Some(page) => shown.decide_together(at.out, &client, id, &page, above).await,
            None => decide(at.out, &client, id, Words::Inbox, above).await,
        };
        match decided {
            Ok(true) => {}
            Ok(false) => return result(not_shown),
            // Another person decided first, it expired, or this person may not decide on it: continue with the next.
            Err(Error::Refused(failure)) => at.out.failure(&Error::Refused(failure)),
            Err(error @ Error::Failed { code: "shown_forged" | "text_unsafe", .. }) => {
                not_shown += 1;
                let forged = Error::failed("shown_forged", format!("{id} is undecided: {error}"));
                at.out.failure(&forged.hinting("look at `ironctl audit verify` and `ironctl logs`"));
            }
            Err(error) => return Err(error),
        }
        at.out.line("")?;
        above = NUMBER_ROWS + RESULT_ROWS;
    }
    print_rest(at.out, &client.call(routes::WAITING_LIST, []).await?)?;
    print_unread(at.out, &client).await?;
    allowance::print_offers(at, &client.call(routes::ALLOWANCE_OFFERS, []).await?)?;
    result(not_shown)
}

async fn list(at: &At, wanted: List) -> Result<(), Error> {
    let List { of, kind, status, own, limit } = wanted;
    let query = json!({
        "type": kind, "status": status, "agent": of.name(), "own": own.then_some(true), "limit": limit
    });
    let WaitingList { entries, more } = at.client()?.query(routes::WAITING_LIST, [], query).await?;
    let entries = if at.out.is_json() { entries } else { folded(entries) };
    let withdrawable = entries.iter().find(|entry| entry.may_reject && !entry.yours).map(|entry| entry.id);
    let row = |entry: WaitingEntry| {
        let until = entry.status.is_open().then(|| clock::to_the_minute(&entry.expires_at));
        [
            entry.id.to_string(),
            entry.kind.to_string(),
            entry.agent.clone().unwrap_or_default(),
            entry.status.to_string(),
            subject(&entry),
            requester(&entry.requested_by),
            approvals(&entry),
            until.unwrap_or_default(),
        ]
    };
    at.out.list(entries, "no entries", COLUMNS, row)?;
    if let Some(id) = withdrawable {
        at.out.remark(format!("other people decide on some of these; `ironctl reject {id}` ends one"))?;
    }
    if more { at.out.remark("there are more: use --limit, --type, --status or --agent") } else { Ok(()) }
}

/// Leaves out each call that waits together with an earlier one: one page shows them all.
pub fn folded(mut entries: Vec<WaitingEntry>) -> Vec<WaitingEntry> {
    let mut shown = BTreeSet::new();
    entries.retain(|entry| {
        let is_first = shown.insert(entry.id);
        shown.extend(calls_together(entry));
        is_first
    });
    entries
}

/// Returns the question, the tool with the number of calls that wait together, or the kind of the change.
fn subject(entry: &WaitingEntry) -> String {
    match calls_together(entry).len() {
        0 => one_line(entry.question.as_ref().unwrap_or(&entry.subject)),
        calls => format!("{} ({calls} calls)", entry.subject),
    }
}

async fn show(at: &At, id: WaitingId) -> Result<(), Error> {
    let waiting = waiting::read(&at.client()?, id).await?;
    if waiting.entry.status.is_open() {
        Subject::from(&waiting).verified()?;
    }
    at.out.json(&waiting)?;
    at.out.exact(&waiting.shown)?;
    at.out.line("")?;
    waiting::print_end(at.out, &waiting)
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
    let mut all: Vec<Value> =
        client.call(routes::WAITING_LIST, []).await?.entries.iter().map(|entry| json!(entry)).collect();
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
fn print_rest(out: Output, left: &WaitingList) -> Result<(), Error> {
    let WaitingList { entries: left, more } = left;
    if left.is_empty() {
        return out.line("nothing waits");
    }
    if let Some(count) = count_yours(left) {
        out.line(format!("{count} (already shown)"))?;
    }
    left.iter()
        .filter(|entry| !entry.yours)
        .try_for_each(|entry| out.line(format!("{} {}: {}", entry.id, why_not_yours(entry), in_a_line(entry))))?;
    if *more { out.remark("there are more: decide on these, then run ironctl inbox again") } else { Ok(()) }
}

/// Returns the reason why a person cannot decide on an entry.
fn why_not_yours(entry: &WaitingEntry) -> String {
    let why = match (entry.kind, entry.status) {
        // A person may have answered it in the history that the restore took back.
        (WaitingKind::Question, WaitingStatus::Doubtful) => "can no longer be answered",
        _ => "waits for other people",
    };
    match entry.may_reject {
        true => format!("{why} (`ironctl reject {}` ends it)", entry.id),
        false => why.to_owned(),
    }
}

/// Shows one of them, with the calls that wait together with it, and applies the decision of the person.
pub async fn one(at: &At, client: &Client, id: WaitingId) -> Result<(), Error> {
    check_terminal(at.out)?;
    let mut shown = Shown::default();
    let entry = waiting::read(client, id).await?.entry;
    let Some(page) = shown.together(client, &entry).await? else {
        return decide(at.out, client, id, Words::One, 0).await.map(drop);
    };
    shown.decide_together(at.out, client, id, &page, 0).await?;
    for call in shown.by_themselves {
        if !decide(at.out, client, call, Words::Inbox, 0).await? {
            break;
        }
    }
    Ok(())
}

/// Returns what waits for this person and concerns an agent, by name or id.
pub async fn list_for_agent(client: &Client, agent: &str) -> Result<Vec<WaitingEntry>, Error> {
    let mut waiting = client.query(routes::WAITING_LIST, [], json!({ "agent": agent })).await?.entries;
    waiting.retain(|entry| entry.yours);
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
            "in a script use: ironctl inbox --json, inbox show ID, why ID, approve ID, reject ID, answer ID TEXT",
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

/// Returns the result of the inbox: a failure if a page was not shown.
fn result(not_shown: u64) -> Result<(), Error> {
    match not_shown {
        0 => Ok(()),
        1 => Err(Error::failed("shown_forged", "1 page was not shown and is undecided")),
        many => Err(Error::failed("shown_forged", format!("{many} pages were not shown and are undecided"))),
    }
}

/// Returns the entry with the soonest end that this person may decide on and that was not shown yet, and the number of these entries.
async fn first_new(client: &Client, seen: &BTreeSet<WaitingId>) -> Result<Option<(WaitingEntry, usize)>, Error> {
    let mut new = client.call(routes::WAITING_LIST, []).await?.entries;
    new.retain(|entry| entry.yours && !seen.contains(&entry.id));
    let count = new.len();
    // The host lists the one with the soonest end first.
    Ok(new.into_iter().next().map(|first| (first, count)))
}

/// What the person has seen of the inbox.
#[derive(Default)]
struct Shown {
    seen: BTreeSet<WaitingId>,
    /// The calls that the person decides on by themselves.
    by_themselves: BTreeSet<WaitingId>,
}

impl Shown {
    /// Returns the page of several calls that the person is to see for an entry.
    async fn together(&self, client: &Client, entry: &WaitingEntry) -> Result<Option<WaitingTogether>, Error> {
        if self.by_themselves.contains(&entry.id) || calls_together(entry).is_empty() {
            return Ok(None);
        }
        together::page(client, entry.id).await
    }

    /// Shows the page of several calls and applies the decision of the person; returns false if the person leaves.
    async fn decide_together(
        &mut self,
        out: Output,
        client: &Client,
        id: WaitingId,
        page: &WaitingTogether,
        above: usize,
    ) -> Result<bool, Error> {
        let calls = page.calls.iter().map(|call| WaitingId::from(*call));
        match together::ask(out, page, Words::Inbox, above).await? {
            Choice::Decide(decision) => {
                self.seen.extend(calls);
                waiting::decide(client, id, decision).await?;
                out.report(together::outcomes(out, &together::settled(client, page).await?))?;
            }
            Choice::Each => {
                self.by_themselves.extend(calls);
                self.seen.remove(&id);
            }
            Choice::Edit | Choice::Skip => self.seen.extend(calls),
            Choice::Quit => return Ok(false),
        }
        Ok(true)
    }
}

/// Shows one of them and applies the decision or the answer of the person; returns false if the person leaves. So many lines stay
/// `above` it.
async fn decide(out: Output, client: &Client, id: WaitingId, words: Words, above: usize) -> Result<bool, Error> {
    let waiting = waiting::read(client, id).await?;
    let decided = match waiting::ask(out, client, &waiting, words, above).await? {
        Asked::Decided(decided) => waiting::settled(client, *decided, OUTCOME_TIMEOUT).await?,
        Asked::Edit | Asked::Left => return Ok(true),
        Asked::Quit => return Ok(false),
    };
    out.report(waiting::outcome(out, &decided))?;
    Ok(true)
}
