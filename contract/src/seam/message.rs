//! The statuses of a message, and the authors of its parts.
//!
//! Never decides about permissions. See [`crate::seam::seal`].

use crate::ids::{AgentId, PersonId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! word {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// All words, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns its text in rows and frames.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = $crate::seam::message::UnknownWord;
            fn from_str(text: &str) -> Result<Self, $crate::seam::message::UnknownWord> {
                match text { $($text => Ok(Self::$variant),)+ _ => Err($crate::seam::message::UnknownWord { what: stringify!($name) }) }
            }
        }
    };
}
pub(crate) use word;

/// A word that is not in the closed list. It is refused and never mapped to a similar one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what}")]
pub struct UnknownWord {
    /// The list that lacks it.
    pub what: &'static str,
}

word!(/// The status of a message.
Status {
    /// Recorded, not yet in a turn.
    Queued = "queued",
    /// Waiting for its time.
    Scheduled = "scheduled",
    /// In an open turn.
    Processing = "processing",
    /// Its turn is closed.
    Completed = "completed",
    /// Its answer has a receipt.
    Delivered = "delivered",
});

/// The author of a part of a message. Only text that a person typed can be a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Author {
    /// Typed by this person.
    Person {
        /// The person.
        person: PersonId,
    },
    /// Quoted or forwarded by the sender: another author's words.
    Quoted,
    /// The content of a file that was sent with the message.
    File {
        /// Its name as the sender gave it.
        name: String,
    },
    /// Written by a model.
    Model,
    /// Sent by another agent.
    Agent {
        /// The agent.
        agent: AgentId,
    },
    /// Returned by a tool.
    Tool {
        /// Its name.
        tool: String,
    },
    /// Written by the host.
    Host,
}

/// A part of a message by one author. The parts follow each other and cover the whole text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Its author.
    pub author: Author,
    /// Its length in bytes of the UTF-8 text.
    pub bytes: usize,
}

/// Returns whether the spans cover exactly this text, on character boundaries.
pub fn spans_cover(spans: &[Span], text: &str) -> bool {
    let mut end = 0usize;
    for span in spans {
        end = match end.checked_add(span.bytes) {
            Some(end) if text.is_char_boundary(end) => end,
            _ => return false,
        };
    }
    end == text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_cut_a_character_or_leave_a_rest_do_not_cover() {
        let span = |bytes| Span { author: Author::Quoted, bytes };
        assert!(spans_cover(&[span(2), span(1)], "éa"));
        assert!(!spans_cover(&[span(1), span(2)], "éa"));
        assert!(!spans_cover(&[span(2)], "éa"));
        assert!(!spans_cover(&[span(usize::MAX), span(4)], "éa"));
        assert!(spans_cover(&[], ""));
    }

    #[test]
    fn an_unknown_word_is_refused() {
        assert_eq!("queued".parse(), Ok(Status::Queued));
        assert!("Queued".parse::<Status>().is_err());
        assert!("done".parse::<Status>().is_err());
    }
}
