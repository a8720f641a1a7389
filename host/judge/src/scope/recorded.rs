//! The scope of a message in the record: its origin, its classes, and whether values in its text count as typed.
//!
//! Never decides which classes a principal may ask for. See [`crate::principal::Allowed::asked`].

use super::declared::{Declaration, Declared};
use super::{Source, added_scope, lexicon_scope};
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
    /// Returns the scope of a message by its declaration, by that of a client beside the text, or by its words.
    ///
    /// A channel that cannot tell typed from quoted text gives reading alone, because the words and a declaration in the text may be
    /// those of others. What a client adds beside such a text is added to reading.
    pub fn new(
        spans: &[Span<'_>],
        beside: Option<Declaration>,
        declared: Option<&Declared<'_>>,
        telling: Telling,
    ) -> Self {
        let reading = Classes::new(&[Class::Read]);
        let of_words = || lexicon_scope(spans, super::Lexicon::embedded());
        let source = |declaration: Declaration| if declaration.adds { Source::Added } else { Source::Declared };
        let (source, classes) = match (beside, declared, telling) {
            (Some(beside), _, telling) => {
                let added = match (beside.adds, telling) {
                    (false, _) => Classes::NONE,
                    (true, Telling::Nothing) => reading,
                    (true, Telling::Typed) => of_words().classes,
                };
                (source(beside), beside.classes.or(added))
            }
            (None, Some(declared), Telling::Typed) if declared.declaration.adds => {
                (Source::Added, added_scope(spans, declared).classes)
            }
            (None, Some(declared), Telling::Typed) => (Source::Declared, declared.declaration.classes),
            (None, Some(declared), Telling::Nothing) => (source(declared.declaration), reading),
            (None, None, Telling::Nothing) => (Source::Default, reading),
            (None, None, Telling::Typed) => {
                let found = of_words();
                (found.source, found.classes)
            }
        };
        Self { source, classes, telling }
    }

    /// Returns the scope of a message that continues the task of a turn with these classes. An answer to a question keeps the bounds that
    /// a person declared for that turn; a follow-up binds contained calls no more.
    pub const fn continuing(classes: Classes, binds_contained: bool) -> Self {
        let source = if binds_contained { Source::Declared } else { Source::Carried };
        Self { source, classes, telling: Telling::Typed }
    }

    /// Returns whether the scope is that of a person for every tool, also for those that act in the jail alone.
    pub fn binds_contained(&self) -> bool {
        self.source == Source::Declared
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
        let source = source.parse().map_err(|_| unknown())?;
        Ok(Self { source, classes: words.parse().map_err(|_| unknown())?, telling })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::declared::declared;

    fn recorded(text: &str, beside: Option<Declaration>, telling: Telling) -> String {
        let spans = [Span { text, typed: true }];
        let declared = declared(&spans).expect("a declaration or none");
        Recorded::new(&spans, beside, declared.as_ref(), telling).to_string()
    }

    #[test]
    fn channel_that_tells_nothing_gives_reading_alone() {
        let send = Some(Declaration { classes: Classes::new(&[Class::Send]), adds: false });
        let adds = send.map(|send| Declaration { adds: true, ..send });
        for (text, beside, untold, told) in [
            ("send it to Ana", None, "untyped-default:read", "lexicon:send"),
            ("hello", None, "untyped-default:read", "default:"),
            ("/allow send exec\nhello", None, "untyped-declared:read", "declared:send exec"),
            ("hello", send, "untyped-declared:send", "declared:send"),
            ("/allow +exec\nhello", None, "untyped-added:read", "added:exec"),
            ("/allow +exec -- send it to Ana", None, "untyped-added:read", "added:send exec"),
            ("/allow +send\nhello", None, "untyped-added:read", "added:send"),
            ("hello", adds, "untyped-added:read send", "added:send"),
            ("save it in a file", adds, "untyped-added:read send", "added:write send"),
        ] {
            assert_eq!(recorded(text, beside, Telling::Nothing), untold, "{text}");
            assert_eq!(recorded(text, beside, Telling::Typed), told, "{text}");
        }
    }

    #[test]
    fn declaration_alone_binds_contained_calls() {
        let binds = |text: &str| text.parse::<Recorded>().expect(text).binds_contained();
        assert!(binds("declared:read") && binds("untyped-declared:read"));
        for text in ["added:send", "carried:read", "lexicon:send", "default:", "untyped-default:read"] {
            assert!(!binds(text), "{text}");
        }
        let read = Classes::new(&[Class::Read]);
        assert_eq!(Recorded::continuing(read, false).to_string(), "carried:read");
        assert_eq!(Recorded::continuing(read, true).to_string(), "declared:read");
    }

    #[test]
    fn word_of_another_version_is_no_scope() {
        for text in ["", "read write", "declared", "other:send", "untyped:read", "declared:all", "untyped-"] {
            assert!(text.parse::<Recorded>().is_err(), "{text}");
        }
        let known = [
            "declared:read send",
            "default:",
            "added:send",
            "carried:read",
            "untyped-default:read",
            "untyped-added:send",
        ];
        for text in known {
            assert_eq!(text.parse::<Recorded>().expect(text).to_string(), text);
        }
    }
}
