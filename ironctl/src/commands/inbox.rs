//! `ironctl inbox`: shows the changes that wait, one at a time, and asks a person for a decision on each.
//!
//! Never decides by itself: `commands::review` reads the decision. See [`crate::commands::change`] for scripts.

use super::review::{self, Choice};
use super::{At, change};
use crate::client::Client;
use crate::failure::Error;
use crate::output::{NARROW, Output};
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::operator::ChangeSummary;
use std::collections::BTreeSet;
use std::time::Duration;

/// Least width of the terminal; the review pages are a little narrower.
const COLUMNS_MIN: usize = 80;

/// Lines of the number of waiting changes, and of the result of a decision, each with an empty line below.
const NUMBER_ROWS: usize = 2;
const RESULT_ROWS: usize = 2;

/// Shows each change that waits and applies the decision of the person.
pub async fn run(at: &At) -> Result<(), Error> {
    check_terminal(at.out)?;
    let client = at.client()?;
    let (mut seen, mut not_shown) = (BTreeSet::new(), 0);
    let mut above = NUMBER_ROWS;
    while let Some((change, waiting)) = first_new(&client, &seen).await? {
        seen.insert(change.id);
        at.out.line(format!("{waiting} to decide\n"))?;
        match decide(at.out, &client, &change.id.to_string(), Some(above)).await {
            Ok(Next::Continue) => {}
            Ok(Next::Skip) => not_shown += 1,
            Ok(Next::Quit) => return result(not_shown),
            // Another person decided first, the change expired, or this person may not decide it: continue with the next.
            Err(Error::Refused(failure)) => {
                at.out.failure(&Error::Refused(failure));
                at.out.line("")?;
            }
            Err(error) => return Err(error),
        }
        above = NUMBER_ROWS + RESULT_ROWS;
    }
    match client.changes(None, None, change::LIST_MAX).await?.changes.len() {
        0 => at.out.line("nothing waits")?,
        left => at.out.line(format!("{} (already shown)", count(left as u64)))?,
    }
    result(not_shown)
}

/// Shows one change and applies the decision of the person.
pub async fn one(at: &At, client: &Client, id: ChangeId) -> Result<(), Error> {
    check_terminal(at.out)?;
    match decide(at.out, client, &id.to_string(), None).await? {
        Next::Continue | Next::Quit => Ok(()),
        Next::Skip => result(1),
    }
}

/// Fails unless a person can read a page and answer.
fn check_terminal(out: Output) -> Result<(), Error> {
    if !review::is_possible(out) {
        return Err(Error::usage(
            "the inbox is for a person on a terminal",
            "in a script use: ironctl change list, change show ID, approve ID, reject ID",
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
        1 => Err(Error::failed("shown_forged", "1 change was not shown and is undecided")),
        many => Err(Error::failed("shown_forged", format!("{many} changes were not shown and are undecided"))),
    }
}

/// Formats `1 change waits`, `2 changes wait`.
pub fn count(changes: u64) -> String {
    if changes == 1 { "1 change waits".to_owned() } else { format!("{changes} changes wait") }
}

/// The next step of the inbox.
enum Next {
    Continue,
    /// Skip a change that could not be shown safely.
    Skip,
    Quit,
}

/// Returns the longest waiting change that was not shown yet, and the number of these changes.
async fn first_new(client: &Client, seen: &BTreeSet<ChangeId>) -> Result<Option<(ChangeSummary, String)>, Error> {
    let found = client.changes(None, None, change::LIST_MAX).await?;
    let new: Vec<ChangeSummary> = found.changes.into_iter().filter(|change| !seen.contains(&change.id)).collect();
    let waiting = format!("{}{}", if found.more { "more than " } else { "" }, new.len());
    // The host lists the oldest first.
    Ok(new.into_iter().next().map(|change| (change, waiting)))
}

/// Shows a change and applies the decision of the person. In the inbox the person may skip it, and so many lines stay `above` it.
async fn decide(out: Output, client: &Client, id: &str, above: Option<usize>) -> Result<Next, Error> {
    let waiting = client.change(id, Duration::ZERO).await?;
    let decided = match review::ask(out, &waiting, above.is_some(), above.unwrap_or(0)) {
        Ok(Choice::Quit) => return Ok(Next::Quit),
        Ok(Choice::Skip) => {
            out.line("")?;
            return Ok(Next::Continue);
        }
        Ok(Choice::Approve(shown)) => client.approve(id, shown).await?,
        Ok(Choice::Reject(reason)) => client.reject(id, reason).await?,
        Err(error @ Error::Failed { code: "shown_forged" | "text_unsafe", .. }) => {
            let forged = Error::failed("shown_forged", format!("{id} is undecided: {error}"));
            out.failure(&forged.hinting("look at `ironctl audit verify` and `ironctl logs`"));
            out.line("")?;
            return Ok(Next::Skip);
        }
        Err(error) => return Err(error),
    };
    let decided = change::settled(client, decided).await?;
    match change::outcome(out, &decided) {
        Err(error @ Error::Failed { .. }) => out.failure(&error),
        other => other?,
    }
    out.line("")?;
    Ok(Next::Continue)
}
