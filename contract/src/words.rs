//! Closed lists of words, each declared once.
//!
//! A list is an enum. [`crate::words!`] makes its names, its order, and the conversions to and from text and JSON; `stored_as_text!` adds
//! those of SQL. A word that is not in the list is an error, and never mapped to a similar one.

#[doc(hidden)]
pub use serde;

use serde::Deserializer;
use serde::de::Visitor;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// Characters of an unknown word in an error.
const SHOWN_MAX: usize = 32;

/// Returns the sentence about a word that a list does not have.
#[must_use]
pub fn unknown(list: &str, word: &str, words: &[&str]) -> String {
    let shown: String = word.chars().take(SHOWN_MAX).collect();
    let expected = match words {
        [words @ .., last] if !words.is_empty() => format!("{} or {last}", words.join(", ")),
        words => words.join(""),
    };
    format!("unknown {} {shown:?}: expected {expected}", list.to_lowercase())
}

/// Reads a word of a list. The error is of the word itself, so that a format with places names its line.
#[doc(hidden)]
pub fn read<'de, W: FromStr, D: Deserializer<'de>>(
    deserializer: D,
    words: &'static [&'static str],
) -> Result<W, D::Error> {
    struct Reader<W>(&'static [&'static str], PhantomData<W>);

    impl<W: FromStr> Visitor<'_> for Reader<W> {
        type Value = W;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<W, E> {
            text.parse().map_err(|_| E::unknown_variant(text, self.0))
        }
    }

    deserializer.deserialize_str(Reader(words, PhantomData))
}

/// Declares closed lists: for each an enum with `ALL` in its order, `name`, `Display`, `FromStr` and the conversions of serde.
///
/// ```
/// ironclaw_contract::words! {
///     /// The role of a person.
///     pub enum Role {
///         /// Manages people.
///         Owner = "owner",
///         /// Talks to agents.
///         Member = "member",
///     }
/// }
///
/// assert_eq!(Role::Owner.to_string(), "owner");
/// assert_eq!("member".parse(), Ok(Role::Member));
/// assert_eq!("x".parse::<Role>().unwrap_err(), "unknown role \"x\": expected owner or member");
/// ```
#[macro_export]
macro_rules! words {
    ($($(#[$doc:meta])* $vis:vis enum $list:ident { $($(#[$of:meta])* $word:ident = $name:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[allow(missing_docs, reason = "a word may say it all")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $list {
            $($(#[$of])* $word,)+
        }

        #[allow(dead_code, reason = "a list has every conversion")]
        impl $list {
            /// All words, in the order of the list.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$word),+];

            /// Returns its word.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $name,)+
                }
            }
        }

        impl ::std::fmt::Display for $list {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl ::std::str::FromStr for $list {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$word),)+
                    _ => Err($crate::words::unknown(stringify!($list), text, &[$($name),+])),
                }
            }
        }

        impl $crate::words::serde::Serialize for $list {
            fn serialize<S: $crate::words::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> $crate::words::serde::Deserialize<'de> for $list {
            fn deserialize<D: $crate::words::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::words::read(deserializer, &[$($name),+])
            }
        }
    )+};
}
