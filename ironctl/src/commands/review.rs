//! The review of a change on a terminal: the page, the question, and the decision of a person.
//!
//! A page that does not fit is shown screen by screen, and its effect again directly above the question. The word `details` shows ids
//! and digests. Accepts only a whole word, and never one that was typed before the question. See [`crate::commands::inbox`] and
//! [`crate::commands::approve`].

use super::change;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::{Change, Digest};
use nix::sys::termios::{FlushArg, tcflush};
use std::io::{self, BufRead, IsTerminal};

/// The section of a page that only the word `details` shows.
const DETAILS: &str = "IDENTIFIERS";

/// The sections of a page that are repeated above the question if the page does not fit.
const EFFECTS: [&str; 2] = ["EFFECT", "WARNINGS"];

/// Lines of a screen for the question.
const QUESTION_ROWS: usize = 3;

/// Lines of a question with its answer.
const ANSWER_ROWS: usize = 2;

/// Least lines of a page on a screen.
const PAGE_ROWS_MIN: usize = 5;

/// The decision of a person on a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Approve the page of this digest.
    Approve(Digest),
    /// Reject it for this reason.
    Reject(String),
    /// Decide later and continue with the next change.
    Skip,
    /// Decide later and leave.
    Quit,
}

/// Returns whether a person at a terminal can read a page and answer.
pub fn is_possible(out: Output) -> bool {
    !out.is_json() && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows a change and asks for a decision; `may_skip` if there may be a next change.
///
/// `above` lines of the screen, such as the result of the decision before, stay visible above the page. While the person answers, the
/// effect and the warnings stay on the screen.
pub fn ask(out: Output, waiting: &Change, may_skip: bool, above: usize) -> Result<Choice, Error> {
    let digest = change::verified(waiting)?;
    out.check_exact(&waiting.shown)?;
    let page = Page::of(&waiting.shown);
    let question = match (page.details.is_empty(), may_skip) {
        (false, true) => "\napprove, reject, details, skip, quit? ",
        (true, true) => "\napprove, reject, skip, quit? ",
        (false, false) => "\napprove, reject, details, quit? ",
        (true, false) => "\napprove, reject, quit? ",
    };
    let Some(mut shown) = show(out, &page.shown, above)? else { return Ok(Choice::Quit) };
    // The lines from the first one of the effect, which is at the top of a page.
    let mut since_effect = shown.lines;
    loop {
        if screen_rows(out).is_some_and(|rows| rows < since_effect) {
            if screen_rows(out).is_some_and(|rows| rows < shown.unread + page.effects.len())
                && read_answer(out, "-- Enter for the effect and the question -- ")?.is_none()
            {
                return Ok(Choice::Quit);
            }
            out.line("")?;
            let Some(effects) = show(out, &page.effects, above_first(out, page.effects.len()))? else {
                return Ok(Choice::Quit);
            };
            since_effect = effects.lines;
        }
        shown.unread = 0;
        let Some(line) = read_answer(out, question)? else { return Ok(Choice::Quit) };
        match line.as_str() {
            "approve" => return Ok(Choice::Approve(digest)),
            "reject" => {
                let Some(reason) = read_answer(out, "reason (may be empty): ")? else { return Ok(Choice::Quit) };
                return Ok(Choice::Reject(reason));
            }
            "details" if !page.details.is_empty() => {
                let Some(details) = show(out, &page.details, 0)? else { return Ok(Choice::Quit) };
                since_effect += details.lines;
                shown = details;
            }
            "skip" if may_skip => return Ok(Choice::Skip),
            "quit" => return Ok(Choice::Quit),
            _ => {
                out.line("nothing was decided: type a whole word")?;
                since_effect += 1;
            }
        }
        since_effect += ANSWER_ROWS;
    }
}

/// The parts of a review page.
#[derive(Debug, PartialEq, Eq)]
struct Page<'a> {
    /// The page without the details.
    shown: Vec<&'a str>,
    /// The sections of `shown` about the effect.
    effects: Vec<&'a str>,
    details: Vec<&'a str>,
}

impl<'a> Page<'a> {
    /// Splits the text into sections. Only the host writes without an indent, so such a line is the heading of a section.
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

/// The result of [`show`].
#[derive(Debug)]
struct Shown {
    /// Printed lines.
    lines: usize,
    /// The last of them, which no prompt of a screen follows.
    unread: usize,
}

/// Prints lines, one screen at a time if they do not fit; the first screen keeps `above` lines. Returns `None` if the person leaves.
fn show(out: Output, lines: &[&str], above: usize) -> Result<Option<Shown>, Error> {
    let Some(rows) = screen_rows(out).filter(|rows| *rows < lines.len() + above) else {
        print(out, lines)?;
        return Ok(Some(Shown { lines: lines.len(), unread: lines.len() }));
    };
    let mut rest = lines;
    let mut room = rows.saturating_sub(above).max(1);
    let mut printed = 0;
    loop {
        let (screen, left) = rest.split_at(room.min(rest.len()));
        print(out, screen)?;
        printed += screen.len();
        if left.is_empty() {
            return Ok(Some(Shown { lines: printed, unread: screen.len() }));
        }
        let Some(line) =
            read_answer(out, &format!("-- {} more lines: Enter for more, end for the last screen -- ", left.len()))?
        else {
            return Ok(None);
        };
        printed += 1;
        rest = match line.as_str() {
            "end" => &left[left.len().saturating_sub(rows)..],
            _ => left,
        };
        room = rows;
    }
}

/// Returns the number of lines to keep on the first screen of so many lines, so that the last screen is full.
fn above_first(out: Output, lines: usize) -> usize {
    screen_rows(out).filter(|rows| *rows < lines).map_or(0, |rows| (rows - lines % rows) % rows)
}

/// Returns the number of lines of a page that fit on a screen.
fn screen_rows(out: Output) -> Option<usize> {
    out.rows().map(|rows| rows.saturating_sub(QUESTION_ROWS).max(PAGE_ROWS_MIN))
}

fn print(out: Output, lines: &[&str]) -> Result<(), Error> {
    out.exact(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// Prints a question and returns the next typed line; `None` at the end of the input (Ctrl-D or a closed terminal).
fn read_answer(out: Output, question: &str) -> Result<Option<String>, Error> {
    // Earlier input is not an answer to this question.
    tcflush(io::stdin(), FlushArg::TCIFLUSH)
        .map_err(|cause| Error::failed("no_prompt", "cannot ask on this terminal").because(cause))?;
    out.part(question)?;
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
    fn details_have_the_ids_and_no_line_is_lost() {
        let text = "EFFECT\n  Much.\n\nWARNINGS\n  !! all of it\n\nREQUESTED BY\n  person\n    | IDENTIFIERS\n\nIDENTIFIERS\n  change: chg_1\n";
        let page = Page::of(text);
        assert_eq!(page.details, ["IDENTIFIERS", "  change: chg_1"]);
        assert_eq!(page.effects, ["EFFECT", "  Much.", "", "WARNINGS", "  !! all of it"]);
        assert_eq!(page.shown[..6], [&page.effects[..], &[""]].concat());
        assert_eq!(page.shown.last(), Some(&"    | IDENTIFIERS"), "an indented line is not a heading");
        assert_eq!(Page::of("IDENTIFIERS\n  id\n").shown.len(), 2, "a page is never empty");
    }
}
