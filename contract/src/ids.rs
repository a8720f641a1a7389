//! Typed ids: a prefix for the kind of object, and a ULID in lower case.
//!
//! Never a counter: an id from before a restart cannot equal one from after it. Never parsed loosely: each id has one
//! spelling. See [`crate::seam`].

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use ulid::Ulid;

const ULID_CHARACTERS: usize = 26;

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {article} id: expected `{prefix}_` and 26 characters of 0-9 a-z")]
pub struct ParseError {
    article: &'static str,
    prefix: &'static str,
}

fn parse(text: &str, article: &'static str, prefix: &'static str) -> Result<Ulid, ParseError> {
    let error = ParseError { article, prefix };
    let rest = text.strip_prefix(prefix).and_then(|t| t.strip_prefix('_'));
    let Some(rest) = rest else { return Err(error) };
    let canonical = rest.len() == ULID_CHARACTERS && rest.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
    if !canonical {
        return Err(error);
    }
    let (mut upper, mut again) = ([0; ULID_CHARACTERS], [0; ULID_CHARACTERS]);
    upper.copy_from_slice(rest.as_bytes());
    upper.make_ascii_uppercase();
    match std::str::from_utf8(&upper).map(Ulid::from_string) {
        // Crockford's alphabet reads `i l o` as digits; only the spelling that we print is an id.
        Ok(Ok(ulid)) if ulid.array_to_str(&mut again).as_bytes() == upper => Ok(ulid),
        _ => Err(error),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $article:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// The prefix of such an id, without the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Makes a new id, different from every other.
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(Ulid::generate())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; ULID_CHARACTERS];
                let text = self.0.array_to_str(&mut text);
                text.make_ascii_lowercase();
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(text)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;
            fn from_str(text: &str) -> Result<Self, ParseError> {
                parse(text, $article, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(/// A session: the conversation of one agent with one origin.
    SessionId, "ses", "a session");
id!(/// One agent.
    AgentId, "agt", "an agent");
id!(/// One message toward the agent, or one row that a sandbox wrote.
    MessageId, "msg", "a message");
id!(/// One tool call that the host recorded.
    CallId, "call", "a call");
id!(/// One capability change.
    ChangeId, "chg", "a change");
id!(/// One approval request: a call that waits for a person.
    RequestId, "req", "an approval request");
id!(/// One approval.
    ApprovalId, "apr", "an approval");
id!(/// One person.
    PersonId, "per", "a person");
id!(/// One turn.
    TurnId, "trn", "a turn");
id!(/// One sealed item: a message, a model output, a result, a summary or a notice.
    ItemId, "itm", "an item");
id!(/// One note of an agent's memory.
    MemoryId, "mem", "a note");
id!(/// One start of the daemon.
    BootId, "boot", "a boot");
id!(/// One schedule of an agent.
    ScheduleId, "sch", "a schedule");
id!(/// One delivery of a reply or a notice.
    DeliveryId, "dlv", "a delivery");

impl MessageId {
    /// Returns the sealed item that holds this message: the same ULID with the prefix of items.
    pub fn item(self) -> ItemId {
        ItemId(self.0)
    }
}

impl RequestId {
    /// Returns the name under which the arguments of this request are encrypted: the same ULID with the prefix of items.
    pub fn item(self) -> ItemId {
        ItemId(self.0)
    }
}

impl ItemId {
    /// Returns the message that this item holds, if it holds one: the same ULID with the prefix of messages.
    pub fn message(self) -> MessageId {
        MessageId(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_spelling_of_an_id_is_refused() {
        let id = SessionId::new();
        let text = id.to_string();
        assert_eq!(text.parse::<SessionId>(), Ok(id));
        assert!(text.to_ascii_uppercase().parse::<SessionId>().is_err());
        assert!(text.replace("ses_", "agt_").parse::<SessionId>().is_err());
        assert!(text[..text.len() - 1].parse::<SessionId>().is_err());
        assert!(format!("{text}0").parse::<SessionId>().is_err());
        assert!("ses_../../../../etc/passwd00000".parse::<SessionId>().is_err());
        assert!("ses_8zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<SessionId>().is_err(), "overflows 128 bits");
        assert!("ses_0000000000000000000000000l".parse::<SessionId>().is_err(), "l reads as 1");
    }

    #[test]
    fn a_message_and_its_item_share_a_ulid() {
        let id = MessageId::new();
        assert_eq!(id.item().message(), id);
        assert_eq!(id.to_string()[4..], id.item().to_string()[4..]);
    }
}
