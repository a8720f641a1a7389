//! The classes of effects of tool calls, and sets of them.
//!
//! A class says what a call can do, and never whether it may.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The kind of effect of a call; the words of a turn's scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Read,
    /// Changes data of the agent itself, now or later.
    Write,
    /// Sends data to a recipient.
    Send,
    /// Runs a program that others choose.
    Exec,
    /// Spends or promises money or goods.
    Trade,
    /// Asks a person; without an answer it has no effect.
    Ask,
}

impl Class {
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Send, Self::Exec, Self::Trade, Self::Ask];

    /// Returns its word in configuration and ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Send => "send",
            Self::Exec => "exec",
            Self::Trade => "trade",
            Self::Ask => "ask",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no class. It is refused, never mapped to a similar one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown class of tools {0:?}: it is one of read, write, send, exec, trade, ask")]
pub struct UnknownClass(pub String);

impl FromStr for Class {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        Self::ALL.into_iter().find(|class| class.name() == text).ok_or_else(|| UnknownClass(text.to_owned()))
    }
}

/// A set of classes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Classes(u8);

impl Classes {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns the set of these classes.
    pub const fn new(classes: &[Class]) -> Self {
        let (mut bits, mut n) = (0, 0);
        while n < classes.len() {
            bits |= classes[n].bit();
            n += 1;
        }
        Self(bits)
    }

    /// Returns whether the set has this class.
    pub const fn has(self, class: Class) -> bool {
        self.0 & class.bit() != 0
    }

    /// Returns the set with this class.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | class.bit())
    }

    /// Returns the classes that both sets have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the classes that any of the two sets has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the classes, in the order of [`Class::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |class| self.has(*class))
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        classes.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(Class::name).collect();
        f.write_str(&words.join(" "))
    }
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromStr for Classes {
    type Err = UnknownClass;

    /// Reads words that white space separates.
    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        text.split_whitespace().map(str::parse).collect()
    }
}

impl Serialize for Classes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Classes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Class>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_that_is_no_class_is_refused() {
        for word in ["Read", "delete", "readwrite", "re\u{430}d"] {
            assert!(word.parse::<Class>().is_err(), "{word}");
            assert!(format!("read {word}").parse::<Classes>().is_err(), "{word}");
        }
    }

    #[test]
    fn set_keeps_each_class_once_and_in_order() {
        let set: Classes = "send read send".parse().expect("classes");
        assert_eq!(set, Classes::new(&[Class::Read, Class::Send]));
        assert_eq!(set.to_string(), "read send");
        assert!(set.has(Class::Send) && !set.has(Class::Trade));
        assert_eq!(set.and(Classes::new(&[Class::Send, Class::Exec])), Classes::new(&[Class::Send]));
        assert!(Classes::NONE.is_empty() && "".parse() == Ok(Classes::NONE));
    }
}
