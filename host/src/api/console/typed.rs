//! The typed and the pasted parts of a message, as the script of the page marks them.
//!
//! A paste is quoted text of others, as on a terminal. Without the script, no part counts as typed. See `ironctl chat` for the same rule
//! on a terminal.

use super::fields::Fields;
use crate::api::handler::Answer;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;

/// Pasted parts of one message.
const PASTES_MAX: usize = 64;

/// A message as its person wrote it.
#[derive(Debug, PartialEq, Eq)]
pub struct Typed {
    /// The typed text, with a mark in the place of each pasted part.
    pub text: String,
    pub quoted: Vec<String>,
    /// False if the page could not see which parts were pasted.
    pub is_typed: bool,
}

/// Reads the parts of a form.
///
/// # Errors
/// Refuses parts that are not in order, or not of the text.
pub fn read(fields: &mut Fields) -> Result<Typed, Answer> {
    let (text, is_typed, pasted) = (fields.take("text"), fields.get("typed") == "1", fields.take("pasted"));
    // A browser sends CR LF in place of each line feed; the script counts line feeds alone.
    let text = text.replace("\r\n", "\n");
    let pasted: Vec<[usize; 2]> = match is_typed && !pasted.is_empty() {
        true => serde_json::from_str(&pasted).map_err(|_| malformed())?,
        false => Vec::new(),
    };
    parts(&text, &pasted, is_typed)
}

fn parts(text: &str, pasted: &[[usize; 2]], is_typed: bool) -> Result<Typed, Answer> {
    if pasted.len() > PASTES_MAX {
        return Err(malformed());
    }
    let (mut typed, mut quoted, mut at) = (String::new(), Vec::new(), 0);
    for [start, end] in pasted {
        let before = text.get(at..*start).ok_or_else(malformed)?;
        let paste = text.get(*start..*end).ok_or_else(malformed)?;
        at = *end;
        typed.push_str(before);
        if paste.trim().is_empty() {
            typed.push_str(paste);
            continue;
        }
        if typed.ends_with(|last: char| !last.is_whitespace()) {
            typed.push(' ');
        }
        quoted.push(paste.to_owned());
        typed.push_str(&format!("[quoted {}]", quoted.len()));
        if text[at..].starts_with(char::is_alphanumeric) {
            typed.push(' ');
        }
    }
    typed.push_str(&text[at..]);
    Ok(Typed { text: typed, quoted, is_typed })
}

fn malformed() -> Answer {
    let refusal = Refusal::new(DenialCode::RequestMalformed, "the pasted parts do not fit the text");
    refusal.hint("send it again; nothing was sent").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, pasted: &[[usize; 2]]) -> Option<(String, Vec<String>)> {
        parts(text, pasted, true).ok().map(|typed| (typed.text, typed.quoted))
    }

    #[test]
    fn pasted_part_is_quoted_as_on_a_terminal() {
        let found = read("sum up: /allow sendand send it", &[[8, 19]]);
        assert_eq!(found, Some(("sum up: [quoted 1] and send it".to_owned(), vec!["/allow send".to_owned()])));
        assert_eq!(read("a  b", &[[1, 3]]), Some(("a  b".to_owned(), vec![])), "only spaces");
        assert_eq!(read("é把它", &[[2, 8]]), Some(("é [quoted 1]".to_owned(), vec!["把它".to_owned()])));
        assert_eq!(read("ab", &[]), Some(("ab".to_owned(), vec![])));
    }

    #[test]
    fn part_outside_of_the_text_or_of_a_character_is_refused() {
        for pasted in [&[[0, 9]][..], &[[2, 1]], &[[1, 2], [0, 1]], &[[0, 1]], &[[9, 9]]] {
            assert_eq!(read("é把", pasted), None, "{pasted:?}");
        }
        assert_eq!(read("ab", &[[0, 1]; PASTES_MAX + 1]), None);
    }
}
