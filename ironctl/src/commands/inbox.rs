//! `ironctl inbox`: one change at a time, exactly as the host shows it, and the word of a person about it.
//!
//! Never decides by itself: `commands::review` takes the word. See [`crate::commands::change`] for scripts.

use super::review::{self, Said};
use super::{At, change};
use crate::client::Client;
use crate::failure::Error;
use crate::output::{NARROW, Output};
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::operator::ChangeSummary;
use std::collections::BTreeSet;
use std::time::Duration;

/// The host's pages are a little less wide.
const COLUMNS_MIN: usize = 80;

/// Goes through everything that waits.
pub async fn run(at: &At) -> Result<(), Error> {
    if !review::is_possible(at.out) {
        return Err(Error::usage(
            "the inbox is for a person on a terminal",
            "scripts use: ironctl change list, change show ID, approve ID, reject ID",
        ));
    }
    if let Some(columns) = at.out.columns().filter(|columns| *columns < COLUMNS_MIN) {
        let message = format!("the terminal has {columns} columns, and the inbox takes {COLUMNS_MIN}");
        return Err(Error::failed("terminal_narrow", message).hinting(NARROW));
    }
    let client = at.client()?;
    let (mut seen, mut left_alone) = (BTreeSet::new(), 0);
    while let Some((next, waiting)) = next(&client, &seen).await? {
        seen.insert(next.id);
        at.out.line(format!("{waiting} to look at\n"))?;
        match decide(at.out, &client, &next.id.to_string()).await {
            Ok(Go::On) => {}
            Ok(Go::Past) => left_alone += 1,
            Ok(Go::Home) => return ended(left_alone),
            // Another person was first, its time is over, or it is not this person's: the next one may be.
            Err(Error::Refused(failure)) => {
                at.out.failure(&Error::Refused(failure));
                at.out.line("")?;
            }
            Err(error) => return Err(error),
        }
    }
    match client.changes(None, None, change::LIST_MAX).await?.changes.len() {
        0 => at.out.line("nothing waits")?,
        left => at.out.line(format!("{} shown already", wait(left as u64)))?,
    }
    ended(left_alone)
}

/// Ends the inbox: a person who let changes go by without being shown them is told, and a script that started it too.
fn ended(left_alone: u64) -> Result<(), Error> {
    match left_alone {
        0 => Ok(()),
        1 => Err(Error::failed("shown_forged", "1 change was not shown, and is left alone")),
        many => Err(Error::failed("shown_forged", format!("{many} changes were not shown, and are left alone"))),
    }
}

/// Formats `1 change waits`, `2 changes wait`.
pub fn wait(changes: u64) -> String {
    if changes == 1 { "1 change waits".to_owned() } else { format!("{changes} changes wait") }
}

enum Go {
    On,
    /// Past one that could not be shown as it is.
    Past,
    Home,
}

/// Returns the change that waits longest of those that were not shown yet, and how many there are.
async fn next(client: &Client, seen: &BTreeSet<ChangeId>) -> Result<Option<(ChangeSummary, String)>, Error> {
    let found = client.changes(None, None, change::LIST_MAX).await?;
    let new: Vec<ChangeSummary> = found.changes.into_iter().filter(|change| !seen.contains(&change.id)).collect();
    let waiting = format!("{}{}", if found.more { "more than " } else { "" }, new.len());
    // The host lists the oldest first.
    Ok(new.into_iter().next().map(|next| (next, waiting)))
}

/// Shows one change and does what the person says.
async fn decide(out: Output, client: &Client, id: &str) -> Result<Go, Error> {
    let waiting = client.change(id, Duration::ZERO).await?;
    let decided = match review::ask(out, &waiting, true) {
        Ok(Said::Quit) => return Ok(Go::Home),
        Ok(Said::Skip) => {
            out.line("")?;
            return Ok(Go::On);
        }
        Ok(Said::Approve(shown)) => client.approve(id, shown).await?,
        Ok(Said::Reject(reason)) => client.reject(id, reason).await?,
        Err(error @ Error::Failed { code: "shown_forged" | "text_unsafe", .. }) => {
            let forged = Error::failed("shown_forged", format!("{id} is left alone: {error}"));
            out.failure(&forged.hinting("look at `ironctl audit verify` and `ironctl logs`"));
            out.line("")?;
            return Ok(Go::Past);
        }
        Err(error) => return Err(error),
    };
    let decided = change::settled(client, decided).await?;
    match change::outcome(out, &decided) {
        Err(error @ Error::Failed { .. }) => out.failure(&error),
        told => told?,
    }
    out.line("")?;
    Ok(Go::On)
}
