//! Canonical JSON and the ledger's vectors: properties of every value, and published figures.
//!
//! See `contract/src/canonical.rs`.

use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::ledger_entry::{GENESIS_PREV, Kind, Verifier, hash};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

const LIMITS: Limits = Limits::bytes(1024 * 1024);
const INTEGER_MAX: i64 = canonical::INTEGER_MAX as i64;

/// Returns numbers that read back as themselves: a float that is no integer, or an integer.
fn number() -> impl Strategy<Value = Value> {
    let float = any::<f64>().prop_filter_map("no fraction, or too large", |float| {
        (float.fract() != 0.0 && float.abs() < INTEGER_MAX as f64).then(|| Value::from(float))
    });
    prop_oneof![
        (-INTEGER_MAX..=INTEGER_MAX).prop_map(Value::from),
        float,
        (-1000.0..1000.0f64).prop_filter_map("no fraction", |float| (float.fract() != 0.0).then(|| Value::from(float))),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z]{0,6}", "[\u{0}-\u{20}\"\\\\\u{7f}\u{2028}\u{e9}\u{fb33}\u{1f600}]{0,8}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from)];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn value_reads_back_from_its_stable_canonical_bytes(value in value()) {
        let bytes = canonical::to_vec(&value);
        let read = canonical::parse(&bytes, LIMITS).expect("canonical bytes are read");
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(canonical::to_vec(&read), bytes.clone());
        // Every way to write a value has one canonical form.
        let pretty = serde_json::to_vec_pretty(&value).expect("serializes");
        let read = canonical::parse(&pretty, LIMITS).expect("indented JSON is read");
        prop_assert_eq!(canonical::to_vec(&read), bytes);
    }

    #[test]
    fn keys_are_in_the_order_of_their_utf_16_units(keys in prop::collection::btree_set(text(), 2..12)) {
        let object: Map<String, Value> = keys.iter().map(|key| (key.clone(), Value::Null)).collect();
        let written = canonical::to_string(&object);
        let mut keys: Vec<&String> = keys.iter().collect();
        keys.sort_by_key(|key| key.encode_utf16().collect::<Vec<u16>>());
        let keys: Vec<String> =
            keys.into_iter().map(|key| format!("{}:null", canonical::to_string(key))).collect();
        prop_assert_eq!(written, format!("{{{}}}", keys.join(",")));
    }

    #[test]
    fn repeated_key_is_refused_at_any_depth(
        key in "[a-zé]{1,4}",
        escaped in any::<bool>(),
        wrappers in prop::collection::vec(any::<bool>(), 0..24),
    ) {
        let other = if escaped {
            key.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
        } else {
            key.clone()
        };
        let wrap = |core: String| wrappers.iter().fold(core, |inner, object| {
            if *object { format!(r#"{{"x":1,"y":{inner}}}"#) } else { format!("[0,{inner}]") }
        });
        let twice = wrap(format!(r#"{{"{key}":1,"between":2,"{other}":1}}"#));
        let error = canonical::parse(twice.as_bytes(), LIMITS).expect_err("must be refused").to_string();
        prop_assert!(error.contains("duplicate key"), "{}", error);
        let once = wrap(format!(r#"{{"{key}":1,"between":2}}"#));
        prop_assert!(key == "between" || canonical::parse(once.as_bytes(), LIMITS).is_ok());
    }

    #[test]
    fn no_bytes_panic_the_reader_and_accepted_ones_are_stable(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(value) = canonical::parse(&bytes, LIMITS) {
            let once = canonical::to_vec(&value);
            let again = canonical::parse(&once, LIMITS).expect("canonical bytes are read");
            prop_assert_eq!(canonical::to_vec(&again), once);
        }
    }
}

/// RFC 8785, appendix B: the bits of a double, and its form in ECMAScript.
const NUMBERS: &[(u64, &str)] = &[
    (0x0000_0000_0000_0000, "0"),
    (0x8000_0000_0000_0000, "0"),
    (0x0000_0000_0000_0001, "5e-324"),
    (0x8000_0000_0000_0001, "-5e-324"),
    (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
    (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
    (0x4340_0000_0000_0000, "9007199254740992"),
    (0xc340_0000_0000_0000, "-9007199254740992"),
    (0x4430_0000_0000_0000, "295147905179352830000"),
    (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
    (0x44b5_2d02_c7e1_4af6, "1e+23"),
    (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
    (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
    (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
    (0x444b_1ae4_d6e2_ef50, "1e+21"),
    (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
    (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
    (0x41b3_de43_5555_5553, "333333333.3333332"),
    (0x41b3_de43_5555_5554, "333333333.33333325"),
    (0x41b3_de43_5555_5555, "333333333.3333333"),
    (0x41b3_de43_5555_5556, "333333333.3333334"),
    (0x41b3_de43_5555_5557, "333333333.33333343"),
    (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
];

#[test]
fn numbers_are_written_as_ecmascript_writes_them() {
    for (bits, text) in NUMBERS {
        let number = f64::from_bits(*bits);
        assert_eq!(canonical::to_string(&number), *text, "{bits:016x}");
        let read = canonical::parse(text.as_bytes(), LIMITS);
        // Beyond 2^53 − 1 a number can be written but not read: a reader cannot know which integer was meant.
        assert_eq!(read.is_ok(), number.abs() <= canonical::INTEGER_MAX as f64, "{text}");
        if let Ok(read) = read {
            assert_eq!(canonical::to_string(&read), *text);
        }
    }
    for (written, text) in [("1.0", "1"), ("10", "10"), ("1e1", "10"), ("-0", "0"), ("-0.0", "0"), ("1E-7", "1e-7")] {
        let read = canonical::parse(written.as_bytes(), LIMITS).expect(written);
        assert_eq!(canonical::to_string(&read), text);
    }
}

/// One entry of the ledger in `docs/ledger-vectors.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    /// The name of the previous vector; absent for the first of a chain.
    after: Option<String>,
    /// The first number of the chain, if not 0: only for the first of a chain.
    #[serde(default)]
    first: u64,
    seq: u64,
    #[serde(rename = "type")]
    kind: String,
    /// The data in any form.
    given: String,
    /// The hashed bytes.
    canonical: String,
    hash: String,
    /// The sequence number at which a verifier that accepted `after` refuses the vector; absent if it is valid.
    #[serde(default)]
    refused_at: Option<u64>,
    /// The verifier's input, if it is not `canonical`.
    #[serde(default)]
    stored: Option<String>,
}

fn vectors() -> Vec<Vector> {
    let text = include_str!("../../../docs/ledger-vectors.json");
    canonical::from_slice(text.as_bytes(), LIMITS).expect("docs/ledger-vectors.json is a list of vectors")
}

/// Returns a verifier that accepted every vector before this one.
fn before(vectors: &[Vector], vector: &Vector) -> Verifier {
    match &vector.after {
        None => Verifier::starting_at(vector.first),
        Some(name) => accepted(vectors, vectors.iter().find(|vector| vector.name == *name).expect(name)),
    }
}

/// Returns a verifier that accepted this vector and all before it.
fn accepted(vectors: &[Vector], vector: &Vector) -> Verifier {
    let mut chain = before(vectors, vector);
    chain.accept(vector.seq, &vector.kind, &vector.canonical, &vector.hash).expect(&vector.name);
    chain
}

#[test]
fn the_ledger_vectors_hold() {
    let vectors = vectors();
    assert!(vectors.len() >= 10, "the published four and ours");
    for vector in &vectors {
        let name = &vector.name;
        let data = canonical::parse(vector.given.as_bytes(), LIMITS).expect(name);
        assert_eq!(canonical::to_string(&data), vector.canonical, "{name}: canonical bytes");
        let mut chain = before(&vectors, vector);
        let prev = chain.head().to_owned();
        assert_eq!(vector.after.is_none(), prev == GENESIS_PREV, "{name}");
        let kind: Kind = vector.kind.parse().expect(name);
        assert_eq!(hash(&prev, vector.seq, kind, &vector.canonical).to_string(), vector.hash, "{name}: hash");
        let stored = vector.stored.as_ref().unwrap_or(&vector.canonical);
        let verdict = chain.accept(vector.seq, &vector.kind, stored, &vector.hash);
        assert_eq!(verdict.err().map(|broken| broken.seq), vector.refused_at, "{name}: verdict");
    }
}
