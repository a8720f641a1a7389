//! The complaints of servers about what the host sends back to them: state of earlier outputs, and messages without words.
//!
//! Never takes a refusal without the name of a field that the request has. See [`crate::endpoint_quirks`] for what follows.

use super::attached::REASONING_FIELDS;
use super::attached::sent_back::{Names, Rules, SentBack};
use super::error_body::Complaint;
use super::quirks::Quirk;
use super::render::{Message, Rendered};
use ironclaw_contract::canonical::Digest;
use std::collections::HashSet;

/// Words about a field that a server does not take.
const UNFIT: [&str; 25] = [
    "unsupported",
    "not supported",
    "not support",
    "not permitted",
    "not allowed",
    "not accept",
    "extra ",
    "additional ",
    "unknown",
    "unrecognized",
    "unrecognised",
    "unexpected",
    "forbidden",
    "invalid",
    "disallowed",
    "no such",
    "must not",
    "should not",
    "cannot be",
    "not a valid",
    "not recognized",
    "not recognised",
    "not defined",
    "not exist",
    "cannot find",
];
/// Words about thoughts that a server needs.
const MISSING: [&str; 6] =
    ["must be passed", "passed back", "is missing", "missing", "is required", "must be provided"];
/// Words about a content without a text.
const NO_TEXT: [&str; 13] = [
    "null",
    "none",
    "must be a string",
    "must be string",
    "should be a string",
    "must be a valid string",
    "valid string",
    "string or",
    "expected string",
    "expected a string",
    "type string",
    "type 'string'",
    "'string' not in",
];
/// Words about several calls in one message, without blanks and hyphens.
const ONE_CALL: [&str; 8] = [
    "onlysupportssingletoolcall",
    "onlysupportsonetoolcall",
    "onlyonetoolcall",
    "singletoolcallsatonce",
    "multipletoolcallsarenotsupported",
    "multipletoolcallsnotsupported",
    "paralleltoolcallsarenotsupported",
    "doesnotsupportparalleltoolcalls",
];
/// Words about an empty content.
const EMPTY: [&str; 4] = ["empty", "at least 1", "at least one", "too short"];

/// What a request has, for the complaint of its server.
#[derive(Debug, Default)]
pub struct Carried {
    pub names: Names,
    /// True if it has a message of the model with calls and without words.
    pub has_bare_calls: bool,
    /// True if it has a message of the model with calls, and with more than one.
    pub has_calls: bool,
    pub has_several_calls: bool,
}

impl Carried {
    /// Returns what a request to this endpoint has.
    pub fn read(rendered: &Rendered<'_>, endpoint: Option<Digest>, rules: Rules) -> Self {
        let is_bare = |message: &Message<'_>| matches!(message, Message::Assistant { text, calls, .. } if text.is_empty() && !calls.is_empty());
        let has_calls = |count: usize| {
            let calls =
                |message: &Message<'_>| matches!(message, Message::Assistant { calls, .. } if calls.len() >= count);
            rendered.messages.iter().any(calls)
        };
        let names = SentBack::read(rendered, endpoint, rules).names();
        let has_bare_calls = rendered.messages.iter().any(is_bare);
        Self { names, has_bare_calls, has_calls: has_calls(1), has_several_calls: has_calls(2) }
    }

    /// Returns whether the value of a quirk makes a difference to the request.
    pub fn has_place(&self, quirk: Quirk) -> bool {
        match quirk {
            Quirk::Thoughts => !self.names.thoughts.is_empty(),
            Quirk::State => !self.names.state.is_empty(),
            Quirk::CallContent => self.has_bare_calls,
            Quirk::CallsTogether => self.has_several_calls,
            Quirk::ThoughtField => self.has_calls,
            // An answer shows it, and no request.
            Quirk::AnswerBegins => false,
            Quirk::LimitField | Quirk::StreamUsage | Quirk::CallIds | Quirk::SystemRole | Quirk::KeyHeader => true,
        }
    }

    /// Returns the complaint of a template that takes one call in a message. Some servers report it as an internal error.
    pub fn complaint_of_template(&self, words: &str) -> Option<Complaint> {
        let letters: String = words.to_lowercase().chars().filter(|letter| letter.is_alphanumeric()).collect();
        let is_one = self.has_several_calls && ONE_CALL.iter().any(|part| letters.contains(part));
        is_one.then_some(Complaint::CallsTogether)
    }

    /// Returns the complaint of a refusal with these words, if it is about this. The name of a field may be elsewhere in its body.
    pub fn complaint(&self, words: &str, body: &str) -> Option<Complaint> {
        if let Some(complaint) = self.complaint_of_template(words) {
            return Some(complaint);
        }
        let (words, body) = (words.to_lowercase(), body.to_lowercase());
        let has = |any: &[&str]| any.iter().any(|part| words.contains(part));
        let names = |list: &HashSet<String>| {
            list.iter().map(|name| name.to_lowercase()).any(|name| has_name(&words, &name) || has_name(&body, &name))
        };
        if has(&MISSING) && REASONING_FIELDS.iter().any(|name| has_name(&words, name)) {
            return Some(Complaint::ThoughtsMissing);
        }
        if has(&UNFIT) && names(&self.names.thoughts) {
            return Some(Complaint::Thoughts);
        }
        if has(&UNFIT) && names(&self.names.state) {
            return Some(Complaint::State);
        }
        let is_content = self.has_bare_calls && (has_name(&words, "content") || words.contains("'string' not in"));
        if is_content && has(&NO_TEXT) {
            return Some(Complaint::NullContent);
        }
        (is_content && has(&EMPTY)).then_some(Complaint::EmptyContent)
    }
}

/// Returns whether a text has a name as a word of its own.
fn has_name(words: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    !name.is_empty()
        && words.match_indices(name).any(|(at, _)| {
            let (before, behind) = (&words[..at], &words[at + name.len()..]);
            !before.ends_with(is_part) && !behind.starts_with(is_part)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_is_a_complaint_only_about_what_was_sent() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        let carried = Carried {
            names: Names {
                thoughts: names(&["reasoning", "reasoning_content"]),
                state: names(&["bar", "extra_content"]),
            },
            has_bare_calls: true,
            has_calls: true,
            has_several_calls: true,
        };
        for (words, complaint) in [
            (
                "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported)]",
                Some(Complaint::Thoughts),
            ),
            ("property 'messages.2.assistant.reasoning_content' is unsupported", Some(Complaint::Thoughts)),
            ("messages.2.tool_calls.0.bar: Extra inputs are not permitted", Some(Complaint::State)),
            ("Additional properties are not allowed ('extra_content' was unexpected)", Some(Complaint::State)),
            (
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
                Some(Complaint::ThoughtsMissing),
            ),
            (
                "Invalid 'content': 'content' field must be a string or an array of objects.",
                Some(Complaint::NullContent),
            ),
            ("'string' not in 'null'", Some(Complaint::NullContent)),
            ("messages.2: content must not be empty", Some(Complaint::EmptyContent)),
            ("This model only supports single tool-calls at once!", Some(Complaint::CallsTogether)),
            ("Multiple tool calls are not supported.", Some(Complaint::CallsTogether)),
            ("messages.2.tool_calls.0.foo: Extra inputs are not permitted", None),
            ("the barrier is not supported", None),
            ("the reasoning was long", None),
            ("invalid temperature", None),
        ] {
            assert_eq!(carried.complaint(words, ""), complaint, "{words}");
            let found = Carried::default().complaint(words, "");
            assert_eq!(found.filter(|found| *found != Complaint::ThoughtsMissing), None);
        }
        let body = r#"{"detail":[{"loc":["body","messages",2,"role"]},{"loc":["body","messages",2,"reasoning"]}]}"#;
        assert_eq!(carried.complaint("Extra inputs are not permitted", body), Some(Complaint::Thoughts));
    }
}
