//! The conversion of JSON into a type that takes no list in the place of an object.
//!
//! `serde` reads the fields of a struct also from a list, in their order; such a text has a name for none of its values. See [`super`].

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::{Error, Value};

/// Reads a value into `T`.
///
/// # Errors
/// The first part with another shape, also a list in the place of an object.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(Named(value))
}

/// A value whose structs are objects.
struct Named(Value);

impl<'de> IntoDeserializer<'de, Error> for Named {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Named {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(values) => {
                let mut list = SeqDeserializer::new(values.into_iter().map(Named));
                let read = visitor.visit_seq(&mut list)?;
                list.end().map(|()| read)
            }
            Value::Object(fields) => {
                let mut object = MapDeserializer::new(fields.into_iter().map(|(name, value)| (name, Named(value))));
                let read = visitor.visit_map(&mut object)?;
                object.end().map(|()| read)
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(fields) if fields.len() != 1 => {
                Err(Error::invalid_value(Unexpected::Map, &"an object with one field"))
            }
            Value::Object(fields) => {
                let object = MapDeserializer::new(fields.into_iter().map(|(name, value)| (name, Named(value))));
                visitor.visit_enum(MapAccessDeserializer::new(object))
            }
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        a: u8,
        #[serde(default)]
        b: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Plain,
        Held(Inner),
        Named { inner: Inner },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        inner: Inner,
        #[serde(default)]
        all: Vec<Inner>,
        #[serde(default)]
        by_name: BTreeMap<String, Inner>,
        #[serde(default)]
        maybe: Option<Inner>,
        #[serde(default)]
        kind: Option<Kind>,
        #[serde(default)]
        pair: Option<(u8, f64)>,
        #[serde(default)]
        any: Value,
    }

    #[test]
    fn list_in_the_place_of_an_object_is_refused_at_any_depth() {
        for value in [
            json!([{ "a": 1 }]),
            json!({ "inner": [1] }),
            json!({ "inner": { "a": 1 }, "all": [[1, "x"]] }),
            json!({ "inner": { "a": 1 }, "by_name": { "x": [1] } }),
            json!({ "inner": { "a": 1 }, "maybe": [1] }),
            json!({ "inner": { "a": 1 }, "kind": { "held": [1] } }),
            json!({ "inner": { "a": 1 }, "kind": { "named": { "inner": [1] } } }),
            json!({ "inner": { "a": 1 }, "by_name": [] }),
            json!({ "inner": { "a": 1 }, "pair": [1, 2, 3] }),
            json!({ "inner": { "a": 1 }, "kind": { "plain": null, "held": { "a": 1 } } }),
            json!({ "inner": { "a": 300 } }),
            json!({ "inner": { "a": 1, "c": 1 } }),
            json!({ "inner": "x" }),
            json!(null),
        ] {
            assert!(from_value::<Outer>(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn other_values_are_read_as_they_are() {
        let value = json!({
            "inner": { "a": 1, "b": "x" }, "all": [{ "a": 2 }], "by_name": { "x": { "a": 3 } }, "maybe": null,
            "kind": { "held": { "a": 4 } }, "pair": [1, 2], "any": [{ "x": [1] }, null, 1.5, "text"],
        });
        let plain: Outer = serde_json::from_value(value.clone()).expect("of the type");
        assert_eq!(from_value::<Outer>(value).expect("of the type"), plain);
        let kind = |value: Value| from_value::<Kind>(value).ok();
        assert_eq!(kind(json!("plain")), Some(Kind::Plain));
        assert_eq!(kind(json!("other")), None);
        assert_eq!(from_value::<Value>(json!([1, { "a": [] }])).expect("JSON"), json!([1, { "a": [] }]));
    }
}
