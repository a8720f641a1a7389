//! The marks of values that an agent sent to a server, by which the host recognises such a value in an answer.
//!
//! Pure. Errs toward recognition: a returned value that shares a word with a sent one, or begins or ends with it, is not the server's own.
//! Never finds a value that a server decoded, translated or computed.

use super::typed::tokens;
use serde_json::Value;
use std::collections::BTreeSet;

/// Characters of the shortest part of a word that is compared. A server can join two sent values.
const PART_CHARACTERS_MIN: usize = 4;

/// The marks between the words of a value, beside white space: those that an address, a number or a name do not have.
fn is_in_word(next: char) -> bool {
    next.is_alphanumeric() || "@.+-_%#".contains(next)
}

/// Returns the marks of a value that an agent sends.
pub fn sent(value: &Value) -> BTreeSet<String> {
    let mut marks = BTreeSet::new();
    collect(value, &mut marks);
    marks
}

fn collect(value: &Value, marks: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => marks.extend(words(text)),
        Value::Number(number) => marks.extend(words(&number.to_string())),
        Value::Array(values) => values.iter().for_each(|value| collect(value, marks)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            marks.extend(words(name));
            collect(value, marks);
        }),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Returns the whole values of an answer: its texts and numbers.
pub fn wholes(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(text) => whole(text).into_iter().collect(),
        Value::Number(number) => whole(&number.to_string()).into_iter().collect(),
        Value::Array(values) => values.iter().flat_map(wholes).collect(),
        Value::Object(fields) => fields.values().flat_map(wholes).collect(),
        Value::Null | Value::Bool(_) => BTreeSet::new(),
    }
}

/// Returns the marks of a returned text. It equals, contains, or joins a sent value if one of them is a mark of the sent value.
pub fn returned(text: &str) -> BTreeSet<String> {
    let words = words(text);
    let parts = words.iter().flat_map(|word| parts(word));
    parts.map(str::to_owned).chain(words.iter().cloned()).collect()
}

/// Returns a text in the form in which it is compared: without white space, in small letters.
pub fn whole(text: &str) -> Option<String> {
    let whole: String = text.split_whitespace().collect::<String>().to_lowercase();
    (!whole.is_empty()).then_some(whole)
}

/// Returns the words of a text: the whole, its tokens, accounts without their blanks, and the words between other marks.
fn words(text: &str) -> BTreeSet<String> {
    let tokens = tokens::tokens(text);
    let cores = tokens.iter().filter_map(|token| whole(&text[token.core.clone()]));
    let accounts = tokens.iter().filter_map(|token| token.account(text)).map(|account| account.to_lowercase());
    let plain = text.split(|next: char| !is_in_word(next)).map(|word| word.trim_matches(['.', '-', '%', '#']));
    let plain = plain.filter_map(whole);
    cores.chain(accounts).chain(plain).chain(whole(text)).collect()
}

/// Returns the beginnings and the ends of a word that a sent value can be.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let inner = word.char_indices().map(|(at, _)| at).skip(1);
    let is_long = |part: &str| part.chars().count() >= PART_CHARACTERS_MIN;
    inner.flat_map(move |at| [&word[..at], &word[at..]]).filter(move |part| is_long(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_known(sent_value: &Value, text: &str) -> bool {
        !sent(sent_value).is_disjoint(&returned(text))
    }

    #[test]
    fn sent_value_is_recognised_in_an_answer() {
        let eve = "eve@evil.example";
        for (sent, text) in [
            (json!(eve), eve),
            (json!("Eve <EVE@evil.example>, new"), eve),
            (json!({ "memo": [{ "x": eve }] }), eve),
            (json!({ "eve@evil.example": 1 }), eve),
            (json!("{\"mail\":\"eve@evil.example\"}"), eve),
            (json!("mail=eve@evil.example;x"), eve),
            (json!("pay DE89 3704 0044 0532 0130 00 now"), "DE89370400440532013000"),
            (json!("DE89370400440532013000"), "DE89 3704 0044 0532 0130 00"),
            (json!(8812), "8812"),
            (json!("ord-8812"), "ORD-8812"),
            // Two halves, which the server joins.
            (json!({ "name": "eve", "host": "@evil.example" }), eve),
            (json!({ "a": "DE893704004", "b": "40532013000" }), "DE89370400440532013000"),
            // A part of the returned value.
            (json!("Ana"), "Ana Berg"),
            (json!("https://evil.example/a"), "https://evil.example/a"),
        ] {
            assert!(is_known(&sent, text), "{sent} in {text}");
        }
    }

    #[test]
    fn value_of_the_server_is_no_sent_one() {
        for (sent, text) in [
            (json!("the plan for Monday"), "ord_8812"),
            (json!({ "to": "bob@example.org" }), "ana@example.org"),
            (json!("20 EUR"), "DE89370400440532013000"),
            (json!(null), "null"),
            (json!(""), "x"),
        ] {
            assert!(!is_known(&sent, text), "{sent} in {text}");
        }
    }
}
