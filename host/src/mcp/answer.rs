//! The result of a call for a model, from the answer of a server.
//!
//! Pure. Everything is text of the server, so it is neutralised, its hidden characters are codes, and it is cut to its bound.

use crate::turns::calls::ResultBody;
use ironclaw_mcp::{Answer, Asked, NotAnswered, Output};
use ironclaw_text::{lookalike, visible};

/// Bytes of the text of an answer that a model gets.
const TEXT_BYTES_MAX: usize = 96 * 1024;

/// Returns the words of an answered call, and whether the tool worked.
pub(super) fn answer(server: &str, answer: Answer) -> (bool, String) {
    match answer {
        Answer::Done(Output { text, is_error, structured, refused, .. }) => {
            let mut told = text;
            if let Some(structured) = structured.filter(|_| told.is_empty()) {
                told = structured.to_string();
            }
            if !refused.is_empty() {
                // First, so that no long text of the server hides it behind the bound.
                told = format!("{}\n{told}", asked(server, &refused));
            }
            (!is_error, told)
        }
        Answer::WantsInput { asked: wanted, .. } => (false, asked(server, &wanted)),
    }
}

/// Describes requests of a server that the host refused.
fn asked(server: &str, wanted: &[Asked]) -> String {
    let each = wanted.iter().map(|asked| {
        let url = asked.url.as_ref().map(|url| format!(", with the address {url}")).unwrap_or_default();
        format!("{}: {}{url}", asked.method, asked.message)
    });
    let each: Vec<String> = each.collect();
    format!(
        "MCP server {server} asked for something that the host does not give: {}. Nothing was answered. Ask the person in your answer \
         if it is needed, and never for a password.",
        each.join("; ")
    )
}

/// Returns the words of a call without an answer.
pub(super) fn no_answer(server: &str, failed: &NotAnswered) -> (bool, String) {
    let effect = if failed.may_have_arrived { "it is unknown if the server acted" } else { "nothing was sent" };
    let refused = match failed.refused.as_slice() {
        [] => String::new(),
        refused => format!("\n{}", asked(server, refused)),
    };
    (false, format!("failed: MCP server {server}: {}; {effect}{refused}", failed.error))
}

/// Returns the result of a call whose server could not be reached.
pub fn not_reached(server: &str, words: &str) -> ResultBody {
    body(false, &format!("failed: MCP server {server} cannot be used: {words}; nothing was sent"))
}

/// Returns the result of a call with words of a server, which have no secret.
pub(super) fn body(ok: bool, text: &str) -> ResultBody {
    let text = lookalike::neutralise(text);
    let text = visible::without_hidden(&text);
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let cut = if end < text.len() { "\n(cut: the answer is longer than the limit)" } else { "" };
    ResultBody { ok, text: text[..end].to_owned() + cut }
}
