//! The page of what waits, and the decision of its person.
//!
//! Shows the review page that every face shows, and binds a yes to its digest. Never takes a yes of one tap: a person types the word, or
//! holds a button. See [`crate::api::waiting`], which decides.

use super::fields::{Fields, Posted};
use super::pages::{self, Frame, Notice, Room, page};
use super::visit::Visit;
use super::words;
use crate::api::answer::{Noted, Refused};
use crate::api::handler::{Answer, Body, Caller};
use crate::api::waiting;
use askama::Template;
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{
    Decision, DenialCode, Details, NewAnswer, Section, Waiting, WaitingId, WaitingStatus, WaitingTogether, Weight,
    sections,
};
use ironclaw_store::refusal::Refusal;
use ironclaw_text::diff::{self, LineMark};
use ironclaw_text::visible;
use serde::Deserialize;

/// Lines of a review page on one step for a browser without the script.
const STEP_LINES: usize = 60;

/// The word that a person types for a yes.
const APPROVE: &str = "approve";

/// The last step, which has the forms.
const LAST: usize = usize::MAX;

/// Milliseconds for which an answer to a yes waits for its effect, so that the next page shows the outcome.
const EFFECT_WAIT_MS: u64 = 3000;

/// A line of a page.
#[derive(Clone)]
struct Line {
    class: &'static str,
    text: String,
}

/// A section of a page.
struct Part {
    class: &'static str,
    heading: String,
    lines: Vec<Line>,
    is_details: bool,
    /// The last line that a person has to see before a yes is in this part.
    ends_needed: bool,
}

/// An answer to choose from.
struct Choice {
    number: u32,
    text: String,
}

#[derive(Template)]
#[template(path = "waiting.html")]
struct WaitingPage {
    frame: Frame,
    /// The path of the page, below which its forms post.
    path: String,
    id: WaitingId,
    digest: Digest,
    status: WaitingStatus,
    summary: String,
    parts: Vec<Part>,
    /// The parts about the effect, again on the last step of several.
    again: Vec<Part>,
    step: usize,
    steps: usize,
    /// The first step that this session was not shown, on the last step.
    unread: Option<usize>,
    forms: Forms,
    /// The number of calls that one page can show with this one.
    together: usize,
    /// What changed since the page that the person decided on.
    changes: Vec<Line>,
    reason: String,
    answer: String,
}

/// What a person may do now.
#[derive(Default)]
struct Forms {
    /// The word of the decision that a yes sends.
    approve: Option<&'static str>,
    /// A yes can cover further calls that only read, until the turn ends.
    until_answer: bool,
    /// The word of the decision that a no sends.
    reject: Option<&'static str>,
    /// The session needs a fresh code before a yes.
    confirm: bool,
    choices: Vec<Choice>,
    free_text: bool,
}

impl Forms {
    fn takes_answer(&self) -> bool {
        self.free_text || !self.choices.is_empty()
    }
}

/// Query of a page of what waits.
#[derive(Debug, Default, Deserialize)]
pub struct Steps {
    /// The step of a long page, from 1.
    #[serde(default)]
    step: usize,
}

/// What a page shows beside its text.
#[derive(Clone, Default)]
struct Beside {
    step: usize,
    notice: Option<Notice>,
    changes: Vec<Line>,
    reason: String,
    answer: String,
    wait_ms: u64,
}

/// `GET /waiting/{id}`
pub async fn show(visit: Visit, Path(id): Path<String>, Query(steps): Query<Steps>) -> Result<Response, Answer> {
    one(&visit, id, Beside { step: steps.step, ..Beside::default() }, StatusCode::OK).await
}

/// `GET /waiting/{id}/together`
pub async fn together(visit: Visit, Path(id): Path<String>, Query(steps): Query<Steps>) -> Result<Response, Answer> {
    several(&visit, id, Beside { step: steps.step, ..Beside::default() }, StatusCode::OK).await
}

async fn one(visit: &Visit, id: String, beside: Beside, status: StatusCode) -> Result<Response, Answer> {
    let Json(shown) =
        waiting::show(visit.caller.clone(), Path(id), Query(waiting::Wait::up_to_ms(beside.wait_ms))).await?;
    let confirm = shown.entry.yours && waiting::needs_code(&visit.caller, &[shown.entry.id]).await?;
    let path = format!("/waiting/{}", shown.entry.id);
    let title = words::title(shown.entry.kind, shown.entry.status);
    let together = match &shown.entry.details {
        Some(Details::Call(call)) if shown.entry.yours => call.together.len(),
        _ => 0,
    };
    visit.caller.api.console.shown.keep(&visit.session.id, &shown.shown);
    let forms = forms(&shown, confirm);
    let text = Text { path, id: shown.entry.id, shown: &shown.shown, digest: shown.entry.shown_digest };
    let frame = Frame::new(visit, Some(Room::Inbox), title)
        .live_at(format!("/live?of={}&status={}", shown.entry.id, shown.entry.status));
    let mut page_of = text.page(visit, frame, beside, forms);
    page_of.status = shown.entry.status;
    page_of.summary = shown.summary.clone();
    page_of.together = together;
    Ok(page(status, &page_of))
}

async fn several(visit: &Visit, id: String, beside: Beside, status: StatusCode) -> Result<Response, Answer> {
    let Json(shown) = waiting::together(visit.caller.clone(), Path(id.clone())).await?;
    let WaitingTogether { calls, shown, shown_digest, until_answer } = shown;
    let ids: Vec<WaitingId> = calls.iter().map(|call| (*call).into()).collect();
    let confirm = waiting::needs_code(&visit.caller, &ids).await?;
    let first = ids.first().copied().ok_or_else(|| Answer::broken(&"a page of several calls has none"))?;
    visit.caller.api.console.shown.keep(&visit.session.id, &shown);
    let forms = Forms {
        approve: Some("approve_together"),
        until_answer: until_answer.is_some(),
        reject: Some("reject_together"),
        confirm,
        ..Forms::default()
    };
    let text = Text { path: format!("/waiting/{id}/together"), id: first, shown: &shown, digest: shown_digest };
    let frame = Frame::new(visit, Some(Room::Inbox), words::several_calls(calls.len()))
        .live_at(format!("/live?of={first}&status={}", WaitingStatus::Pending));
    Ok(page(status, &text.page(visit, frame, beside, forms)))
}

fn forms(shown: &Waiting, confirm: bool) -> Forms {
    let entry = &shown.entry;
    let mut forms = Forms { reject: entry.may_reject.then_some("reject"), ..Forms::default() };
    match (&entry.details, entry.yours) {
        (Some(Details::Question(question)), true) => {
            let numbered = question.options.iter().zip(1_u32..);
            forms.choices =
                numbered.map(|(text, number)| Choice { number, text: visible::name(text).to_string() }).collect();
            forms.free_text = question.free_text;
        }
        (details, true) => {
            forms.approve = Some(APPROVE);
            forms.confirm = confirm;
            forms.until_answer = matches!(details, Some(Details::Call(call)) if call.until_answer.is_some());
        }
        (_, false) => {}
    }
    forms
}

/// The text of a review page.
struct Text<'a> {
    path: String,
    id: WaitingId,
    shown: &'a str,
    digest: Digest,
}

impl Text<'_> {
    /// Returns its step with the forms, which come with the last step once each step was shown.
    fn page(self, visit: &Visit, frame: Frame, beside: Beside, forms: Forms) -> WaitingPage {
        let steps = self.shown.lines().count().div_ceil(STEP_LINES).max(1);
        let step = beside.step.clamp(1, steps);
        let shown = &visit.caller.api.console.shown;
        let unread = shown.note_step(&visit.session.id, self.digest, step, steps);
        let forms = if step == steps && unread.is_none() { forms } else { Forms::default() };
        let effects = |part: &Part| matches!(part.class, "effect" | "warnings");
        let again = match step > 1 && step == steps {
            true => parts(self.shown, 0, usize::MAX).into_iter().filter(effects).collect(),
            false => Vec::new(),
        };
        WaitingPage {
            again,
            frame: frame.with(beside.notice),
            parts: parts(self.shown, (step - 1) * STEP_LINES, step * STEP_LINES),
            path: self.path,
            id: self.id,
            digest: self.digest,
            status: WaitingStatus::Pending,
            summary: String::new(),
            step,
            steps,
            unread: unread.filter(|_| step == steps),
            forms,
            together: 0,
            changes: beside.changes,
            reason: beside.reason,
            answer: beside.answer,
        }
    }
}

/// Returns the sections of a page, with its lines from `from` to before `to`.
fn parts(text: &str, from: usize, to: usize) -> Vec<Part> {
    let sections = sections(text);
    let is_needed = |section: &Section<'_>| !matches!(section.weight, Weight::Optional | Weight::Details);
    let last_needed = sections.iter().rposition(is_needed);
    let (mut parts, mut at) = (Vec::new(), 0);
    for (place, section) in sections.iter().enumerate() {
        let (first, end) = (at, at + section.lines.len());
        at = end;
        let is_begun_here = (from..to).contains(&first);
        // The heading is no line of the part, and the empty line before the next heading is none either.
        let end = end - section.lines.iter().rev().take_while(|line| line.is_empty()).count();
        let first_line = first + usize::from(section.heading().is_some());
        let shown = from.clamp(first_line, end.max(first_line))..to.clamp(first_line, end.max(first_line));
        let lines: Vec<Line> =
            section.lines[shown.start - first..shown.end - first].iter().map(|line| Line::from(*line)).collect();
        if is_begun_here || !lines.is_empty() {
            parts.push(Part {
                class: class_of(section),
                heading: section.heading().unwrap_or_default().to_owned(),
                lines,
                is_details: section.weight == Weight::Details,
                ends_needed: Some(place) == last_needed && (from..=to).contains(&end),
            });
        }
    }
    parts
}

/// Returns the class of a section.
fn class_of(section: &Section<'_>) -> &'static str {
    match section.weight {
        Weight::Effect if section.heading() == Some("WARNINGS") => "warnings",
        Weight::Effect => "effect",
        Weight::Needed => "needed",
        Weight::Optional => "optional",
        Weight::Details => "details",
    }
}

impl From<&str> for Line {
    /// Returns a line with the class of its mark, which only the host writes.
    fn from(line: &str) -> Self {
        let class = match line.as_bytes() {
            [b' ', b' ', b'!', b'!', ..] => "line warn",
            [b' ', b' ', b'+', ..] => "line add",
            [b' ', b' ', b'-', ..] => "line del",
            _ => "line",
        };
        Self { class, text: line.to_owned() }
    }
}

/// `POST /waiting/{id}/decision`
pub async fn decide(Path(id): Path<String>, Posted { visit, fields }: Posted) -> Result<Response, Answer> {
    let is_together =
        matches!(fields.get("decision"), "approve_together" | "reject_together") || fields.get("page") == "together";
    let decided = match decision(&fields) {
        Ok(decision) => send(&visit, &id, decision).await,
        Err(refusal) => Err(refusal.into()),
    };
    let answer = match decided {
        Ok(()) => return Ok(pages::see_other(&format!("/waiting/{id}"))),
        Err(answer) => answer,
    };
    let refused = Refused::from(answer);
    let changes = match refused.code == DenialCode::ShownDiffers.name() {
        true => changes(&visit, &id, &fields, is_together).await,
        false => Vec::new(),
    };
    let beside = Beside {
        step: LAST,
        notice: Some(Notice::from(&refused)),
        changes,
        reason: fields.get("reason").to_owned(),
        answer: fields.get("text").to_owned(),
        wait_ms: 0,
    };
    match is_together {
        // Perhaps one call is left, or none.
        true => match several(&visit, id.clone(), beside.clone(), refused.status).await {
            Err(_) => one(&visit, id, beside, refused.status).await,
            shown => shown,
        },
        false => one(&visit, id, beside, refused.status).await,
    }
}

/// Shows a page of the console again with a refusal; a page that is none of what waits is that of the refusal.
pub async fn again(visit: &Visit, path: &str, answer: Answer) -> Result<Response, Answer> {
    let Some(id) = path.strip_prefix("/waiting/") else { return Err(answer) };
    let (noted, refused) = (answer.noted, Refused::from(answer));
    let beside = Beside { step: LAST, notice: Some(Notice::from(&refused)), ..Beside::default() };
    let mut response = match id.strip_suffix("/together") {
        Some(id) => several(visit, id.to_owned(), beside, refused.status).await?,
        None => one(visit, id.to_owned(), beside, refused.status).await?,
    };
    if let Some(code) = noted {
        response.extensions_mut().insert(Noted(code));
    }
    Ok(response)
}

async fn send(visit: &Visit, id: &str, decision: Decision) -> Result<(), Answer> {
    let is_yes = !matches!(decision, Decision::Reject(_) | Decision::RejectTogether(_));
    let caller: Caller = visit.caller.clone();
    let _ = waiting::decide(caller.clone(), Path(id.to_owned()), Body(decision)).await?;
    if is_yes {
        // The outcome, if it comes soon.
        let _ = waiting::show(caller, Path(id.to_owned()), Query(waiting::Wait::up_to_ms(EFFECT_WAIT_MS))).await?;
    }
    Ok(())
}

/// Reads the decision of a form.
fn decision(fields: &Fields) -> Result<Decision, Refusal> {
    let malformed = |words: String| Refusal::new(DenialCode::RequestMalformed, words).hint("open the page again");
    let shown = || {
        if !fields.get("typed").trim().eq_ignore_ascii_case(APPROVE) {
            let refusal = Refusal::new(DenialCode::NotTyped, "nothing was decided: the word `approve` was not typed");
            return Err(refusal.hint("type `approve` into the field, or hold the button for a second"));
        }
        fields.get("shown").parse::<Digest>().map_err(|_| malformed("the form names no page".to_owned()))
    };
    let reason = || fields.get("reason").trim().to_owned();
    Ok(match fields.get("decision") {
        "approve" => Decision::Approve(shown()?),
        "approve_until_answer" => Decision::ApproveUntilAnswer(shown()?),
        "approve_together" => Decision::ApproveTogether(shown()?),
        "reject" => Decision::Reject(reason()),
        "reject_together" => Decision::RejectTogether(reason()),
        "answer" => {
            let option = fields.given("option").map(str::parse).transpose();
            let option = option.map_err(|_| malformed("the option is no number".to_owned()))?;
            let text = fields.given("text").filter(|text| !text.trim().is_empty()).map(str::to_owned);
            // A text that a person wrote counts more than a choice before it.
            Decision::Answer(NewAnswer { option: option.filter(|_| text.is_none()), text })
        }
        _ => return Err(malformed("the form has no decision".to_owned())),
    })
}

/// Returns the lines that differ between the page that the person decided on and the present one.
async fn changes(visit: &Visit, id: &str, fields: &Fields, is_together: bool) -> Vec<Line> {
    let caller = visit.caller.clone();
    let now = match is_together {
        true => waiting::together(caller, Path(id.to_owned())).await.map(|shown| shown.0.shown),
        false => waiting::show(caller, Path(id.to_owned()), Query(waiting::Wait::up_to_ms(0)))
            .await
            .map(|shown| shown.0.shown),
    };
    let before = fields
        .get("shown")
        .parse()
        .ok()
        .and_then(|digest| visit.caller.api.console.shown.find(&visit.session.id, &digest));
    let (Some(before), Ok(now)) = (before, now) else { return Vec::new() };
    difference(&before, &now)
}

fn difference(before: &str, now: &str) -> Vec<Line> {
    let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    let lines = diff::lines(&before, &now).into_iter().filter_map(|(mark, line)| {
        let (class, sign) = match mark {
            LineMark::Unchanged => return None,
            LineMark::Removed => ("line del", "- "),
            LineMark::Added => ("line add", "+ "),
        };
        Some(Line { class, text: format!("{sign}{line}") })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Decision, String> {
        let fields = Fields::parse(text.as_bytes()).unwrap_or_else(|_| panic!("{text}"));
        decision(&fields).map_err(|refusal| refusal.code.name().to_owned())
    }

    #[test]
    fn yes_needs_the_typed_word_and_the_digest() {
        let digest = Digest::of(b"page");
        assert_eq!(read(&format!("decision=approve&typed=approve&shown={digest}")), Ok(Decision::Approve(digest)));
        assert_eq!(read(&format!("decision=approve&typed=+Approve+&shown={digest}")), Ok(Decision::Approve(digest)));
        for typed in ["", "yes", "approv", "approve all"] {
            let found = read(&format!("decision=approve&typed={typed}&shown={digest}"));
            assert_eq!(found, Err("not_typed".to_owned()), "{typed}");
        }
        assert_eq!(read("decision=approve&typed=approve&shown=x"), Err("request_malformed".to_owned()));
        assert_eq!(read("decision=approved"), Err("request_malformed".to_owned()));
        assert_eq!(read("decision=reject&reason=+no+"), Ok(Decision::Reject("no".to_owned())));
    }

    #[test]
    fn each_line_is_on_one_step() {
        let text: String = ["EFFECT\n".to_owned()]
            .into_iter()
            .chain((0..130).map(|number| format!("  line {number}\n")))
            .chain(["IDENTIFIERS\n".to_owned(), "  id\n".to_owned()])
            .collect();
        let steps = text.lines().count().div_ceil(STEP_LINES);
        let all: Vec<String> = (0..steps)
            .flat_map(|step| parts(&text, step * STEP_LINES, (step + 1) * STEP_LINES))
            .flat_map(|part| part.lines.into_iter().map(|line| line.text))
            .collect();
        let expected: Vec<&str> = text.lines().filter(|line| line.starts_with(' ')).collect();
        assert_eq!(all, expected);
        let ends = |step: usize| {
            parts(&text, step * STEP_LINES, (step + 1) * STEP_LINES).iter().filter(|part| part.ends_needed).count()
        };
        assert_eq!((0..steps).map(ends).collect::<Vec<_>>(), [0, 0, 1], "once, where the last needed line is");
    }

    #[test]
    fn stale_page_says_what_changed() {
        let changed = difference("EFFECT\n  one\n", "EFFECT\n  two\n");
        let lines: Vec<String> = changed.into_iter().map(|line| line.text).collect();
        assert_eq!(lines, ["-   one", "+   two"]);
    }
}
