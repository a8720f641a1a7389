//! The reader of JSON from other parties, with a bound on the number of values.
//!
//! A bound on the bytes is not enough: a small object takes a hundred times the memory of its text. The reader is as loose as servers
//! write; the strict one is `ironclaw_contract::canonical`.

mod objects;
pub mod pieces;

pub use objects::from_value;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// The reason that a text was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// More values than the bound.
    TooMany { values_max: usize },
    /// Not JSON, or nested more than about a hundred times.
    Malformed { column: usize },
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { values_max } => write!(f, "it has more than {values_max} values"),
            Self::Malformed { column } => write!(f, "it is not JSON, or nested too deeply (column {column})"),
        }
    }
}

/// Reads a text.
///
/// # Errors
/// [`Unread`], before the tree is larger than the bound.
pub fn read(text: &[u8], values_max: usize) -> Result<Value, Unread> {
    read_noting_doubled_keys(text, values_max).map(|(value, _)| value)
}

/// Reads a text. Also returns whether a key came twice in one object; the last one is kept.
///
/// # Errors
/// As [`read`].
pub fn read_noting_doubled_keys(text: &[u8], values_max: usize) -> Result<(Value, bool), Unread> {
    let (left, has_doubled) = (Cell::new(Some(values_max)), Cell::new(false));
    let mut reader = serde_json::Deserializer::from_slice(text);
    let bounded = Bounded { left: &left, has_doubled: &has_doubled };
    let read = bounded.deserialize(&mut reader).and_then(|value| reader.end().map(|()| (value, has_doubled.get())));
    read.map_err(|error| match left.get() {
        None => Unread::TooMany { values_max },
        Some(_) => Unread::Malformed { column: error.column() },
    })
}

/// Returns the number in a field of an object, also if the rest of the text cannot be read. It makes no tree.
pub fn number_in(text: &[u8], field: &str) -> Option<i64> {
    let found = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(text);
    // An error comes after the field, or there is none.
    let _ = Field { name: field, found: &found }.deserialize(&mut reader);
    found.get()
}

/// Countdown of the values that are left; `None` after one too many.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    left: &'a Cell<Option<usize>>,
    has_doubled: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(1)));
        match self.left.get() {
            Some(_) => deserializer.deserialize_any(self),
            None => Err(D::Error::custom("too many values")),
        }
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = array.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            if values.insert(key, object.next_value_seed(self)?).is_some() {
                self.has_doubled.set(true);
            }
        }
        Ok(Value::Object(values))
    }
}

/// The search for one field of an object.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'a str,
    found: &'a Cell<Option<i64>>,
}

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            if key == self.name {
                let left = Cell::new(Some(1));
                let value = object.next_value_seed(Bounded { left: &left, has_doubled: &Cell::new(false) })?;
                self.found.set(value.as_i64().or_else(|| value.as_str()?.parse().ok()));
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_of_a_million_values_is_not_read_to_its_end() {
        let text = format!("{{\"choices\":[{}{{}}]}}", "{\"a\":0},".repeat(1 << 20));
        assert_eq!(read(text.as_bytes(), 8192), Err(Unread::TooMany { values_max: 8192 }));
        assert_eq!(read(b"[0,1]", 3), Ok(json!([0, 1])));
        assert_eq!(read(b"[0,1,2]", 3), Err(Unread::TooMany { values_max: 3 }));
    }

    #[test]
    fn text_is_read_as_loosely_as_servers_write_it() {
        let text = r#"{"a":1,"a":[1.5,-2,18446744073709551615,null,true,"\u00e9"]}"#;
        assert_eq!(read(text.as_bytes(), 100), Ok(json!({ "a": [1.5, -2, u64::MAX, null, true, "é"] })));
        let deep = "[".repeat(100_000);
        for bad in ["", "{", "{} {}", "<html>", &deep, &(deep.clone() + &"]".repeat(100_000))] {
            assert!(matches!(read(bad.as_bytes(), 1 << 20), Err(Unread::Malformed { .. })), "{}", bad.len());
        }
    }

    #[test]
    fn number_is_found_in_a_text_that_cannot_be_read() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (text, found) in [
            (format!("{{\"id\":7,\"result\":{deep}}}"), Some(7)),
            (format!("{{\"result\":{deep},\"id\":7}}"), Some(7)),
            ("{\"id\":\"7\",\"result\":NaN}".to_owned(), Some(7)),
            ("{\"result\":{\"id\":8},\"id\":7,\"x\":\"\\ud800\"".to_owned(), Some(7)),
            ("{\"id\":-1".to_owned(), Some(-1)),
            ("{\"id\":[7]}".to_owned(), None),
            ("{\"id\":null}".to_owned(), None),
            ("{\"result\":NaN,\"id\":7}".to_owned(), None),
            ("[{\"id\":7}]".to_owned(), None),
            ("id 7".to_owned(), None),
        ] {
            assert_eq!(number_in(text.as_bytes(), "id"), found, "{}", &text[..text.len().min(60)]);
        }
    }
}
