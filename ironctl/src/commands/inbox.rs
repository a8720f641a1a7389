//! `ironctl inbox`: one change at a time, exactly as the host shows it, and the word of a person about it.
//! Never takes anything but a whole word for an answer, and never one that was typed before the question.
//! Next: `commands::change` for scripts.

use super::{At, change};
use crate::client::Client;
use crate::failure::Error;
use crate::output::{NARROW, Output};
use ironclaw_contract::operator::{ChangeSummary, Digest};
use nix::sys::termios::{FlushArg, tcflush};
use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

/// The host's pages are a little less wide.
const COLUMNS_MIN: usize = 80;

/// A page of more lines has left the screen by the time of the question.
const LINES_SEEN: usize = 60;

/// What a person says about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Approve,
    Reject,
    Skip,
    Quit,
}

impl Answer {
    /// The whole word and nothing else: no letter of it, no space around it, nothing on Enter.
    fn read(line: &str) -> Option<Self> {
        match line {
            "approve" => Some(Self::Approve),
            "reject" => Some(Self::Reject),
            "skip" => Some(Self::Skip),
            "quit" => Some(Self::Quit),
            _ => None,
        }
    }
}

/// Goes through everything that waits.
pub async fn run(at: &At) -> Result<(), Error> {
    if at.out.is_json() || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
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
        seen.insert(next.id.clone());
        at.out.line(format!("{waiting} to look at\n"))?;
        match decide(at.out, &client, &next.id).await {
            Ok(Go::On) => {}
            Ok(Go::Past) => left_alone += 1,
            Ok(Go::Home) => return ended(left_alone),
            // Somebody else was first, its time is over, or it is not this person's: the next one may be.
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

/// How it ends: whoever let changes go by without being shown them is told, and a script that started it too.
fn ended(left_alone: u64) -> Result<(), Error> {
    match left_alone {
        0 => Ok(()),
        1 => Err(Error::failed("shown_forged", "1 change was not shown, and is left alone")),
        many => Err(Error::failed("shown_forged", format!("{many} changes were not shown, and are left alone"))),
    }
}

/// `1 change waits`, `2 changes wait`.
pub fn wait(changes: u64) -> String {
    if changes == 1 { "1 change waits".to_owned() } else { format!("{changes} changes wait") }
}

enum Go {
    On,
    /// Past one that could not be shown as it is.
    Past,
    Home,
}

/// The change that waits longest of those that were not shown yet, and how many there are.
async fn next(client: &Client, seen: &BTreeSet<String>) -> Result<Option<(ChangeSummary, String)>, Error> {
    let found = client.changes(None, None, change::LIST_MAX).await?;
    let new: Vec<ChangeSummary> = found.changes.into_iter().filter(|change| !seen.contains(&change.id)).collect();
    let waiting = format!("{}{}", if found.more { "more than " } else { "" }, new.len());
    // The host lists the oldest first.
    Ok(new.into_iter().next().map(|next| (next, waiting)))
}

/// Shows one change and does what the person says.
async fn decide(out: Output, client: &Client, id: &str) -> Result<Go, Error> {
    let waiting = client.change(id, Duration::ZERO).await?;
    let shown: Digest = match change::verified(&waiting).and_then(|shown| out.exact(&waiting.shown).map(|()| shown)) {
        Ok(shown) => shown,
        Err(error @ Error::Failed { code: "shown_forged" | "text_unsafe", .. }) => {
            let forged = Error::failed("shown_forged", format!("{id} is left alone: {error}"));
            out.failure(&forged.hinting("look at `ironctl audit verify` and `ironctl logs`"));
            out.line("")?;
            return Ok(Go::Past);
        }
        Err(error) => return Err(error),
    };
    let lines = waiting.shown.lines().count();
    if lines > LINES_SEEN {
        out.line(format!("\nthese were {lines} lines; what would happen stands at their top"))?;
    }
    loop {
        let Some(line) = asked(out, "\napprove, reject, skip, quit? ")? else { return Ok(Go::Home) };
        let decided = match Answer::read(&line) {
            None => {
                out.line("nothing was decided: type the whole word")?;
                continue;
            }
            Some(Answer::Quit) => return Ok(Go::Home),
            Some(Answer::Skip) => {
                out.line("")?;
                return Ok(Go::On);
            }
            Some(Answer::Approve) => client.approve(id, shown).await?,
            Some(Answer::Reject) => {
                let Some(reason) = asked(out, "why? (may be empty) ")? else { return Ok(Go::Home) };
                client.reject(id, reason).await?
            }
        };
        let decided = change::settled(client, decided).await?;
        match change::outcome(out, &decided) {
            Err(error @ Error::Failed { .. }) => out.failure(&error),
            told => told?,
        }
        out.line("")?;
        return Ok(Go::On);
    }
}

/// A line that is typed after the question; `None` when the terminal is gone or at its end (Ctrl-D).
fn asked(out: Output, question: &str) -> Result<Option<String>, Error> {
    // What was typed before was an answer to something else.
    tcflush(io::stdin(), FlushArg::TCIFLUSH)
        .map_err(|cause| Error::failed("no_prompt", "cannot ask on this terminal").because(cause))?;
    out.words(question)?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        out.line("")?;
        return Ok(None);
    }
    Ok(Some(line.strip_suffix('\n').unwrap_or(&line).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_word_decides() {
        for line in [
            "",
            "y",
            "yes",
            "a",
            "Approve",
            "APPROVE",
            "approve ",
            " approve",
            "approve.",
            "approve reject",
            "r",
            "rejec",
        ] {
            assert_eq!(Answer::read(line), None, "{line:?}");
        }
        assert_eq!(Answer::read("approve"), Some(Answer::Approve));
        assert_eq!(Answer::read("reject"), Some(Answer::Reject));
    }
}
