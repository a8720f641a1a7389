//! The declaration of a scope, `/allow CLASS...` or `/allow +CLASS...`, at the start of typed text.
//!
//! Bare classes are the whole scope. Classes with `+` add to the scope that the text has without them. A declaration has one form alone.
//!
//! The declaration is the first text of the first typed span, after white space only. It ends at the first line break or at
//! ` -- `; the request follows. `/allow` anywhere else declares nothing.

use crate::class::{Class, Classes};
use crate::provenance::spans::Span;
use std::ops::Range;

/// The word that begins a declaration.
pub const COMMAND: &str = "/allow";
/// The mark that ends a declaration on the line of the request.
const END: &str = "--";
/// The classes that a person can declare.
const DECLARABLE: [Class; 5] = [Class::Read, Class::Write, Class::Send, Class::Exec, Class::Trade];

/// The mark of a class that adds to the scope of the text.
const ADDS: char = '+';

/// What a declaration says, in the text or beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declaration {
    pub classes: Classes,
    /// True if the classes add to the scope of the text, and false if they are the whole scope.
    pub adds: bool,
}

impl Declaration {
    /// Reads the words of a declaration, such as `send` and `write`, or `+send` and `+write`.
    ///
    /// # Errors
    /// Refuses no word at all, a word that is no class, and both forms beside each other.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, DeclarationError> {
        let words = words.into_iter().map(class_of).collect::<Result<Vec<_>, _>>()?;
        let Some((_, adds)) = words.first().copied() else { return Err(DeclarationError::Empty) };
        if words.iter().any(|(_, other)| *other != adds) {
            return Err(DeclarationError::Mixed);
        }
        Ok(Self { classes: words.into_iter().map(|(class, _)| class).collect(), adds })
    }
}

/// Returns the class of a word, and whether it adds to the scope of the text.
fn class_of(word: &str) -> Result<(Class, bool), DeclarationError> {
    let name = word.strip_prefix(ADDS);
    let class = DECLARABLE.into_iter().find(|class| class.name() == name.unwrap_or(word));
    let unknown = || DeclarationError::Unknown(word.chars().take(WORD_CHARACTERS_MAX).collect());
    class.map(|class| (class, name.is_some())).ok_or_else(unknown)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared<'a> {
    pub declaration: Declaration,
    /// The text of the span after the declaration.
    pub rest: &'a str,
    /// The index of the span.
    pub span: usize,
    /// The word of each class, with its range of bytes in the span.
    pub words: Vec<(Class, Range<usize>)>,
}

/// A declaration that cannot be read. Nothing of it counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclarationError {
    #[error(
        "/allow names no class: write for example `/allow +send`, or `/allow send write` for these classes alone, \
         with classes of read, write, send, exec, trade"
    )]
    Empty,
    /// A word that is no class.
    #[error(
        "/allow does not know {0:?}: the classes are read, write, send, exec, trade; \
         write the request on the next line, or after ` -- `"
    )]
    Unknown(String),
    /// Classes with and without `+`.
    #[error(
        "/allow mixes classes with and without `+`: write `/allow read send` to ask for these classes alone, \
         or `/allow +read +send` to add them to what the message asks for"
    )]
    Mixed,
}

/// Characters of an unknown word that an error repeats.
const WORD_CHARACTERS_MAX: usize = 40;

/// Returns the declaration of a message; `None` if it has none.
pub fn declared<'a>(spans: &[Span<'a>]) -> Result<Option<Declared<'a>>, DeclarationError> {
    let Some((span, first)) = spans.iter().enumerate().find(|(_, span)| span.typed) else {
        return Ok(None);
    };
    let text = first.text;
    let begin = text.len() - text.trim_start().len() + COMMAND.len();
    if !text.trim_start().starts_with(COMMAND) || text[begin..].chars().next().is_some_and(|next| !next.is_whitespace())
    {
        return Ok(None);
    }
    let line_end = text[begin..].find(['\n', '\r', '\u{2028}', '\u{2029}']).map_or(text.len(), |at| begin + at);
    let mut words = Vec::new();
    let mut rest = line_end;
    for (word, bytes) in words_of(text, begin..line_end) {
        if word == END {
            rest = bytes.end;
            break;
        }
        words.push((word, class_of(word)?.0, bytes));
    }
    let declaration = Declaration::read(words.iter().map(|(word, ..)| *word))?;
    let words = words.into_iter().map(|(_, class, bytes)| (class, bytes)).collect();
    Ok(Some(Declared { declaration, rest: text[rest..].trim_start(), span, words }))
}

fn words_of(text: &str, range: Range<usize>) -> impl Iterator<Item = (&str, Range<usize>)> {
    text[range].split_whitespace().map(move |word| {
        let begin = word.as_ptr() as usize - text.as_ptr() as usize;
        (word, begin..begin + word.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Result<Option<(String, &str)>, DeclarationError> {
        let found = declared(&[Span { text, typed: true }])?;
        let mark = |adds| if adds { "+" } else { "" };
        let classes = |declared: Declaration| format!("{}{}", mark(declared.adds), declared.classes);
        Ok(found.map(|declared| (classes(declared.declaration), declared.rest)))
    }

    #[test]
    fn declaration_ends_at_a_line_break_or_at_two_dashes() {
        assert_eq!(typed("/allow send write\nmail it"), Ok(Some(("write send".into(), "mail it"))));
        assert_eq!(typed(" \n/allow exec trade -- buy -- it"), Ok(Some(("exec trade".into(), "buy -- it"))));
        assert_eq!(typed("/allow\tread\r\n\r\nwhat"), Ok(Some(("read".into(), "what"))));
        assert_eq!(typed("/allow send"), Ok(Some(("send".into(), ""))));
    }

    #[test]
    fn word_that_is_no_class_is_an_error_that_names_it() {
        assert_eq!(typed("/allow send mail it"), Err(DeclarationError::Unknown("mail".into())));
        assert_eq!(typed("/allow Send"), Err(DeclarationError::Unknown("Send".into())));
        assert_eq!(typed("/allow ask"), Err(DeclarationError::Unknown("ask".into())));
        assert_eq!(typed("/allow send, write"), Err(DeclarationError::Unknown("send,".into())));
        let message = DeclarationError::Unknown("mail".into()).to_string();
        assert!(message.contains("\"mail\"") && message.contains("read, write, send, exec, trade"), "{message}");
    }

    #[test]
    fn declaration_without_a_class_is_an_error_with_the_remedy() {
        for text in ["/allow", "/allow  ", "/allow\nsend it", "/allow -- send it"] {
            assert_eq!(typed(text), Err(DeclarationError::Empty), "{text:?}");
        }
        assert!(DeclarationError::Empty.to_string().contains("/allow send write"));
    }

    #[test]
    fn classes_with_a_plus_add_and_no_declaration_has_both_forms() {
        assert_eq!(typed("/allow +send -- mail it"), Ok(Some(("+send".into(), "mail it"))));
        assert_eq!(typed("/allow +write +send\nmail it"), Ok(Some(("+write send".into(), "mail it"))));
        for text in ["/allow read +send", "/allow +send read -- x", "/allow +read send\nx"] {
            assert_eq!(typed(text), Err(DeclarationError::Mixed), "{text:?}");
        }
        for word in ["+", "+mail", "++send", "+ask", "+Send"] {
            assert_eq!(typed(&format!("/allow {word}")), Err(DeclarationError::Unknown(word.into())));
        }
        let message = DeclarationError::Mixed.to_string();
        assert!(message.contains("`/allow read send`") && message.contains("`/allow +read +send`"), "{message}");
        assert_eq!(Declaration::read([]), Err(DeclarationError::Empty));
        let beside = Declaration { classes: Classes::new(&[Class::Send]), adds: true };
        assert_eq!(Declaration::read(["+send"]), Ok(beside));
    }

    #[test]
    fn declaration_elsewhere_declares_nothing() {
        for text in [
            "please /allow send",
            "hi\n/allow send",
            "> /allow send",
            "/allowed send",
            "\"/allow send\"",
            "/Allow send",
            "\u{200b}/allow send",
        ] {
            assert_eq!(typed(text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn only_the_first_typed_span_declares() {
        let quoted = Span { text: "/allow send", typed: false };
        let plain = Span { text: "hello", typed: true };
        let declaration = Span { text: "/allow read\nx", typed: true };
        assert_eq!(declared(&[quoted]), Ok(None));
        assert_eq!(declared(&[plain, declaration, quoted]), Ok(None));
        assert_eq!(declared(&[]), Ok(None));
        let found = declared(&[quoted, declaration]).expect("no error").expect("a declaration");
        assert_eq!((found.span, found.rest, &declaration.text[found.words[0].1.clone()]), (1, "x", "read"));
    }
}
