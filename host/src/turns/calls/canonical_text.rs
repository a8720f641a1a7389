//! The canonical text of the arguments of a call, and the digest of a call.
//!
//! Always the bytes of [`canonical::to_vec`]: that function is the definition, and a test compares both. Most arguments need none of
//! its rules on numbers and the order of keys, and those are written at once.

use ironclaw_contract::canonical::{self, Digest, INTEGER_MAX};
use serde_json::{Map, Value};

/// Returns the digest of a call's tool and arguments.
pub fn digest(tool: &str, arguments: &str) -> Digest {
    // The text of strings is the same in compact and in canonical JSON.
    Digest::of(&serde_json::to_vec(&[canonical::RECIPE, tool, arguments]).expect("strings are JSON"))
}

pub(super) fn text(arguments: &Map<String, Value>) -> String {
    if is_plain_object(arguments) {
        serde_json::to_string(arguments).expect("keys are strings")
    } else {
        canonical::to_string(arguments)
    }
}

/// Returns whether the compact text of an object is also the canonical one. The map has its keys in order, unless a crate of the program
/// asks `serde_json` for another order.
fn is_plain_object(fields: &Map<String, Value>) -> bool {
    fields.keys().is_sorted() && fields.iter().all(|(key, value)| is_plain_entry(key, value))
}

/// Returns whether the compact text of an entry is also the canonical one.
fn is_plain_entry(key: &str, value: &Value) -> bool {
    // Keys sort by UTF-16 code units, which is the order of their bytes below the surrogates.
    key.chars().all(|character| character <= '\u{d7ff}') && is_plain(value)
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= INTEGER_MAX),
        Value::Array(values) => values.iter().all(is_plain),
        Value::Object(fields) => is_plain_object(fields),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    /// Texts with characters that JSON escapes, and with keys whose order differs between UTF-8 and UTF-16.
    fn word() -> impl Strategy<Value = String> {
        let special = "\"\\/\u{7f}\u{2028}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}é".chars().collect::<Vec<_>>();
        let one = prop_oneof![prop::char::range('\0', '\u{20}'), prop::sample::select(special), any::<char>()];
        vec(one, 0..6).prop_map(|characters| characters.into_iter().collect())
    }

    fn value() -> impl Strategy<Value = Value> {
        let limit = INTEGER_MAX as i64;
        let integer = prop_oneof![Just(0), Just(limit), Just(limit + 2), Just(-limit), Just(-limit - 2), any::<i64>()];
        let float = prop_oneof![Just(-0.0), Just(1.0), Just(1e21), Just(1e-7), -1e9..1e9];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            integer.prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            float.prop_map(Value::from),
            word().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let fields = btree_map(word(), inner.clone(), 0..4);
            prop_oneof![
                vec(inner, 0..4).prop_map(Value::from),
                fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn text_and_digest_are_those_of_the_contract(fields in btree_map(word(), value(), 0..5), tool in word()) {
            let arguments: Map<String, Value> = fields.into_iter().collect();
            let canonical = canonical::to_string(&arguments);
            prop_assert_eq!(text(&arguments), canonical.clone());
            let hashed = Digest::of(&canonical::to_vec(&[canonical::RECIPE, &tool, &canonical]));
            prop_assert_eq!(digest(&tool, &canonical), hashed);
        }
    }
}
