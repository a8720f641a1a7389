//! The review of a change or a call on a terminal: the page, the question, and the decision of a person.
//!
//! A page that does not fit is shown screen by screen, and its effect again directly above the question. The word `details` shows ids
//! and digests. Accepts only whole words, and never those that were typed before the question. See [`crate::commands::inbox`],
//! [`crate::commands::approve`] and [`crate::commands::chat`].

use crate::failure::Error;
use crate::output::Output;
use crate::terminal_line;
use ironclaw_contract::operator::{CallRequest, Change, Digest};
use std::io::{self, IsTerminal};

/// The section of a page that only the word `details` shows.
const DETAILS: &str = "IDENTIFIERS";

/// The sections of a page that are repeated above the question if the page does not fit.
const EFFECTS: [&str; 2] = ["EFFECT", "WARNINGS"];

/// The beginning of the heading above the effect of a call.
const CALL_EFFECT: &str = "APPROVAL REQUEST ";

/// Lines of a screen for the question.
const QUESTION_ROWS: usize = 3;

/// Lines of a question with its answer.
const ANSWER_ROWS: usize = 2;

/// Least lines of a page on a screen.
const PAGE_ROWS_MIN: usize = 5;

/// The object of a decision.
#[derive(Debug)]
pub struct Subject<'a> {
    id: String,
    page: &'a str,
    digest: Digest,
}

impl<'a> From<&'a Change> for Subject<'a> {
    fn from(change: &'a Change) -> Self {
        Self { id: change.id.to_string(), page: &change.shown, digest: change.shown_digest }
    }
}

impl<'a> From<&'a CallRequest> for Subject<'a> {
    fn from(request: &'a CallRequest) -> Self {
        Self { id: request.id.to_string(), page: &request.shown, digest: request.shown_digest }
    }
}

impl Subject<'_> {
    /// Returns the digest of the page; fails if the host names another digest. [`Output::exact`] checks the text itself.
    pub fn verified(&self) -> Result<Digest, Error> {
        let digest = Digest::of(self.page.as_bytes());
        if digest != self.digest {
            let message = format!("the text of {} does not match its digest; nothing was decided", self.id);
            let hint = "look at `ironctl audit verify` and `ironctl logs`";
            return Err(Error::failed("shown_forged", message).hinting(hint));
        }
        Ok(digest)
    }
}

/// The words of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// For one object.
    One,
    /// For one of several objects, which the person may skip.
    Inbox,
    /// For a call in a conversation. The number binds the answer to the page, and a model cannot write the brackets.
    Turn { position: u32, of: u32 },
}

/// The meaning of a typed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Approve,
    Reject,
    Details,
    Skip,
    Quit,
}

impl Words {
    fn question(self, has_details: bool) -> String {
        let details = if has_details { "details, " } else { "" };
        match self {
            Self::One => format!("\napprove, reject, {details}quit? "),
            Self::Inbox => format!("\napprove, reject, {details}skip, quit? "),
            Self::Turn { position, .. } => {
                format!("\n{} {position} yes, {position} no, {details}later? ", self.mark())
            }
        }
    }

    /// Returns the meaning of a whole line; `None` if it decides nothing.
    fn read(self, line: &str, has_details: bool) -> Option<Word> {
        let word = match (self, line) {
            (_, "details") if has_details => Word::Details,
            (Self::One | Self::Inbox, "approve") => Word::Approve,
            (Self::One | Self::Inbox, "reject") => Word::Reject,
            (Self::One | Self::Inbox, "quit") => Word::Quit,
            (Self::Inbox, "skip") | (Self::Turn { .. }, "later") => Word::Skip,
            (Self::Turn { .. }, "no") => Word::Reject,
            (Self::Turn { position, .. }, line) => match line.split_once(' ') {
                Some((number, "yes")) if number == position.to_string() => Word::Approve,
                Some((number, "no")) if number == position.to_string() => Word::Reject,
                Some(_) | None => return None,
            },
            (Self::One | Self::Inbox, _) => return None,
        };
        Some(word)
    }

    fn advice(self) -> String {
        match self {
            Self::One | Self::Inbox => "nothing was decided: type a whole word".to_owned(),
            Self::Turn { position, .. } => {
                format!("nothing was decided: type \"{position} yes\", \"{position} no\" or \"later\"")
            }
        }
    }

    /// Returns the mark of the host's lines about a request of a turn; empty for other questions.
    pub fn mark(self) -> String {
        match self {
            Self::One | Self::Inbox => String::new(),
            Self::Turn { position, of } => format!("⟦approval request {position} of {of}⟧"),
        }
    }
}

/// The decision of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Approve the page of this digest.
    Approve(Digest),
    /// Reject it for this reason.
    Reject(String),
    /// Decide later and continue with the next one.
    Skip,
    /// Decide later and leave.
    Quit,
}

/// Returns whether a person at a terminal can read a page and answer.
pub fn is_possible(out: Output) -> bool {
    !out.is_json() && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows a page and asks for a decision in these words.
///
/// `above` lines of the screen, such as the result of the decision before, stay visible above the page. While the person answers, the
/// effect and the warnings stay on the screen.
pub async fn ask(out: Output, subject: &Subject<'_>, words: Words, above: usize) -> Result<Choice, Error> {
    let digest = subject.verified()?;
    out.check_exact(subject.page)?;
    let page = Page::of(subject.page);
    let has_details = !page.details.is_empty();
    let question = words.question(has_details);
    let Some(mut shown) = show(out, &page.shown, above).await? else { return Ok(Choice::Quit) };
    // The lines from the first one of the effect, which is at the top of a page.
    let mut since_effect = shown.lines;
    loop {
        if screen_rows(out).is_some_and(|rows| rows < since_effect) {
            let Some(effects) = show_effects(out, &page, shown.unread).await? else { return Ok(Choice::Quit) };
            since_effect = effects.lines;
        }
        shown.unread = 0;
        let Some(line) = read_answer(out, &question).await? else { return Ok(Choice::Quit) };
        match words.read(&line, has_details) {
            Some(Word::Approve) => return Ok(Choice::Approve(digest)),
            Some(Word::Reject) => {
                let Some(reason) = read_answer(out, "reason (may be empty): ").await? else { return Ok(Choice::Quit) };
                return Ok(Choice::Reject(reason));
            }
            Some(Word::Details) => {
                let Some(details) = show(out, &page.details, 0).await? else { return Ok(Choice::Quit) };
                since_effect += details.lines;
                shown = details;
            }
            Some(Word::Skip) => return Ok(Choice::Skip),
            Some(Word::Quit) => return Ok(Choice::Quit),
            None => {
                out.line(words.advice())?;
                since_effect += 1;
            }
        }
        since_effect += ANSWER_ROWS;
    }
}

/// Prints a page and returns its digest, for an approval without a question.
pub fn print_whole(out: Output, subject: &Subject<'_>) -> Result<Digest, Error> {
    let digest = subject.verified()?;
    out.exact(subject.page)?;
    out.line("")?;
    Ok(digest)
}

/// Shows the effect again, after a pause if `unread` lines would leave the screen. Returns `None` if the person leaves.
async fn show_effects(out: Output, page: &Page<'_>, unread: usize) -> Result<Option<Shown>, Error> {
    if screen_rows(out).is_some_and(|rows| rows < unread + page.effects.len())
        && read_answer(out, "-- Enter for the effect and the question -- ").await?.is_none()
    {
        return Ok(None);
    }
    out.line("")?;
    show(out, &page.effects, above_first(out, page.effects.len())).await
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
                is_effect = EFFECTS.contains(&line) || line.starts_with(CALL_EFFECT);
                is_detail = line == DETAILS;
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
async fn show(out: Output, lines: &[&str], above: usize) -> Result<Option<Shown>, Error> {
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
        let question = format!("-- {} more lines: Enter for more, end for the last screen -- ", left.len());
        let Some(line) = read_answer(out, &question).await? else { return Ok(None) };
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
pub async fn read_answer(out: Output, question: &str) -> Result<Option<String>, Error> {
    let no_prompt = |cause| Error::failed("no_prompt", "cannot ask on this terminal").because(cause);
    // Earlier input is not an answer to this question.
    terminal_line::discard().map_err(no_prompt)?;
    out.marked(question)?;
    let line = terminal_line::read().await.map_err(no_prompt)?;
    if line.is_none() {
        out.line("")?;
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_the_request_decides_in_a_turn() {
        let words = Words::Turn { position: 2, of: 3 };
        assert_eq!(words.question(true), "\n⟦approval request 2 of 3⟧ 2 yes, 2 no, details, later? ");
        assert_eq!(words.read("2 yes", false), Some(Word::Approve));
        assert_eq!((words.read("2 no", false), words.read("no", false)), (Some(Word::Reject), Some(Word::Reject)));
        assert_eq!((words.read("later", false), words.read("details", true)), (Some(Word::Skip), Some(Word::Details)));
        for line in
            ["", "yes", "2", "1 yes", "3 no", "02 yes", "2  yes", "2 yes ", " 2 yes", "2 YES", "approve", "details"]
        {
            assert_eq!(words.read(line, false), None, "{line:?}");
        }
        for line in ["1 yes", "yes", "no", "later"] {
            assert_eq!((Words::Inbox.read(line, true), Words::One.read(line, true)), (None, None), "{line}");
        }
        assert_eq!((Words::Inbox.read("skip", true), Words::One.read("skip", true)), (Some(Word::Skip), None));
    }

    #[test]
    fn details_have_the_ids_and_no_line_is_lost() {
        let text = "EFFECT\n  Much.\n\nWARNINGS\n  !! all of it\n\nREQUESTED BY\n  person\n    | IDENTIFIERS\n\nIDENTIFIERS\n  change: chg_1\n";
        let page = Page::of(text);
        assert_eq!(page.details, ["IDENTIFIERS", "  change: chg_1"]);
        assert_eq!(page.effects, ["EFFECT", "  Much.", "", "WARNINGS", "  !! all of it"]);
        assert_eq!(page.shown[..6], [&page.effects[..], &[""]].concat());
        assert_eq!(page.shown.last(), Some(&"    | IDENTIFIERS"), "an indented line is not a heading");
        let call = Page::of("APPROVAL REQUEST req_1\n  Much.\n\nALL ARGUMENTS\n  none\n");
        assert_eq!(call.effects, ["APPROVAL REQUEST req_1", "  Much."]);
        assert_eq!(Page::of("IDENTIFIERS\n  id\n").shown.len(), 2, "a page is never empty");
    }
}
