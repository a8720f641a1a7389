//! The review of what waits for people on a terminal: the page, the question, and the decision of a person.
//!
//! A page that does not fit is shown screen by screen. A yes counts once each line with an effect or a value was on the screen; the words
//! of the question are words at every prompt. The word `details` shows ids and digests, and the diff of a push. Accepts only whole
//! words, and never those that were typed before the question. See [`crate::commands::inbox`], [`crate::commands::approve`] and
//! [`crate::commands::chat`].

mod sections;
mod words;

pub use words::{Offered, Words};

use crate::client::Client;
use crate::failure::Error;
use crate::output::Output;
use crate::terminal_line;
use ironclaw_operator::{Decision, Details, Digest, PersonPage, Waiting, WaitingId, WaitingTogether};
use sections::Sections;
use std::io::{self, IsTerminal};
use words::Word;

/// The tool whose call has a diff.
const PUSH: &str = "git_push";

/// Lines of a screen for the question.
const QUESTION_ROWS: usize = 3;

/// Lines of a question with its answer.
const ANSWER_ROWS: usize = 2;

/// Least lines of a page on a screen.
const PAGE_ROWS_MIN: usize = 5;

/// The object of a decision.
pub struct Subject<'a> {
    id: String,
    page: &'a str,
    digest: Digest,
    /// A push, whose details have its diff.
    push: Option<(&'a Client, WaitingId)>,
    /// What the question offers beside a yes and a no.
    offered: Offered,
}

impl<'a> From<&'a Waiting> for Subject<'a> {
    fn from(Waiting { entry, shown, .. }: &'a Waiting) -> Self {
        let turn = matches!(&entry.details, Some(Details::Call(call)) if call.until_answer.is_some());
        let offered = Offered { turn, ..Offered::default() };
        Self { id: entry.id.to_string(), page: shown, digest: entry.shown_digest, push: None, offered }
    }
}

impl<'a> From<&'a WaitingTogether> for Subject<'a> {
    fn from(page: &'a WaitingTogether) -> Self {
        let calls = page.calls.len();
        let offered = Offered { turn: page.until_answer.is_some(), calls: Some(calls), ..Offered::default() };
        Self { id: format!("{calls} calls"), page: &page.shown, digest: page.shown_digest, push: None, offered }
    }
}

impl<'a> From<&'a PersonPage> for Subject<'a> {
    fn from(page: &'a PersonPage) -> Self {
        let (id, offered) = ("the step".to_owned(), Offered::default());
        Self { id, page: &page.shown, digest: page.shown_digest, push: None, offered }
    }
}

impl<'a> Subject<'a> {
    /// Lets the details have the diff of a push, which this client asks for.
    pub fn with_diff(waiting: &'a Waiting, client: &'a Client) -> Self {
        let entry = &waiting.entry;
        Self { push: (entry.subject == PUSH).then_some((client, entry.id)), ..waiting.into() }
    }

    /// Returns the number of its calls, if it is a page of several.
    const fn calls(&self) -> Option<usize> {
        self.offered.calls
    }

    fn approval(&self, digest: Digest) -> Decision {
        match self.calls() {
            Some(_) => Decision::ApproveTogether(digest),
            None => Decision::Approve(digest),
        }
    }

    fn rejection(&self, reason: String) -> Decision {
        match self.calls() {
            Some(_) => Decision::RejectTogether(reason),
            None => Decision::Reject(reason),
        }
    }

    /// Returns the digest of the page; fails if the host names another digest. [`Output::exact`] checks the text itself.
    pub fn verified(&self) -> Result<Digest, Error> {
        let digest = Digest::of(self.page.as_bytes());
        if self.digest != digest {
            let message = format!("the text of {} does not match its digest; nothing was decided", self.id);
            let hint = "look at `ironctl audit verify` and `ironctl logs`";
            return Err(Error::failed("shown_forged", message).hinting(hint));
        }
        Ok(digest)
    }

    /// Returns the lines of the diff of a push; for a failure a line that says so.
    async fn diff(&self, out: Output) -> Option<String> {
        let (client, id) = self.push?;
        let found = client.push_diff(id).await;
        Some(match found.and_then(|diff| out.check_exact(&diff.text).map(|()| diff)) {
            Ok(diff) if diff.left_off > 0 => {
                format!("DIFF\n{}  {} more lines; the digest covers them\n", diff.text, diff.left_off)
            }
            Ok(diff) => format!("DIFF\n{}", diff.text),
            Err(error) => {
                out.failure(&error);
                String::new()
            }
        })
    }
}

/// The decision of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Approve the page that was shown, or reject it.
    Decide(Decision),
    /// Decide on each call of a page of several by itself.
    Each,
    /// Change the text of the change, and read its page again.
    Edit,
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
/// effect and the warnings stay on the screen, if they fit on one.
pub async fn ask(out: Output, subject: &Subject<'_>, words: Words, above: usize) -> Result<Choice, Error> {
    let digest = subject.verified()?;
    out.check_exact(subject.page)?;
    let page = Sections::from(subject.page);
    let mut reading = Reading { out, words, page: &page, subject, read: 0, since_effect: 0, unread: 0 };
    reading.show_more(above)?;
    loop {
        let place = reading.place();
        if place == Place::Question && reading.show_effects()? {
            continue;
        }
        let Some(line) = read_answer(out, &reading.prompt(place)).await? else { return Ok(Choice::Quit) };
        reading.since_effect += ANSWER_ROWS;
        reading.unread = 0;
        match (words.read(&line, reading.offered()), place) {
            (Some(Word::Approve), Place::Question) => return Ok(Choice::Decide(subject.approval(digest))),
            (Some(Word::ApproveUntilAnswer), Place::Question) => {
                return Ok(Choice::Decide(Decision::ApproveUntilAnswer(digest)));
            }
            (Some(Word::Approve | Word::ApproveUntilAnswer), Place::More | Place::Effect) => {
                reading.say(&reading.not_taken())?;
            }
            (Some(Word::Reject), _) => {
                let Some(reason) = read_answer(out, "reason (may be empty): ").await? else { return Ok(Choice::Quit) };
                return Ok(Choice::Decide(subject.rejection(reason)));
            }
            (Some(Word::Each), _) => return Ok(Choice::Each),
            (Some(Word::Details), _) => {
                if let Some(choice) = reading.show_details().await? {
                    return Ok(choice);
                }
            }
            (Some(Word::Edit), _) => return Ok(Choice::Edit),
            (Some(Word::Skip), _) => return Ok(Choice::Skip),
            (Some(Word::Quit), _) => return Ok(Choice::Quit),
            (None, Place::Effect) if line.is_empty() => reading.clear(),
            (None, Place::More | Place::Question) if line.is_empty() && reading.left() > 0 => reading.show_more(0)?,
            (None, Place::More | Place::Effect) => reading.say("nothing was decided: press Enter to read on")?,
            (None, Place::Question) => reading.say(&words.advice(reading.offered()))?,
        }
    }
}

/// The next step of a person who reads a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Read more lines before a yes.
    More,
    /// Make room for the effect.
    Effect,
    Question,
}

/// A page while a person reads it.
struct Reading<'r, 'a> {
    out: Output,
    words: Words,
    page: &'r Sections<'a>,
    subject: &'r Subject<'a>,
    /// Lines of the page that were on the screen.
    read: usize,
    /// Lines from the first one of the effect.
    since_effect: usize,
    /// Lines that no prompt follows.
    unread: usize,
}

impl Reading<'_, '_> {
    fn offered(&self) -> Offered {
        let details = !self.page.details.is_empty() || self.subject.push.is_some();
        Offered { details, ..self.subject.offered }
    }

    /// Returns the number of lines that were not shown yet.
    fn left(&self) -> usize {
        self.page.shown.len() - self.read
    }

    fn place(&self) -> Place {
        if self.read < self.page.needed {
            return Place::More;
        }
        let is_crowded = |rows: usize| rows < self.unread + self.page.effects.len();
        match self.is_effect_gone() && screen_rows(self.out).is_some_and(is_crowded) && self.unread > 0 {
            true => Place::Effect,
            false => Place::Question,
        }
    }

    /// Returns whether the effect has left the screen, and fits on one.
    fn is_effect_gone(&self) -> bool {
        screen_rows(self.out).is_some_and(|rows| rows < self.since_effect && self.page.effects.len() <= rows)
    }

    fn prompt(&self, place: Place) -> String {
        match place {
            Place::More => format!("-- {} more lines: Enter for more, or reject, quit -- ", self.left()),
            Place::Effect => "-- Enter for the effect and the question -- ".to_owned(),
            Place::Question => self.words.question(self.offered(), self.left()),
        }
    }

    /// Returns the answer to a yes before the end of the lines that it needs.
    fn not_taken(&self) -> String {
        let more = self.page.needed.saturating_sub(self.read);
        match more {
            0 => "nothing was decided: press Enter for the question".to_owned(),
            more => {
                format!("nothing was decided: {more} lines of the effect are unread, press Enter for more")
            }
        }
    }

    fn say(&mut self, words: &str) -> Result<(), Error> {
        self.since_effect += 1;
        self.out.line(words)
    }

    fn clear(&mut self) {
        self.unread = 0;
    }

    /// Shows the next screen of the page; it keeps `above` lines.
    fn show_more(&mut self, above: usize) -> Result<(), Error> {
        let rest = &self.page.shown[self.read..];
        let room = screen_rows(self.out).map_or(rest.len(), |rows| rows.saturating_sub(above).max(1));
        let screen = &rest[..room.min(rest.len())];
        self.put(screen)?;
        self.read += screen.len();
        Ok(())
    }

    fn put(&mut self, lines: &[&str]) -> Result<(), Error> {
        self.since_effect += lines.len();
        self.unread += lines.len();
        print(self.out, lines)
    }

    /// Shows the effect again if it has left the screen. Returns whether it did.
    fn show_effects(&mut self) -> Result<bool, Error> {
        if !self.is_effect_gone() {
            return Ok(false);
        }
        self.out.line("")?;
        print(self.out, &self.page.effects)?;
        (self.since_effect, self.unread) = (self.page.effects.len(), 0);
        Ok(true)
    }

    /// Shows the details screen by screen. Returns the decision of a person who makes one meanwhile; a yes needs the question.
    async fn show_details(&mut self) -> Result<Option<Choice>, Error> {
        let diff = self.subject.diff(self.out).await.unwrap_or_default();
        let lines: Vec<&str> = self.page.details.iter().copied().chain(diff.lines()).collect();
        let mut rest = lines.as_slice();
        loop {
            let room = screen_rows(self.out).unwrap_or(rest.len());
            let (screen, left) = rest.split_at(room.min(rest.len()));
            self.put(screen)?;
            rest = left;
            if rest.is_empty() {
                return Ok(None);
            }
            let prompt = format!("-- {} more lines: Enter for more, back for the question -- ", rest.len());
            let Some(line) = read_answer(self.out, &prompt).await? else { return Ok(Some(Choice::Quit)) };
            self.since_effect += 1;
            self.unread = 0;
            match (line.as_str(), self.words.read(&line, Offered::default())) {
                ("", _) => {}
                (_, Some(Word::Skip)) => return Ok(Some(Choice::Skip)),
                (_, Some(Word::Quit)) => return Ok(Some(Choice::Quit)),
                // Every other word leads back to the question, which takes it.
                _ => return Ok(None),
            }
        }
    }
}

/// Prints a page without its details, for a question that takes another answer than a yes.
pub fn show(out: Output, subject: &Subject<'_>) -> Result<(), Error> {
    subject.verified()?;
    print(out, &Sections::from(subject.page).shown)
}

/// Prints a page and returns its digest, for an approval without a question.
pub fn print_whole(out: Output, subject: &Subject<'_>) -> Result<Digest, Error> {
    let digest = subject.verified()?;
    out.exact(subject.page)?;
    out.line("")?;
    Ok(digest)
}

/// Shows the page of a step and returns its digest after the yes of the person, or with `yes` without a question.
pub async fn agreed(out: Output, page: &PersonPage, yes: bool) -> Result<Digest, Error> {
    let subject = Subject::from(page);
    if yes {
        return print_whole(out, &subject);
    }
    if !is_possible(out) {
        let failure = Error::failed("not_confirmed", "nothing was changed: the step needs your yes");
        return Err(failure.hinting("repeat the command on a terminal, or with --yes"));
    }
    match ask(out, &subject, Words::One, 0).await? {
        Choice::Decide(Decision::Approve(shown)) => Ok(shown),
        Choice::Decide(_) | Choice::Each | Choice::Edit | Choice::Skip | Choice::Quit => {
            Err(Error::failed("not_confirmed", "nothing was changed"))
        }
    }
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
    terminal_line::hold().map_err(no_prompt)?;
    out.marked(question)?;
    let line = terminal_line::read().await.map_err(no_prompt)?;
    if line.is_none() {
        out.line("")?;
    }
    Ok(line)
}
