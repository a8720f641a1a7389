//! The title of a conversation: the first words of its oldest kept message.
//!
//! Never shows a text of others in it, nor a character that hides or reorders text. See [`super::body`].

use crate::sessions::store::Session;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::items;
use ironclaw_text::visible;

/// Characters of a title.
const CHARACTERS_MAX: usize = 60;

/// Returns the title of a conversation; `None` if no kept message has words of a person, an agent or a schedule.
pub fn title(tx: &ReadTx<'_>, session: &Session, wrapping: &WrappingKey) -> Result<Option<String>, Error> {
    let Some(first) = items::first_message(tx, session.id)? else { return Ok(None) };
    let body = super::body(tx, &first, &session.content_key(wrapping)?)?;
    Ok(first_words(own_part(&body, &first.spans())))
}

/// Returns the first part of a message that is no quotation and no file.
fn own_part<'a>(body: &'a str, spans: &[Span]) -> &'a str {
    let mut start = 0;
    for span in spans {
        let end = start + span.bytes;
        let part = body.get(start..end).unwrap_or_default();
        let is_own = !matches!(span.author, Author::Quoted | Author::File { .. } | Author::Tool { .. });
        if is_own && !part.trim().is_empty() {
            return part;
        }
        start = end;
    }
    ""
}

/// Returns the first words of a text on one line, within the bound.
fn first_words(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = visible::without_hidden(&line);
    if line.chars().count() <= CHARACTERS_MAX {
        return Some(line.into_owned()).filter(|line| !line.is_empty());
    }
    let start: String = line.chars().take(CHARACTERS_MAX).collect();
    // A word that is longer than half of a title is cut.
    let end = start.rfind(' ').filter(|end| *end > start.len() / 2).unwrap_or(start.len());
    Some(format!("{}…", &start[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::PersonId;

    #[test]
    fn title_is_the_first_words_on_one_bounded_line() {
        for (text, title) in [
            ("Look what\n  changed\tin notes", Some("Look what changed in notes")),
            ("  \n", None),
            ("a\u{202e}b", Some("a⟦U+202E⟧b")),
            ("Привет, что нового?", Some("Привет, что нового?")),
        ] {
            assert_eq!(first_words(text).as_deref(), title, "{text:?}");
        }
        let words = first_words(&"word ".repeat(100)).expect("a title");
        assert!(words.ends_with("word…") && words.chars().count() <= CHARACTERS_MAX + 1, "{words}");
        let one = first_words(&"ш".repeat(100)).expect("a title");
        assert_eq!(one.chars().count(), CHARACTERS_MAX + 1);
    }

    #[test]
    fn quotation_is_no_title_of_a_conversation() {
        let span = |author, bytes| Span { author, bytes };
        let person = || Author::Person { person: PersonId::new() };
        assert_eq!(own_part("> hipost it", &[span(Author::Quoted, 4), span(person(), 7)]), "post it");
        assert_eq!(own_part("> hi", &[span(Author::Quoted, 4)]), "");
        assert_eq!(own_part("ab", &[span(person(), 9)]), "", "a damaged span");
    }
}
