//! Shows a change on a terminal and reads the decision of a person.
//!
//! The effect of the change is on the screen of the question, the word `details` shows ids and digests, and a page that does not
//! fit is shown screen by screen, with its effect again at the end. Never takes anything but a whole word for an answer, and never one that was typed before the
//! question. See [`crate::commands::inbox`] and [`crate::commands::approve`].

use super::change;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::{Change, Digest};
use nix::sys::termios::{FlushArg, tcflush};
use std::io::{self, BufRead, IsTerminal};

/// The section of a page that is shown for the word `details`.
const DETAILS: &str = "IDENTIFIERS";

/// The sections of a page that are shown again above the question if the page does not fit.
const EFFECTS: [&str; 2] = ["EFFECT", "WARNINGS"];

/// Lines of a screen that are kept for the question.
const QUESTION_ROWS: usize = 3;

/// A screen has at least so many lines of a page.
const PAGE_ROWS_MIN: usize = 5;

/// A person's decision about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Yes, to the text of this digest.
    Approve(Digest),
    /// No, and why.
    Reject(String),
    /// Nothing about this one.
    Skip,
    /// Nothing more.
    Quit,
}

/// Returns whether a person can be shown something and be asked.
pub fn is_possible(out: Output) -> bool {
    !out.is_json() && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows a change and asks; `may_skip` where there is a next one.
pub fn ask(out: Output, waiting: &Change, may_skip: bool) -> Result<Said, Error> {
    let digest = change::verified(waiting)?;
    out.check_exact(&waiting.shown)?;
    let page = Page::of(&waiting.shown);
    let question = match (page.details.is_empty(), may_skip) {
        (false, true) => "\napprove, reject, details, skip, quit? ",
        (true, true) => "\napprove, reject, skip, quit? ",
        (false, false) => "\napprove, reject, details, quit? ",
        (true, false) => "\napprove, reject, quit? ",
    };
    if !show(out, &page.shown)? {
        return Ok(Said::Quit);
    }
    // The effect of a long page is off the screen by now.
    if screen_rows(out).is_some_and(|rows| rows < page.shown.len()) {
        out.line("")?;
        if !show(out, &page.effects)? {
            return Ok(Said::Quit);
        }
    }
    loop {
        let Some(line) = asked(out, question)? else { return Ok(Said::Quit) };
        match line.as_str() {
            "approve" => return Ok(Said::Approve(digest)),
            "reject" => {
                let Some(reason) = asked(out, "why? (may be empty) ")? else { return Ok(Said::Quit) };
                return Ok(Said::Reject(reason));
            }
            "details" if !page.details.is_empty() => {
                if !show(out, &page.details)? {
                    return Ok(Said::Quit);
                }
            }
            "skip" if may_skip => return Ok(Said::Skip),
            "quit" => return Ok(Said::Quit),
            _ => out.line("nothing was decided: type the whole word")?,
        }
    }
}

/// The parts of a page.
#[derive(Debug, PartialEq, Eq)]
struct Page<'a> {
    /// Everything but the details.
    shown: Vec<&'a str>,
    /// The sections of `shown` about the effect.
    effects: Vec<&'a str>,
    details: Vec<&'a str>,
}

impl<'a> Page<'a> {
    /// Splits the text into sections. Only the host writes at the edge: a line that begins there is the heading of a section.
    fn of(text: &'a str) -> Self {
        let (mut shown, mut effects, mut details) = (Vec::new(), Vec::new(), Vec::new());
        let (mut is_effect, mut is_detail) = (false, false);
        for line in text.lines() {
            if !line.is_empty() && !line.starts_with(' ') {
                (is_effect, is_detail) = (EFFECTS.contains(&line), line == DETAILS);
            }
            if is_effect {
                effects.push(line);
            }
            if is_detail { details.push(line) } else { shown.push(line) }
        }
        if shown.is_empty() {
            return Self { shown: details, effects, details: Vec::new() };
        }
        for section in [&mut shown, &mut effects, &mut details] {
            while section.last().is_some_and(|line| line.is_empty()) {
                section.pop();
            }
        }
        Self { shown, effects, details }
    }
}

/// Prints lines, a screen at a time where they do not fit; false when the person has enough.
fn show(out: Output, lines: &[&str]) -> Result<bool, Error> {
    let Some(rows) = screen_rows(out).filter(|rows| *rows < lines.len()) else {
        print(out, lines)?;
        return Ok(true);
    };
    let mut rest = lines;
    loop {
        let (screen, left) = rest.split_at(rows.min(rest.len()));
        print(out, screen)?;
        if left.is_empty() {
            return Ok(true);
        }
        let Some(line) = asked(out, &format!("-- {} more lines: Enter, or end for the last of them -- ", left.len()))?
        else {
            return Ok(false);
        };
        rest = match line.as_str() {
            "end" => &left[left.len().saturating_sub(rows)..],
            _ => left,
        };
    }
}

/// Returns the lines of a page that one screen has room for.
fn screen_rows(out: Output) -> Option<usize> {
    out.rows().map(|rows| rows.saturating_sub(QUESTION_ROWS).max(PAGE_ROWS_MIN))
}

fn print(out: Output, lines: &[&str]) -> Result<(), Error> {
    out.exact(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// Asks a question and returns the line that is typed after it; `None` when the terminal is gone or at its end (Ctrl-D).
fn asked(out: Output, question: &str) -> Result<Option<String>, Error> {
    // Earlier input was an answer to another question.
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
    fn ids_and_digests_are_behind_details_and_nothing_is_lost() {
        let text = "EFFECT\n  Much.\n\nWARNINGS\n  !! all of it\n\nREQUESTED BY\n  person\n    | IDENTIFIERS\n\nIDENTIFIERS\n  change: chg_1\n";
        let page = Page::of(text);
        assert_eq!(page.details, ["IDENTIFIERS", "  change: chg_1"]);
        assert_eq!(page.effects, ["EFFECT", "  Much.", "", "WARNINGS", "  !! all of it"]);
        assert_eq!(page.shown[..6], [&page.effects[..], &[""]].concat());
        assert_eq!(page.shown.last(), Some(&"    | IDENTIFIERS"), "a stranger's line is no heading");
        assert_eq!(Page::of("IDENTIFIERS\n  id\n").shown.len(), 2, "something is shown in any case");
    }
}
