//! The sentences of the console, and the form of its times.
//!
//! Sentences of the host itself (pages, refusals, warnings) come with their objects and are not here.

use ironclaw_operator::{WaitingKind, WaitingStatus};
use ironclaw_text::visible;
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub const INBOX: &str = "Inbox";
pub const CONVERSATIONS: &str = "Conversations";
pub const STATUS: &str = "Status";
pub const WHY: &str = "Why";

pub const SKIP: &str = "Skip to the content";
pub const ROOMS: &str = "Rooms";
pub const PAGES: &str = "Pages";
pub const OLDER: &str = "Older";
pub const NEXT: &str = "Next page";
pub const PREVIOUS: &str = "Previous page";
pub const OFFLINE: &str = "The host does not answer. This page tries again.";

pub const SIGN_IN: &str = "Sign in";
pub const SIGN_IN_HOW: &str = "Get a code on the machine of the host, and type it here within a minute:";
pub const SIGN_IN_COMMAND: &str = "ironctl console --print";
pub const CODE: &str = "Code";
pub const CONTINUE: &str = "Continue";
pub const CONTINUE_AS: &str = "You sign in as";
pub const CONTINUE_NOT_YOU: &str = "If this is not you, close this page.";
pub const SIGN_OUT: &str = "Sign out";
pub const SIGNED_OUT: &str = "You are signed out.";
pub const ENDED: &str = "Your session has ended";
pub const ENDED_TYPED: &str = "Nothing was sent. What you typed:";
pub const TYPED_TEXT: &str = "Your text";
pub const TYPED_REASON: &str = "Your reason";

pub const REFUSED: &str = "Refused";
pub const UNREADABLE: &str = "this page could not read the request";
pub const GO_BACK: &str = "go back, and repeat the step";
pub const NOT_RENDERED: &str = "The host cannot show this page; `ironctl logs` has more.";
pub const BACK_TO_INBOX: &str = "Back to the inbox";

pub const NOTHING_WAITS: &str = "Nothing waits for you.";
pub const WAITS_FOR_OTHERS: &str = "waits for other people";
pub const BY: &str = "asked by";
pub const ON_BEHALF_OF: &str = "on behalf of";
pub const ENDS: &str = "ends";

pub const CHANGED: &str = "What changed since the page that you read";
pub const DETAILS: &str = "Details";
pub const STEP: &str = "Part";
pub const OF: &str = "of";
pub const NEXT_STEP: &str = "Next part";
pub const PREVIOUS_STEP: &str = "Previous part";
pub const TOGETHER: &str = "Decide on these calls on one page";
pub const READ_FIRST: &str = "Read to the end of the page first.";
pub const TYPE_APPROVE: &str = "To approve, type";
pub const OR_HOLD: &str = "or hold the button for a second.";
pub const APPROVE: &str = "Approve";
pub const APPROVE_ONCE: &str = "This time";
pub const APPROVE_UNTIL_ANSWER: &str = "This time, and the tools named under UNTIL THE ANSWER";
pub const APPROVE_WHAT: &str = "Approve";
pub const REJECT: &str = "Reject";
pub const REASON: &str = "Reason (may be empty)";
pub const CONFIRM: &str = "Confirm that it is you";
pub const CONFIRM_HOW: &str = "A yes here gives a right, runs a program, or lets data leave. It needs a fresh code:";
pub const CONFIRM_BUTTON: &str = "Confirm";
pub const ANSWER: &str = "Answer";
pub const ANSWER_CHOICES: &str = "Answers";
pub const ANSWER_TEXT: &str = "Your answer";

pub const SEARCH: &str = "Search in titles";
pub const SEARCH_BUTTON: &str = "Search";
pub const NO_CONVERSATION: &str = "There is no conversation here.";
pub const NO_AGENT: &str = "You have no agent to talk to.";
pub const NEW_CONVERSATION: &str = "New conversation";
pub const WITH_AGENT: &str = "Agent";
pub const BEGIN: &str = "Begin";
pub const UNTITLED: &str = "(no message yet)";
pub const MESSAGE: &str = "Message";
pub const FILES_AND_ALLOW: &str = "Files and permissions";
pub const FILES: &str = "Files";
pub const ALLOW: &str = "Allow";
pub const ALLOW_TEXT: &str = "What the text asks for";
pub const ALLOW_READ: &str = "Also reading";
pub const ALLOW_WRITE: &str = "Also writing";
pub const ALLOW_SEND: &str = "Also sending";
pub const ALLOW_EXEC: &str = "Also running programs";
pub const ALLOW_TRADE: &str = "Also buying and selling";
pub const ALLOW_READ_ALONE: &str = "Reading alone";
pub const SEND: &str = "Send";
pub const CANCEL: &str = "Cancel the turn";
pub const WORKS: &str = "The agent works on it.";
pub const ARGUMENTS: &str = "Arguments";
pub const RESULT: &str = "Result";
pub const DOWNLOAD: &str = "Download";
pub const WAITS_HERE: &str = "Waits for you:";
pub const NOT_YOURS: &str = "Only the person of this conversation writes into it.";
pub const QUOTED: &str = "quoted text of others";
pub const TALK: &str = "Conversation";

pub const STOP: &str = "Stop everything";
pub const STOPPED: &str = "Everything is stopped.";
pub const STOPPED_BY: &str = "Everything is stopped by";
pub const RESUME: &str = "Resume";
pub const RESUME_TYPE: &str = "To let agents run again, type";
pub const AGENTS_AWAKE: &str = "Agents at work";
pub const NONE_AWAKE: &str = "No agent is at work.";
pub const INCIDENTS: &str = "Incidents";
pub const NO_INCIDENT: &str = "There is none.";
pub const SCHEDULES: &str = "Schedules";
pub const NO_SCHEDULE: &str = "There is no schedule.";
pub const SCHEDULE: &str = "Schedule";
pub const AGENT: &str = "Agent";
pub const NEXT_RUN: &str = "Next run";
pub const LAST_RUN: &str = "Last run";
pub const STATE: &str = "State";
pub const USAGE: &str = "Usage today";
pub const NO_USAGE: &str = "No model was used today.";
pub const REQUESTS: &str = "Requests";
pub const TOKENS: &str = "Tokens";
pub const MODEL: &str = "Model";
pub const HOST: &str = "Host";
pub const READY: &str = "The host answers, and its record can be written.";
pub const CHECKS: &str = "Checks of the machine";
pub const CHECKS_RUN: &str = "Run the checks";
pub const CHECK_OK: &str = "pass";
pub const CHECK_FAILED: &str = "FAIL";
pub const AUDIT: &str = "Audit of the configuration";
pub const AUDIT_RUN: &str = "Run the audit";
pub const NO_FINDING: &str = "There is no finding.";

pub const WHY_ID: &str = "Id of a message, a call, or what waits";
pub const WHY_BUTTON: &str = "Show why";
pub const STAGES: &str = "Stages";

/// Returns the words of an agent that asks, safe to read as on the review page, or the effect in those of the host.
pub fn shown(question: Option<String>, effect: String) -> String {
    question.map_or(effect, |question| visible::name(&question).to_string())
}

/// Returns the word for a kind of what waits.
pub const fn kind(kind: WaitingKind) -> &'static str {
    match kind {
        WaitingKind::Call => "Call",
        WaitingKind::Question => "Question",
        WaitingKind::Change => "Change",
    }
}

/// Returns the title of the page of what waits or waited.
pub fn title(kind: WaitingKind, status: WaitingStatus) -> String {
    match (kind, status.is_open()) {
        (WaitingKind::Call, true) => "A call waits".to_owned(),
        (WaitingKind::Question, true) => "An agent asks".to_owned(),
        (WaitingKind::Change, true) => "A change waits".to_owned(),
        (WaitingKind::Call, false) => format!("A call: {status}"),
        (WaitingKind::Question, false) => format!("A question: {status}"),
        (WaitingKind::Change, false) => format!("A change: {status}"),
    }
}

/// Returns the title of the page of several calls.
pub fn several_calls(count: usize) -> String {
    format!("{count} calls wait")
}

/// Returns a time of RFC 3339 in the zone of the host, to the minute.
pub fn time(zone: &TimeZone, rfc3339: &str) -> String {
    match rfc3339.parse::<Timestamp>() {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_host() {
        let zone = TimeZone::get("Europe/Vienna").expect("a zone");
        assert_eq!(time(&zone, "2026-11-30T19:05:09.123Z"), "2026-11-30 20:05");
        assert_eq!(time(&zone, "soon"), "soon");
    }
}
