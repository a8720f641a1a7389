//! The work of the host, the model and the tools on a message, as a line on the terminal that changes, and a line for each tool.
//!
//! Shows only stages that the host recorded, and the words of a server in quotation marks. See [`super::follow`] for the events, [`super::live_answer`] for the words of the model.

use super::final_answer::{no_answer, print_wait_reason};
use super::live_answer::LiveAnswer;
use crate::client::Client;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{CallProgress, DenialCode, Draft, LedgerEvent, MessageView, Stage, StageOutcome};
use std::time::Duration;
use tokio::time::Instant;

/// Seconds without a new stage after which the progress line shows them.
const SECONDS_SHOWN_MIN: u64 = 2;

/// The smallest number that is shown with its power of ten.
const LONG_NUMBER_MIN: f64 = 1e12;

/// The keys of a stage's details that name an object, in their order.
const OBJECTS: [&str; 4] = ["tool ", "call ", "row ", "delivery "];

/// A turn on the terminal: the progress line, a line for each tool, and the words of the answer.
#[derive(Debug)]
pub struct LiveTurn {
    out: Output,
    answer: LiveAnswer,
    /// The text of the progress line; empty if there is none.
    text: String,
    since: Instant,
}

impl LiveTurn {
    /// Creates a turn whose answer starts with this prefix on the screen.
    ///
    /// The brackets of the host's marks are escaped in all of its text: only a question of the host has them.
    pub fn new(out: Output, prefix: impl Into<String>) -> Self {
        let out = out.reserving_marks();
        Self { out, answer: LiveAnswer::new(out, prefix), text: String::new(), since: Instant::now() }
    }

    pub fn out(&self) -> Output {
        self.out
    }

    /// Returns whether the events of the turn are shown.
    pub fn is_live(&self) -> bool {
        self.answer.is_live()
    }

    /// Shows words of the answer.
    pub fn draft(&mut self, draft: &Draft) -> Result<(), Error> {
        self.clear()?;
        self.answer.add(draft)
    }

    /// Shows the reason for a wait.
    pub fn waiting(&mut self, view: &MessageView) -> Result<(), Error> {
        self.end_line()?;
        print_wait_reason(self.out, view)
    }

    pub fn stage(&mut self, stage: &Stage) -> Result<(), Error> {
        match stage.stage.parse::<LedgerEvent>() {
            Ok(LedgerEvent::OutputSealed | LedgerEvent::OutputReused) => self.answer.sealed(),
            Ok(LedgerEvent::ModelFailed) => self.answer.interrupt(words(stage)),
            Ok(LedgerEvent::CallRecorded) => {
                self.answer.end_line()?;
                self.show(format!("{} runs", tool(stage)))
            }
            Ok(LedgerEvent::CallStarted) => self.show(format!("{} runs", tool(stage))),
            Ok(LedgerEvent::CallReported | LedgerEvent::CallRan | LedgerEvent::CallLost) => {
                self.line(format!("  {}: {}", tool(stage), stage.outcome))
            }
            Ok(LedgerEvent::CallRefused | LedgerEvent::ActionRefused) => {
                self.line(format!("  {}: refused: {}", tool(stage), refusal(words(stage))))
            }
            Ok(event) => self.show(progress(event, stage)),
            Err(_) => self.show(stage.stage.clone()),
        }
    }

    /// Shows the progress of a running call.
    pub fn progress(&mut self, progress: &CallProgress) -> Result<(), Error> {
        self.show(progress_line(progress))
    }

    /// Shows a line that stays.
    fn line(&mut self, text: String) -> Result<(), Error> {
        self.end_line()?;
        self.out.remark(text)
    }

    /// Ends the progress line and the line of streamed words, so that another text can follow.
    pub fn end_line(&mut self) -> Result<(), Error> {
        self.clear()?;
        self.answer.end_line()
    }

    /// Shows a text on the progress line. The line would overwrite the words of the answer, so it waits for their end.
    fn show(&mut self, text: String) -> Result<(), Error> {
        if text != self.text {
            (self.text, self.since) = (text, Instant::now());
        }
        self.tick()
    }

    /// Renews the progress line.
    pub fn tick(&self) -> Result<(), Error> {
        if self.text.is_empty() || self.answer.is_open() || !self.is_live() {
            return Ok(());
        }
        let waited = match self.since.elapsed().as_secs() {
            ..SECONDS_SHOWN_MIN => String::new(),
            seconds => format!(" ({seconds} s)"),
        };
        self.out.progress(&format!("… {}{waited}", self.text))
    }

    fn clear(&mut self) -> Result<(), Error> {
        let is_shown = !std::mem::take(&mut self.text).is_empty() && !self.answer.is_open();
        if is_shown { self.out.progress("") } else { Ok(()) }
    }

    /// Ends the line of streamed words and says why the answer ends there.
    pub fn interrupt(&mut self, why: &str) -> Result<(), Error> {
        self.clear()?;
        self.answer.interrupt(why)
    }

    /// Shows the answer, or fails without one.
    pub async fn finish(&mut self, client: &Client, view: &MessageView, wait: Duration) -> Result<(), Error> {
        self.clear()?;
        if view.reply.is_some() {
            return self.answer.finish(view);
        }
        self.interrupt("no more of this answer came")?;
        Err(no_answer(client, view, wait).await)
    }
}

/// Returns the text of the progress line after a stage.
fn progress(event: LedgerEvent, stage: &Stage) -> String {
    match (event, stage.outcome, words(stage)) {
        (LedgerEvent::MessageRecorded, ..) => "the message is recorded".to_owned(),
        (LedgerEvent::TurnOpened, ..) => "the agent works".to_owned(),
        (LedgerEvent::ModelAsked, ..) => "the model works".to_owned(),
        (LedgerEvent::CallAsked, ..) => "a call waits for people".to_owned(),
        (_, StageOutcome::Done, _) => stage.stage.clone(),
        (_, outcome, "") => format!("{} {outcome}", stage.stage),
        (_, outcome, words) => format!("{} {outcome}: {words}", stage.stage),
    }
}

/// Returns the text of the progress line of a running call.
fn progress_line(of: &CallProgress) -> String {
    let total = of.total.map(|total| format!(" of {}", number(total))).unwrap_or_default();
    // The end is cut, so the words of the server come last.
    let words = of.words.as_ref().map(|words| format!(": \"{words}\"")).unwrap_or_default();
    format!("{} runs: {}{total}{words}", of.tool, number(of.progress))
}

/// Returns a number with at most two decimals, and a very large one with its power of ten.
fn number(number: f64) -> String {
    if number.abs() < LONG_NUMBER_MIN { ((number * 100.0).round() / 100.0).to_string() } else { format!("{number:e}") }
}

fn tool(stage: &Stage) -> &str {
    stage.reason.split(", ").find_map(|part| part.strip_prefix("tool ")).unwrap_or("a tool")
}

/// Returns the reason of a refusal: the sentence of its code, or its own words.
pub fn refusal(words: &str) -> String {
    match words.parse::<DenialCode>() {
        Ok(code) => format!("{} ({code})", code.meaning().trim_end_matches('.')),
        Err(_) => words.to_owned(),
    }
}

/// Returns the reason of a stage without the names of its objects.
fn words(stage: &Stage) -> &str {
    let mut rest = stage.reason.as_str();
    for object in OBJECTS {
        let (first, others) = rest.split_once(", ").unwrap_or((rest, ""));
        if first.strip_prefix(object).is_some_and(|name| !name.contains(' ')) {
            rest = others;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::CallId;

    fn stage(reason: &str) -> Stage {
        let word = |text: &str| text.to_owned();
        Stage {
            seq: 1,
            at: word("t"),
            stage: word("call.refused"),
            outcome: StageOutcome::Refused,
            reason: word(reason),
        }
    }

    #[test]
    fn tool_and_reason_of_a_stage_are_split() {
        let refused = stage("tool run_command, call call_1, it is not enabled, ask for it");
        assert_eq!((tool(&refused), words(&refused)), ("run_command", "it is not enabled, ask for it"));
        let plain = stage("three attempts, none answered");
        assert_eq!((tool(&plain), words(&plain)), ("a tool", "three attempts, none answered"));
        assert_eq!(words(&stage("tool recall, call call_1")), "");
        let similar = stage("tool recall, call call_1, tool recall is not enabled");
        assert_eq!(words(&similar), "tool recall is not enabled");
    }

    #[test]
    fn refusal_has_the_sentence_of_its_code() {
        let said = refusal("call_repeated");
        assert!(
            said.starts_with(&DenialCode::CallRepeated.meaning()[..20]) && said.ends_with(" (call_repeated)"),
            "{said}"
        );
        assert_eq!(refusal("it is not enabled"), "it is not enabled");
    }

    #[test]
    fn progress_of_a_call_has_its_numbers_and_words() {
        let of = |progress, total, words: Option<&str>| {
            let (call_id, tool, words) = (CallId::new(), "demo__count".to_owned(), words.map(str::to_owned));
            progress_line(&CallProgress { call_id, tool, progress, total, words })
        };
        assert_eq!(of(3.0, Some(10.0), Some("page 3")), "demo__count runs: 3 of 10: \"page 3\"");
        assert_eq!(of(0.1 + 0.2, None, None), "demo__count runs: 0.3");
        assert_eq!(of(1e300, Some(-2e99), None), "demo__count runs: 1e300 of -2e99");
    }

    #[test]
    fn progress_has_words_for_the_usual_stages() {
        let done = |event: LedgerEvent| {
            let stage = Stage { stage: event.name().to_owned(), outcome: StageOutcome::Done, ..stage("") };
            progress(event, &stage)
        };
        assert_eq!(done(LedgerEvent::ModelAsked), "the model works");
        assert_eq!(done(LedgerEvent::SummarySealed), "summary.sealed");
        let parked = Stage { stage: "session.parked".to_owned(), ..stage("three launches failed") };
        assert_eq!(progress(LedgerEvent::SessionParked, &parked), "session.parked refused: three launches failed");
    }
}
