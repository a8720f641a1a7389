//! The JSON parser for answers of model servers, with a bound on the number of values.
//!
//! A bound on the bytes is not enough: a small object takes a hundred times the memory of its text. See
//! [`crate::remote`].

use super::fault::Fault;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// Values in one answer or event; an output with all its calls has some hundreds.
pub const ANSWER_VALUES_MAX: usize = 8192;

/// Values in a listing of models.
pub const LISTING_VALUES_MAX: usize = 65_536;

/// Longest text that is parsed on the async threads; a longer one is parsed in a blocking thread.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// The fault of a refused text, with a detail.
pub type Refused = (Fault, String);

/// Parses a text; a long one in a blocking thread.
///
/// # Errors
/// [`Fault::TooLarge`] for more values than `values_max`, [`Fault::Malformed`] for a text that is not JSON.
pub async fn read_long(text: Vec<u8>, values_max: usize) -> Result<Value, Refused> {
    if text.len() <= INLINE_BYTES_MAX {
        return read(&text, values_max);
    }
    let reading = tokio::task::spawn_blocking(move || read(&text, values_max));
    reading.await.unwrap_or_else(|_| Err((Fault::Malformed, "reading the answer failed".to_owned())))
}

/// Parses a text.
///
/// # Errors
/// As [`read_long`].
pub fn read(text: &[u8], values_max: usize) -> Result<Value, Refused> {
    let left = Cell::new(Some(values_max));
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = Bounded { left: &left }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| match left.get() {
        None => (Fault::TooLarge, format!("the answer has more than {values_max} values")),
        Some(_) => (Fault::Malformed, format!("the answer is not JSON (column {})", error.column())),
    })
}

/// Countdown of the values that are left; `None` after one too many.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    left: &'a Cell<Option<usize>>,
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
            values.insert(key, object.next_value_seed(self)?);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answer_of_a_million_values_is_not_read_to_its_end() {
        let answer = format!("{{\"choices\":[{}{{}}]}}", "{\"a\":0},".repeat(1 << 20));
        let (fault, words) = read(answer.as_bytes(), ANSWER_VALUES_MAX).expect_err("refused");
        assert_eq!(fault, Fault::TooLarge, "{words}");
        assert_eq!(read(b"[0,1]", 3), Ok(json!([0, 1])));
        assert_eq!(read(b"[0,1,2]", 3).map_err(|(fault, _)| fault), Err(Fault::TooLarge));
    }

    #[test]
    fn answer_is_read_as_loosely_as_servers_write_it() {
        let text = r#"{"a":1,"a":[1.5,-2,18446744073709551615,null,true,"\u00e9"]}"#;
        assert_eq!(read(text.as_bytes(), 100), Ok(json!({ "a": [1.5, -2, u64::MAX, null, true, "é"] })));
        for bad in ["", "{", "{} {}", "<html>"] {
            assert_eq!(read(bad.as_bytes(), 100).map_err(|(fault, _)| fault), Err(Fault::Malformed), "{bad}");
        }
    }
}
