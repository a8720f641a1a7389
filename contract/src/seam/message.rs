//! The words that rows share: kinds, statuses, and who wrote which part of a message.
//!
//! Never says what any of it may do. Next: `seal`.

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
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As it is written in rows and frames.
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

/// A word that is not in the closed list; it is refused, never mapped to a near one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what}")]
pub struct UnknownWord {
    /// The list it should have stood in.
    pub what: &'static str,
}

word!(/// What sort of row this is.
Kind {
    /// Words to or from somebody.
    Chat = "chat",
    /// A schedule came due.
    Task = "task",
    /// Something that came over a webhook.
    Webhook = "webhook",
    /// From the host itself; outbound, an action.
    System = "system",
});

word!(/// Where a message stands.
Status {
    /// Recorded, not yet in a turn.
    Queued = "queued",
    /// Waits for its time.
    Scheduled = "scheduled",
    /// In an open turn.
    Processing = "processing",
    /// Its turn is closed.
    Completed = "completed",
    /// The answer's receipt is there.
    Delivered = "delivered",
});

/// Who wrote a part of a message. Only what a person typed can ask for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Author {
    /// Typed by this person.
    Person {
        /// Who.
        person: PersonId,
    },
    /// Quoted or forwarded by the sender; somebody else's words.
    Quoted,
    /// The contents of a file that went with the message.
    File {
        /// Its name as given.
        name: String,
    },
    /// Written by a model.
    Model,
    /// Sent by another agent.
    Agent {
        /// Which.
        agent: AgentId,
    },
    /// Out of a tool.
    Tool {
        /// Its name.
        tool: String,
    },
    /// Written by the host.
    Host,
}

/// A stretch of a message by one author. The stretches follow each other and cover the whole text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Who wrote it.
    pub author: Author,
    /// Its length in bytes of the UTF-8 text.
    pub bytes: usize,
}

/// Whether the spans cover exactly this text, on character boundaries.
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
        assert_eq!("chat".parse(), Ok(Kind::Chat));
        assert!("Chat".parse::<Kind>().is_err());
        assert!("done".parse::<Status>().is_err());
    }
}
