//! The result of a call for a model, from the answer of a server.
//!
//! Pure. Everything is text of the server, so it is neutralised, its hidden characters are codes, and it is cut to its bound. Secrets are
//! removed before any cut, so that no part of one is left.

use super::connect::{shown, without_secrets};
use crate::turns::calls::{CallOutcome, ResultBody};
use ironclaw_mcp::{Answer, Asked, NotAnswered, Output};
use ironclaw_state::keys::SecretText;
use ironclaw_text::{lookalike, visible};
use serde_json::Value;

/// Bytes of the text of an answer that a model gets.
const TEXT_BYTES_MAX: usize = 96 * 1024;
/// Characters of the message or the address of a request of a server.
const ASKED_CHARACTERS_MAX: usize = 2_000;

/// Returns the words of an answered call, and whether the tool worked.
pub(super) fn answer(server: &str, answer: Answer, secrets: &[SecretText]) -> (bool, String) {
    match answer {
        Answer::Done(Output { text, is_error, structured, refused, .. }) => {
            let structured = structured.filter(|_| text.is_empty()).map(|structured| structured.to_string());
            let mut told = without_secrets(structured.unwrap_or(text), secrets);
            if !refused.is_empty() {
                // First, so that no long text of the server hides it behind the bound.
                told = format!("{}\n{told}", asked(server, &refused, secrets));
            }
            (!is_error, told)
        }
        Answer::WantsInput { asked: wanted, .. } => (false, asked(server, &wanted, secrets)),
    }
}

/// Returns the answer of a tool as JSON: its structured content, or its text. An answer with a secret is none.
pub(super) fn content(answer: &Answer, secrets: &[SecretText]) -> Option<Value> {
    let Answer::Done(Output { text, is_error: false, structured, .. }) = answer else { return None };
    let content = match structured {
        Some(structured) => structured.clone(),
        None => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
    };
    let has_secret = |words: &str| without_secrets(words.to_owned(), secrets) != words;
    (!has_text(&content, &has_secret)).then_some(content)
}

/// Returns whether a text or a key of a value is one of these. Escapes of JSON hide none.
fn has_text(value: &Value, is_it: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_it(text),
        Value::Array(values) => values.iter().any(|value| has_text(value, is_it)),
        Value::Object(fields) => fields.iter().any(|(name, value)| is_it(name) || has_text(value, is_it)),
        Value::Number(number) => is_it(&number.to_string()),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Describes requests of a server that the host refused.
fn asked(server: &str, wanted: &[Asked], secrets: &[SecretText]) -> String {
    let cut = |text: &str| -> String {
        without_secrets(text.to_owned(), secrets).chars().take(ASKED_CHARACTERS_MAX).collect()
    };
    let each = wanted.iter().map(|asked| {
        let url = asked.url.as_ref().map(|url| format!(", with the address {}", cut(url))).unwrap_or_default();
        format!("{}: {}{url}", cut(&asked.method), cut(&asked.message))
    });
    let each: Vec<String> = each.collect();
    format!(
        "MCP server {server} asked for something that the host does not give: {}. Nothing was answered. Ask the person in your answer \
         if it is needed, and never for a password.",
        each.join("; ")
    )
}

/// Returns the words of a call without an answer.
pub(super) fn no_answer(server: &str, failed: &NotAnswered, secrets: &[SecretText]) -> (CallOutcome, String) {
    let outcome = CallOutcome::without_answer(failed.may_have_arrived);
    let effect = if failed.may_have_arrived { "it is unknown if the server acted" } else { "nothing was sent" };
    let refused = match failed.refused.as_slice() {
        [] => String::new(),
        refused => format!("\n{}", asked(server, refused, secrets)),
    };
    let error = shown(&failed.error, secrets);
    (outcome, format!("{}: MCP server {server}: {error}; {effect}{refused}", outcome.name()))
}

/// Returns the result of a call that the host gave up after the server made requests.
pub(super) fn given_up(server: &str, refused: &[Asked], secrets: &[SecretText]) -> ResultBody {
    let asked = asked(server, refused, secrets);
    let words = "the host gave the call up; it is unknown if the server acted";
    body(CallOutcome::Unknown, &format!("unknown: MCP server {server}: {words}\n{asked}"))
}

/// Returns the result of a call whose server could not be reached.
pub fn not_reached(server: &str, words: &str) -> ResultBody {
    body(CallOutcome::Failed, &format!("failed: MCP server {server} cannot be used: {words}; nothing was sent"))
}

/// Returns the result of a call with words of a server, which have no secret.
pub(super) fn body(outcome: CallOutcome, text: &str) -> ResultBody {
    let text = lookalike::neutralise(text);
    let text = visible::without_hidden(&text);
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    let cut = if end < text.len() { "\n(cut: the answer is longer than the limit)" } else { "" };
    ResultBody::with_outcome(outcome, text[..end].to_owned() + cut)
}
