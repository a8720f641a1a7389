//! The scope of a message in the record: its origin, its classes, and whether values in its text count as typed.
//!
//! Never decides which classes a principal may ask for. See [`crate::principal::Allowed::asked`].

use super::{Source, declared_scope, lexicon_scope};
use crate::class::{Class, Classes};
use crate::provenance::spans::{Span, Telling};
use std::fmt;
use std::str::FromStr;

/// The prefix of a scope with a text that does not count as typed.
const UNTYPED: &str = "untyped-";

/// The scope of a message, in the record `declared:read send` or `untyped-default:read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The origin of the classes.
    pub source: Source,
    pub classes: Classes,
    /// What the channel said of the text.
    pub telling: Telling,
}

impl Recorded {
    /// Returns the scope of a message by its declaration, by the classes that a client declared beside the text, or by its words.
    ///
    /// A channel that cannot tell typed from quoted text gives reading alone, because the words and a declaration in the text may be
    /// those of others.
    pub fn new(
        spans: &[Span<'_>],
        beside: Option<Classes>,
        declared: Option<&super::declared::Declared<'_>>,
        telling: Telling,
    ) -> Self {
        let reading = Classes::new(&[Class::Read]);
        let (source, classes) = match (beside, declared, telling) {
            (Some(classes), _, _) => (Source::Declared, classes),
            (None, Some(declared), Telling::Typed) => (Source::Declared, declared_scope(declared).classes),
            (None, Some(_), Telling::Nothing) => (Source::Declared, reading),
            (None, None, Telling::Nothing) => (Source::Default, reading),
            (None, None, Telling::Typed) => {
                let found = lexicon_scope(spans, super::Lexicon::embedded());
                (found.source, found.classes)
            }
        };
        Self { source, classes, telling }
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let untyped = if self.telling == Telling::Nothing { UNTYPED } else { "" };
        write!(f, "{untyped}{}:{}", self.source.name(), self.classes)
    }
}

/// A text that is no scope of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scope of a message")]
pub struct UnknownScope(pub String);

impl FromStr for Recorded {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let unknown = || UnknownScope(text.to_owned());
        let (telling, rest) = match text.strip_prefix(UNTYPED) {
            Some(rest) => (Telling::Nothing, rest),
            None => (Telling::Typed, text),
        };
        let (source, words) = rest.split_once(':').ok_or_else(unknown)?;
        let sources = [Source::Declared, Source::Lexicon, Source::Default];
        let source = sources.into_iter().find(|known| known.name() == source).ok_or_else(unknown)?;
        Ok(Self { source, classes: words.parse().map_err(|_| unknown())?, telling })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::declared::declared;

    fn recorded(text: &str, beside: Option<Classes>, telling: Telling) -> String {
        let spans = [Span { text, typed: true }];
        let declared = declared(&spans).expect("a declaration or none");
        Recorded::new(&spans, beside, declared.as_ref(), telling).to_string()
    }

    #[test]
    fn channel_that_tells_nothing_gives_reading_alone() {
        let send = Some(Classes::new(&[Class::Send]));
        for (text, beside, untold, told) in [
            ("send it to Ana", None, "untyped-default:read", "lexicon:send"),
            ("hello", None, "untyped-default:read", "default:"),
            ("/allow send exec\nhello", None, "untyped-declared:read", "declared:send exec"),
            ("hello", send, "untyped-declared:send", "declared:send"),
        ] {
            assert_eq!(recorded(text, beside, Telling::Nothing), untold, "{text}");
            assert_eq!(recorded(text, beside, Telling::Typed), told, "{text}");
        }
    }

    #[test]
    fn word_of_another_version_is_no_scope() {
        for text in ["", "read write", "declared", "other:send", "untyped:read", "declared:all", "untyped-"] {
            assert!(text.parse::<Recorded>().is_err(), "{text}");
        }
        for text in ["declared:read send", "default:", "untyped-default:read", "untyped-declared:send"] {
            assert_eq!(text.parse::<Recorded>().expect(text).to_string(), text);
        }
    }
}
