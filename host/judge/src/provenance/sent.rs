//! The marks of values that an agent sent to a server, by which the host recognises such a value in an answer.
//!
//! Pure. Errs toward recognition: a returned value that shares a word with a sent one, or begins or ends with it, is not the server's own.
//! Never finds a value that a server decoded, translated or computed.

use super::typed::tokens;
use serde_json::Value;
use std::collections::BTreeSet;
use unicode_normalization::UnicodeNormalization;

/// Characters of the shortest part of a word that is compared. A server can join two sent values.
const PART_CHARACTERS_MIN: usize = 4;

/// Digits of the shortest number that is compared without its marks, such as a phone.
const DIGITS_MIN: usize = 7;

/// Texts in texts that are read as JSON.
const NESTED_MAX: usize = 4;

/// Words of a returned value that say nothing about it: those of an address or of a sum of any person.
const COMMON: [&str; 11] = ["http", "https", "www", "mailto", "com", "org", "net", "eur", "usd", "gbp", "chf"];

/// Returns the marks of a value that an agent sends: its words, and those of JSON in its texts.
pub fn sent(value: &Value) -> BTreeSet<String> {
    let mut marks = BTreeSet::new();
    collect(value, NESTED_MAX, &mut marks);
    marks
}

fn collect(value: &Value, nested: usize, marks: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            marks.extend(words(text));
            let inner = (nested > 0).then(|| decoded(text)).flatten();
            inner.iter().for_each(|inner| collect(inner, nested - 1, marks));
        }
        Value::Number(number) => marks.extend(words(&number.to_string())),
        Value::Array(values) => values.iter().for_each(|value| collect(value, nested, marks)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            marks.extend(words(name));
            collect(value, nested, marks);
        }),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Returns the value in a text that is JSON, or that has escapes of JSON.
fn decoded(text: &str) -> Option<Value> {
    let quoted = |text: &str| serde_json::from_str(&format!("\"{text}\"")).ok();
    let unescaped = || quoted(text).or_else(|| quoted(&text.replace('"', "\\\"")));
    let whole = serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_number());
    whole.or_else(|| text.contains('\\').then(unescaped).flatten())
}

/// Returns the marks of a returned text. It equals, contains, or joins a sent value if one of them is a mark of the sent value.
pub fn returned(text: &str) -> BTreeSet<String> {
    let words = words(text);
    let parts = words.iter().flat_map(|word| parts(word)).map(str::to_owned).collect::<BTreeSet<_>>();
    let telling = parts.into_iter().chain(words).filter(|word| !COMMON.contains(&word.as_str()));
    // A value that is such a word as a whole is compared all the same.
    telling.chain(whole(&plain(text))).collect()
}

/// Returns the marks of a text as a whole: two texts that mean the same value share one.
pub fn wholes(text: &str) -> BTreeSet<String> {
    let plain = plain(text);
    numbers(&plain).into_iter().chain(whole(&plain)).collect()
}

/// Returns the text in one form: of compatible letters, small, and without invisible characters.
fn plain(text: &str) -> String {
    let is_seen = |next: &char| !matches!(next, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    text.nfkc().filter(is_seen).collect::<String>().to_lowercase()
}

/// Returns a text without white space, and without marks at its ends.
fn whole(text: &str) -> Option<String> {
    let whole: String = text.split_whitespace().collect();
    let core = whole.trim_matches(|next: char| !next.is_alphanumeric());
    // A text of marks alone is a value too.
    let found = if core.is_empty() { whole.as_str() } else { core };
    (!found.is_empty()).then(|| found.to_owned())
}

/// Returns the words of a text: the whole, its tokens, accounts without their blanks, the words between other marks, and its numbers.
fn words(text: &str) -> BTreeSet<String> {
    let text = &plain(text);
    let tokens = tokens::tokens(text);
    let cores = tokens.iter().map(|token| &text[token.core.clone()]);
    let accounts = tokens.iter().filter_map(|token| token.account(text)).map(|account| account.to_lowercase());
    let pieces = text.split(|next: char| !is_in_word(next)).flat_map(|piece| [Some(piece), piece.split('@').next()]);
    let cores: BTreeSet<String> = cores.chain(pieces.flatten()).filter_map(whole).collect();
    let numbers: BTreeSet<String> = cores.iter().flat_map(|core| numbers(core)).collect();
    cores.into_iter().chain(accounts).chain(numbers).chain(whole(text)).collect()
}

/// Returns whether a character joins the words of an address, a number or a name.
fn is_in_word(next: char) -> bool {
    next.is_alphanumeric() || "@.+-_%#".contains(next)
}

/// Returns the forms of a number or a phone in which equal ones are equal: with each reading of its marks, and without zeros at its ends.
fn numbers(text: &str) -> BTreeSet<String> {
    let is_number = text.chars().any(|next| next.is_ascii_digit())
        && text.chars().all(|next| next.is_ascii_digit() || " +-.,'’/()".contains(next) || next.is_whitespace());
    let exact = text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number.to_string());
    if !is_number {
        return exact.into_iter().collect();
    }
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let trimmed =
        |digits: &str| Some(digits.trim_start_matches('0')).filter(|rest| !rest.is_empty()).unwrap_or("0").to_owned();
    let joined = trimmed(&digits(text));
    let decimal = text.rfind(['.', ',']).map(|at| {
        let (before, after) = (trimmed(&digits(&text[..at])), digits(&text[at + 1..]));
        let after = after.trim_end_matches('0');
        if after.is_empty() { before } else { format!("{before}.{after}") }
    });
    // The number of a phone in a country has another beginning.
    let local = (joined.len() >= DIGITS_MIN).then(|| joined[joined.len() - DIGITS_MIN..].to_owned());
    [Some(joined), decimal, local, exact].into_iter().flatten().collect()
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
            (json!("{\"mail\":\"eve\\u0040evil.example\"}"), eve),
            (json!("eve\\u0040evil.example"), eve),
            (json!("mail=eve@evil.example;x"), eve),
            (json!("pay DE89 3704 0044 0532 0130 00 now"), "DE89370400440532013000"),
            (json!("DE89370400440532013000"), "DE89 3704 0044 0532 0130 00"),
            (json!(8812), "8812"),
            (json!("ord-8812"), "ORD-8812"),
            // Two halves, which the server joins.
            (json!({ "name": "mallory", "host": "@evil.example" }), "mallory@evil.example"),
            (json!({ "a": "DE893704004", "b": "40532013000" }), "DE89370400440532013000"),
            // A part of the returned value.
            (json!("Anna"), "Anna Berg"),
            (json!("https://evil.example/a"), "https://evil.example/a"),
            // Other forms of a number or of letters.
            (json!(20), "20.0"),
            (json!(20.0), "20"),
            (json!("007"), "7"),
            (json!("1,000"), "1000"),
            (json!("20,00 EUR"), "20"),
            (json!(1e3), "1000"),
            (json!("+49-170-1234567"), "+491701234567"),
            (json!("0170-1234567"), "+49 170 1234567"),
            (json!("thanks @eve_evil"), "eve_evil"),
            (json!("_eve_"), "eve"),
            (json!("eve@evil.example"), "eve"),
            (json!("e\u{200b}ve"), "eve"),
            (json!("\u{ff45}\u{ff56}\u{ff45}"), "eve"),
            (json!("Mu\u{308}ller"), "M\u{fc}ller"),
            (json!("-"), "-"),
            (json!("GBP"), "GBP"),
            (json!("20 EUR"), "eur"),
            (json!("say \\\"eve\\u0040evil.example\\\""), "eve@evil.example"),
        ] {
            assert!(is_known(&sent, text), "{sent} in {text}");
        }
    }

    #[test]
    fn value_of_the_server_is_no_sent_one() {
        for (sent, text) in [
            (json!("the plan for Monday"), "ord_8812"),
            (json!({ "to": "bob@example.org" }), "ana@company.example"),
            (json!("20 EUR"), "DE89370400440532013000"),
            (json!("https://docs.example/a"), "https://shop.example/b"),
            (json!("20 EUR"), "30 EUR"),
            (json!(null), "null"),
            (json!(""), "x"),
        ] {
            assert!(!is_known(&sent, text), "{sent} in {text}");
        }
    }

    #[test]
    fn equal_values_share_a_whole() {
        for (one, other) in
            [("20", "20.0"), ("ORD_8812", "ord_8812"), ("+49-170-1234567", "+491701234567"), ("1e3", "1000")]
        {
            assert!(!wholes(one).is_disjoint(&wholes(other)), "{one} {other}");
        }
        assert!(wholes("ord_8812").is_disjoint(&wholes("ord_8813")));
        // A long text is read in time that follows its length.
        assert!(sent(&json!("a".repeat(1 << 20))).len() < 10);
    }
}
