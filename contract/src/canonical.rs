//! Canonical JSON (RFC 8785) with a strict reader in front, and the digest of bytes.
//!
//! Refuses a text that two readers may understand differently (duplicate keys, integers beyond 2^53 − 1, lone surrogates), and
//! never picks one of the meanings. It writes each output anew and never copies the input. See [`crate::ledger_entry`].

use serde::de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

/// The name of the recipe; part of every digest of an argument object, so that two sides cannot disagree on the rules.
pub const RECIPE: &str = "jcs-rfc8785/strict-1";

/// The largest integer that every JSON reader agrees on, 2^53 − 1 (RFC 7493).
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Bounds on the size and the depth of a text.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of the text.
    pub bytes_max: usize,
    /// Nested arrays and objects.
    pub depth_max: usize,
    /// Values of any kind, with the outermost: a small object takes a hundred times its text in memory.
    pub values_max: usize,
}

impl Limits {
    /// Returns limits with `bytes_max` bytes, the usual depth of 32, and as many values as such a text can hold.
    pub const fn bytes(bytes_max: usize) -> Self {
        Self { bytes_max, depth_max: 32, values_max: bytes_max }
    }

    /// Returns the same limits with at most `values_max` values.
    pub const fn values(self, values_max: usize) -> Self {
        Self { values_max, ..self }
    }
}

/// Characters of the error about a text: it names keys and fields, which may have any name.
pub const SAID_CHARACTERS_MAX: usize = 200;

/// The reason why a text is not strict JSON, or not of the expected shape.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Longer than the limit allows.
    #[error("JSON text of {bytes} bytes is over the limit of {bytes_max}")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Not JSON, or JSON that two readers may understand differently; the message names the key or number.
    #[error("refused JSON text: {0}")]
    Refused(String),
    /// Strict JSON of another shape than the caller expects.
    #[error("unexpected shape: {0}")]
    Shape(String),
}

/// Reads a JSON text strictly.
///
/// Refuses duplicate keys at any depth, numbers beyond ±(2^53 − 1) and non-finite ones, lone surrogates, trailing text, and
/// a text over one of the limits.
pub fn parse(text: &[u8], limits: Limits) -> Result<Value, Error> {
    if text.len() > limits.bytes_max {
        return Err(Error::TooLong { bytes: text.len(), bytes_max: limits.bytes_max });
    }
    let refused = |error| Error::Refused(said(&error));
    let mut reader = serde_json::Deserializer::from_slice(text);
    let left = Cell::new(limits.values_max);
    let value = Strict { depth: limits.depth_max, left: &left }.deserialize(&mut reader).map_err(refused)?;
    reader.end().map_err(refused)?;
    Ok(value)
}

/// Reads a JSON text strictly into `T`.
pub fn from_slice<T: DeserializeOwned>(text: &[u8], limits: Limits) -> Result<T, Error> {
    serde_json::from_value(parse(text, limits)?).map_err(|error| Error::Shape(said(&error)))
}

/// Returns the text of an error about a text or a shape, in at most [`SAID_CHARACTERS_MAX`] characters.
///
/// Leaves out a string of the wrong type: it may be long, or a secret in the wrong place.
pub fn said(error: &serde_json::Error) -> String {
    const BEGIN: &str = "string \"";
    let error = error.to_string();
    let without = match (error.find(BEGIN), error.rfind("\", expected ")) {
        (Some(begin), Some(end)) if begin + BEGIN.len() <= end => {
            format!("{}string{}", &error[..begin], &error[end + 1..])
        }
        _ => error,
    };
    shortened(without)
}

fn shortened(without: String) -> String {
    match without.char_indices().nth(SAID_CHARACTERS_MAX - 1) {
        Some((cut, last)) if cut + last.len_utf8() < without.len() => format!("{}…", &without[..cut]),
        _ => without,
    }
}

/// Returns the canonical bytes of a value (RFC 8785).
///
/// # Panics
/// Never for values from [`parse`] or of this crate's shapes: their keys are strings and their numbers finite.
pub fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("keys are strings and numbers finite in every shape we serialize")
}

/// Returns the canonical text of a value. See [`to_vec`].
pub fn to_string<T: Serialize>(value: &T) -> String {
    String::from_utf8(to_vec(value)).expect("JSON is UTF-8")
}

/// A SHA-256 digest; 64 lower-case hex characters as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Makes a digest from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns its text as ASCII bytes.
    pub fn hex(&self) -> [u8; 64] {
        // Computed and not looked up, so that the compiler converts many digits at once.
        let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = digit(byte >> 4);
            pair[1] = digit(byte & 15);
        }
        text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.hex()).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not 64 lower-case hex characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: expected 64 characters of 0-9 a-f")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        let text = text.as_bytes();
        if text.len() != 64 {
            return Err(DigestError);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, DigestError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(DigestError),
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A visitor that builds a value, and refuses input that two readers may understand differently.
#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: usize,
    /// The number of values that may still follow.
    left: &'a Cell<usize>,
}

impl Strict<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))?;
        Ok(Self { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        use serde::de::Error as _;
        let left = self.left.get().checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        self.left.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
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

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > INTEGER_MAX {
            return Err(E::custom(format_args!("number {value} is beyond 2^53 - 1")));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > INTEGER_MAX {
            return Err(E::custom(format_args!("number {value} is beyond -(2^53 - 1)")));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // A float this large is also an integer, and reads back as one.
        if value.abs() > INTEGER_MAX as f64 {
            return Err(E::custom(format_args!("number {value} is beyond 2^53 - 1")));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut values = Vec::new();
        while let Some(value) = array.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        use serde::de::Error as _;
        let inner = self.deeper()?;
        let mut values = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            if values.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
            }
            values.insert(key, object.next_value_seed(inner)?);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits::bytes(4096);

    fn refused(text: &str) -> String {
        parse(text.as_bytes(), LIMITS).expect_err(text).to_string()
    }

    #[test]
    fn text_with_two_meanings_is_refused() {
        assert!(refused(r#"{"a":1,"a":2}"#).contains("duplicate key"));
        assert!(refused(r#"{"x":[{"a":1,"\u0061":2}]}"#).contains("duplicate key"), "escaped spelling, at depth");
        assert!(refused("9007199254740992").contains("2^53"));
        assert!(refused("-9007199254740992").contains("2^53"));
        assert!(refused("9007199254740993.0").contains("2^53"));
        assert!(refused("123456789012345678901234567890").contains("2^53"));
        refused("1e400");
        refused("NaN");
        refused(r#""\ud800""#);
        refused("\u{feff}{}");
        refused("{} {}");
        refused(&("[".repeat(33) + &"]".repeat(33)));
        assert!(matches!(parse(&[b' '; 5000], LIMITS), Err(Error::TooLong { .. })));
    }

    #[test]
    fn text_with_more_values_than_allowed_is_refused() {
        let limits = LIMITS.values(4);
        assert!(parse(br#"{"a":[1,{}]}"#, limits).is_ok(), "the object, the array, the number, the empty object");
        let error = parse(br#"{"a":[1,{},2]}"#, limits).expect_err("five").to_string();
        assert!(error.contains("too many values"), "{error}");
        assert!(parse("0".as_bytes(), Limits::bytes(1)).is_ok() && parse(b"[0,0,0]", Limits::bytes(7)).is_ok());
    }

    #[test]
    fn canonical_bytes_read_back_to_themselves() {
        for text in [
            r#"{"b":1,"a":[true,null,"\u00e9\n"],"1":-0,"\ud83d\ude00":1e-7,"\ufb33":0.1}"#,
            "9007199254740991",
            "[1.0,10,1e1]",
        ] {
            let once = to_vec(&parse(text.as_bytes(), LIMITS).expect(text));
            let twice = to_vec(&parse(&once, LIMITS).expect(text));
            assert_eq!(once, twice);
        }
        let value = parse("{\"\u{fb33}\":1,\"\u{1f600}\":2}".as_bytes(), LIMITS).expect("valid");
        assert_eq!(to_string(&value), "{\"\u{1f600}\":2,\"\u{fb33}\":1}", "keys sort by UTF-16 code units");
    }

    #[test]
    fn error_about_a_text_is_short_and_quotes_nothing() {
        let long = "ä\", expected ".repeat(300);
        let error = from_slice::<Vec<u8>>(to_string(&long).as_bytes(), Limits::bytes(1 << 20)).expect_err("a string");
        assert_eq!(error.to_string(), "unexpected shape: invalid type: string, expected a sequence");
        let key = to_string(&"k".repeat(1000));
        let error = parse(format!("{{{key}:1,{key}:2}}").as_bytes(), LIMITS).expect_err("a key twice").to_string();
        assert!(error.starts_with("refused JSON text: ") && error.ends_with('…') && error.len() < 300, "{error}");
        for characters in [199, 200, 201] {
            let shown = shortened("ä".repeat(characters));
            assert_eq!((shown.chars().count(), shown.ends_with('…')), (characters.min(200), characters > 200));
        }
    }

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().to_uppercase().parse::<Digest>(), Err(DigestError));
    }
}
