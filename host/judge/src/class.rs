//! Sets of classes of effects of tool calls.
//!
//! A class says what a call can do, and never whether it may.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

pub use ironclaw_operator::Class;

const fn bit(class: Class) -> u8 {
    1 << class as u8
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
            bits |= bit(classes[n]);
            n += 1;
        }
        Self(bits)
    }

    /// Returns whether the set has this class.
    pub const fn has(self, class: Class) -> bool {
        self.0 & bit(class) != 0
    }

    /// Returns the set with this class.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | bit(class))
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
    type Err = String;

    /// Reads words that white space separates.
    fn from_str(text: &str) -> Result<Self, String> {
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
