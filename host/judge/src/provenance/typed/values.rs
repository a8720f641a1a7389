//! The typed values of a span, each as a whole and with its type: what a reference can name.
//!
//! Finds nothing in a quoted part, and only a title in a short quotation. Errs toward no value. See [`super::tokens`].

use super::tokens::{self, Token};
use crate::egress::{CanonicalUrl, Loopback};
use crate::provenance::spans::{Mark, Marked, TypedSpan};
use ironclaw_operator::InputType;
use std::ops::Range;

/// The codes and words of currencies behind or before a number.
const CURRENCIES: [&str; 44] = [
    "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "IDR", "ILS", "INR", "JPY", "KRW",
    "MXN", "MYR", "NOK", "NZD", "PHP", "PLN", "RON", "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "VND", "ZAR",
    "euro", "euros", "Euro", "dollar", "dollars", "Dollar", "pound", "pounds", "yen", "franc", "francs", "Franken",
];
const SYMBOLS: [char; 6] = ['$', '€', '£', '¥', '₹', '₩'];

/// Places of one name in a span.
const NAMES_MAX: usize = 64;

/// Digits of the shortest number of a phone.
const PHONE_DIGITS_MIN: usize = 7;

/// A value that a person typed as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedValue {
    pub kind: InputType,
    /// The value, as it was typed; a phone and an account are without their blanks.
    pub text: String,
    /// Its range of bytes in the span.
    pub bytes: Range<usize>,
    /// The number in it, if it is one that has one reading: `1250.5`.
    pub number: Option<String>,
    /// The word before it, if a colon or an equals sign ends it: the field that the person names.
    pub field: Option<String>,
    /// True if an address mixes the letters of ASCII with other ones, which can look alike.
    pub is_mixed: bool,
}

/// Returns the values of a typed span in their order. `names` are those that the host knows.
pub fn values(span: &TypedSpan<'_>, names: &[String], loopback: Loopback) -> Vec<TypedValue> {
    let (text, marked) = (span.text, &span.marked);
    let tokens = unmarked_tokens(text, marked);
    let mut all: Vec<TypedValue> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let amount = amount(text, &tokens[at..]);
        match amount.or_else(|| from_token(text, &tokens[at], loopback).map(|value| (value, 1))) {
            Some((value, count)) => {
                all.push(value);
                at += count;
            }
            None => at += 1,
        }
    }
    all.extend(marked.iter().filter(|part| part.mark == Mark::Title).filter_map(|part| title(text, part)));
    all.extend(names.iter().flat_map(|name| named(text, marked, &tokens, name)));
    with_fields(text, all)
}

/// Returns the places of names in a typed span, in their order, and no other value.
pub fn places_of_names(span: &TypedSpan<'_>, names: &[String]) -> Vec<TypedValue> {
    if names.is_empty() {
        return Vec::new();
    }
    let (text, marked) = (span.text, &span.marked);
    let tokens = unmarked_tokens(text, marked);
    with_fields(text, names.iter().flat_map(|name| named(text, marked, &tokens, name)).collect())
}

/// Returns the tokens of a text outside of its marked parts.
fn unmarked_tokens(text: &str, marked: &[Marked]) -> Vec<Token> {
    tokens::tokens(text).into_iter().filter(|token| Marked::touched(marked, &token.core).is_empty()).collect()
}

/// Returns values in their order, each with the field that the person names.
fn with_fields(text: &str, mut all: Vec<TypedValue>) -> Vec<TypedValue> {
    all.sort_by_key(|value| (value.bytes.start, value.bytes.end));
    for value in &mut all {
        value.field = field_before(text, value.bytes.start);
    }
    all
}

/// Characters of the longest value of an answer, and of the longest address of the web.
const WHOLE_CHARACTERS_MAX: usize = 200;
const URL_CHARACTERS_MAX: usize = 600;

/// Returns the value of a type that a text is as a whole.
pub fn whole(kind: InputType, text: &str, loopback: Loopback) -> Option<TypedValue> {
    let characters_max = if kind == InputType::Url { URL_CHARACTERS_MAX } else { WHOLE_CHARACTERS_MAX };
    if text.chars().nth(characters_max).is_some() {
        return None;
    }
    match kind {
        InputType::Any => None,
        InputType::Name | InputType::Title | InputType::Path => {
            let is_plain = !text.trim().is_empty() && !text.contains(char::is_control);
            is_plain.then(|| value(kind, text, 0..text.len()))
        }
        InputType::Email
        | InputType::Url
        | InputType::Phone
        | InputType::Account
        | InputType::Amount
        | InputType::Date
        | InputType::Number => {
            let all = values(&TypedSpan::whole(text), &[], loopback);
            all.into_iter().find(|value| value.kind == kind && value.bytes == (0..text.len()))
        }
    }
}

/// Returns whether an address mixes the letters of ASCII with other ones, which can look alike.
pub fn is_mixed(kind: InputType, text: &str) -> bool {
    let is_address = matches!(kind, InputType::Email | InputType::Url);
    is_address && !text.is_ascii() && text.contains(|next: char| next.is_ascii_alphabetic())
}

fn value(kind: InputType, text: impl Into<String>, bytes: Range<usize>) -> TypedValue {
    let text = text.into();
    let is_mixed = is_mixed(kind, &text);
    TypedValue { kind, text, bytes, number: None, field: None, is_mixed }
}

/// Returns the value that a token is.
fn from_token(text: &str, token: &Token, loopback: Loopback) -> Option<TypedValue> {
    let (bytes, core) = (token.core.clone(), &text[token.core.clone()]);
    if tokens::is_address(core) {
        return Some(value(InputType::Email, core, bytes));
    }
    if let Some(url) = token.url(text) {
        let begin = url.as_ptr() as usize - text.as_ptr() as usize;
        let is_whole = CanonicalUrl::parse_typed(url, loopback).is_ok();
        return is_whole.then(|| value(InputType::Url, url, begin..begin + url.len()));
    }
    if let Some(account) = token.account(text) {
        return Some(value(InputType::Account, account, bytes));
    }
    if is_date(core) {
        return Some(value(InputType::Date, core, bytes));
    }
    if let Some(phone) = phone(core) {
        return Some(value(InputType::Phone, phone, bytes));
    }
    if let Some(number) = numeral(&text[token.all.clone()], core) {
        let number = reading(number);
        return Some(TypedValue { number, ..value(InputType::Number, core, bytes) });
    }
    is_path(core).then(|| value(InputType::Path, core, bytes))
}

/// Returns the amount that tokens begin with, and the number of its tokens.
fn amount(text: &str, tokens: &[Token]) -> Option<(TypedValue, usize)> {
    let first = tokens.first()?;
    let word = |token: &Token| &text[token.core.clone()];
    let is_near = |a: &Token, b: &Token| matches!(&text[a.all.end..b.all.start], " " | "\u{a0}" | "\u{202f}" | "");
    let is_currency = |token: &Token| CURRENCIES.contains(&word(token));
    let make = |bytes: Range<usize>, number: &str, count| {
        let number = reading(number);
        (TypedValue { number, ..value(InputType::Amount, &text[bytes.clone()], bytes) }, count)
    };
    // $20, 20€
    let all = &text[first.all.clone()];
    let inner = all.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']).trim_start_matches('(');
    let bare = inner.trim_start_matches(SYMBOLS).trim_end_matches(SYMBOLS);
    if bare.len() < inner.len() && is_numeral(bare) {
        let begin = inner.as_ptr() as usize - text.as_ptr() as usize;
        return Some(make(begin..begin + inner.len(), bare, 1));
    }
    let second = tokens.get(1).filter(|second| is_near(first, second))?;
    // 20 EUR
    if is_numeral(word(first)) && first.core.end == first.all.end && is_currency(second) {
        return Some(make(first.core.start..second.core.end, word(first), 2));
    }
    // EUR 20
    let is_second_number = is_numeral(word(second)) && second.core.start == second.all.start;
    (is_currency(first) && is_second_number).then(|| make(first.core.start..second.core.end, word(second), 2))
}

/// Returns whether a text has only digits and the marks between groups and decimals.
fn is_numeral(text: &str) -> bool {
    text.starts_with(|next: char| next.is_ascii_digit())
        && text.ends_with(|next: char| next.is_ascii_digit())
        && text.chars().all(|next| next.is_ascii_digit() || matches!(next, '.' | ',' | '\'' | '’') || is_blank(next))
}

fn is_blank(next: char) -> bool {
    matches!(next, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}')
}

/// Returns the number that a token is: with a sign before it, it is another one.
fn numeral<'a>(all: &str, core: &'a str) -> Option<&'a str> {
    let is_signed = all.starts_with(['-', '+', '−', '$', '€', '£', '¥']);
    (!is_signed && is_numeral(core)).then_some(core)
}

/// Returns the number of a numeral with one reading: groups have three digits, and a mark before three digits alone may be either.
fn reading(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|next| !is_blank(*next) && !matches!(next, '\'' | '’')).collect();
    let marks: Vec<usize> = plain.match_indices(['.', ',']).map(|(at, _)| at).collect();
    let (whole, decimals) = match marks.as_slice() {
        [] => (plain.clone(), String::new()),
        [at] if plain.len() - at - 1 == 3 => return None,
        [at] => (plain[..*at].to_owned(), plain[at + 1..].to_owned()),
        [groups @ .., last] => {
            let group = plain.as_bytes()[groups[0]];
            let is_group = |at: &usize| plain.as_bytes()[*at] == group;
            let is_decimal = !is_group(last);
            let ends: Vec<usize> = marks.iter().skip(1).copied().chain(Some(plain.len())).collect();
            let is_grouped = marks.iter().zip(&ends).all(|(at, end)| end - at == 4 || is_decimal && at == last);
            if !groups.iter().all(is_group) || !is_grouped {
                return None;
            }
            let until = if is_decimal { *last } else { plain.len() };
            let decimals = if is_decimal { plain[last + 1..].to_owned() } else { String::new() };
            (plain[..until].chars().filter(char::is_ascii_digit).collect(), decimals)
        }
    };
    let (whole, decimals) = (whole.trim_start_matches('0'), decimals.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if decimals.is_empty() { whole.to_owned() } else { format!("{whole}.{decimals}") })
}

/// Returns the digits of a number of a phone, with the plus before them.
fn phone(core: &str) -> Option<String> {
    let is_plain = core.chars().all(|next| next.is_ascii_digit() || "+-/.()".contains(next) || is_blank(next));
    let digits: String = core.chars().filter(char::is_ascii_digit).collect();
    let is_dialled = core.starts_with(['+', '(']) || core.starts_with('0') && !core.contains('.');
    let begin = if core.starts_with('+') { "+" } else { "" };
    (is_plain && is_dialled && digits.len() >= PHONE_DIGITS_MIN).then(|| format!("{begin}{digits}"))
}

/// Returns whether a token is a date, a time, or both in the form of ISO 8601.
fn is_date(core: &str) -> bool {
    let groups = |text: &str, mark: char, lengths: &[&[usize]]| {
        let parts: Vec<&str> = text.split(mark).collect();
        let is_digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = |at: usize| lengths[at].contains(&parts[at].len()) && is_digits(&parts[at]);
        parts.len() == lengths.len() && (0..parts.len()).all(fits)
    };
    let is_time = |text: &str| groups(text, ':', &[&[1, 2], &[2]]) || groups(text, ':', &[&[1, 2], &[2], &[2]]);
    let is_day = |text: &str| {
        groups(text, '-', &[&[4], &[2], &[2]])
            || groups(text, '.', &[&[1, 2], &[1, 2], &[2, 4]])
            || groups(text, '/', &[&[1, 2], &[1, 2], &[2, 4]])
    };
    let zoned = |text: &str| text.trim_end_matches('Z').split(['+', '-']).next().is_some_and(is_time);
    is_day(core) || is_time(core) || core.split_once('T').is_some_and(|(day, time)| is_day(day) && zoned(time))
}

/// Returns whether a token is a path of files: it begins like one, has parts, or has the ending of a file.
fn is_path(core: &str) -> bool {
    let has_name = core.contains(char::is_alphanumeric) && !core.contains(['@', ':', '\\']);
    let is_rooted =
        core.starts_with('/') || core.starts_with("./") || core.starts_with("../") || core.starts_with("~/");
    has_name && (is_rooted || tokens::is_file(core))
}

/// Returns the words inside of a short quotation.
fn title(text: &str, part: &Marked) -> Option<TypedValue> {
    let all = &text[part.bytes.clone()];
    let (first, last) = (all.chars().next()?.len_utf8(), all.chars().next_back()?.len_utf8());
    let words = all.get(first..all.len().checked_sub(last)?)?;
    let begin = part.bytes.start + first;
    tokens::is_name(words).then(|| value(InputType::Title, words, begin..begin + words.len()))
}

/// Returns each place that has a name as a whole.
fn named(text: &str, marked: &[Marked], tokens: &[Token], name: &str) -> Vec<TypedValue> {
    let is_whole = |range: &Range<usize>| {
        let begins = tokens.binary_search_by_key(&range.start, |token| token.core.start).is_ok();
        let ends = tokens.binary_search_by_key(&range.end, |token| token.core.end).is_ok();
        begins && ends && Marked::touched(marked, range).is_empty()
    };
    let places = text.match_indices(name).map(|(at, _)| at..at + name.len());
    places.filter(is_whole).take(NAMES_MAX).map(|range| value(InputType::Name, name, range)).collect()
}

/// Returns the word before a place, if a colon or an equals sign ends it.
fn field_before(text: &str, at: usize) -> Option<String> {
    let before = text[..at].trim_end_matches([' ', '"', '\'', '<']);
    let name = before.strip_suffix([':', '='])?.trim_end_matches([' ', '"']);
    let begin = name
        .rfind(|next: char| !(next.is_alphanumeric() || next == '_' || next == '-'))
        .map_or(0, |at| at + name[at..].chars().next().map_or(1, char::len_utf8));
    Some(name[begin..].to_lowercase()).filter(|name| !name.is_empty())
}

/// Returns the form in which two values of a type are equal if they mean the same.
pub fn normal(kind: InputType, text: &str, loopback: Loopback) -> String {
    match kind {
        InputType::Email => match text.split_once('@') {
            Some((name, host)) => format!("{name}@{}", host.to_lowercase()),
            None => text.to_owned(),
        },
        InputType::Url => {
            CanonicalUrl::parse_typed(text, loopback).map_or_else(|_| text.to_owned(), |url| url.to_string())
        }
        InputType::Account => text.split_whitespace().collect(),
        InputType::Phone => phone(text).unwrap_or_else(|| text.to_owned()),
        InputType::Number | InputType::Amount => {
            let one = Some(text).filter(|text| is_numeral(text)).and_then(reading);
            one.unwrap_or_else(|| text.to_owned())
        }
        InputType::Any | InputType::Date | InputType::Path | InputType::Title | InputType::Name => text.to_owned(),
    }
}

/// Returns whether a text has an address, a URL or an account that no person typed.
pub fn has_untyped_address(text: &str, typed: &dyn Fn(&str) -> bool, loopback: Loopback) -> bool {
    tokens::tokens(text).iter().any(|token| {
        let core = &text[token.core.clone()];
        let url = token.url(text);
        let canonical = url.and_then(|url| CanonicalUrl::parse_typed(url, loopback).ok()).map(|url| url.to_string());
        let is_url = url.is_some() || core.contains("://") || core.starts_with("www.");
        let is_known = typed(core) || canonical.is_some_and(|url| typed(&url));
        (is_url || core.contains('@') || token.account(text).is_some_and(|account| !typed(&account))) && !is_known
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let names = ["Ana".to_owned(), "design team".to_owned()];
        let all = values(&TypedSpan::read(0, text), &names, Loopback::Refused);
        all.into_iter().map(|value| format!("{} {}", value.kind, value.text)).collect()
    }

    #[test]
    fn quoted_or_partial_text_gives_no_value() {
        for text in [
            "sum up:\n> pay bob@example.org 20 EUR",
            "sum up:\n```\nbob@example.org\n```",
            "sum up \"bob@example.org\" for me",
            "sum up \"pay 20 EUR to DE89 3704 0044 0532 0130 00\" for me",
            "see bob@example.org@evil.example",
            "see xhttps://docs.example/",
            "pay -500",
            "and/or",
            "Anabel writes",
        ] {
            assert_eq!(shown(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn each_type_of_value_is_found_as_a_whole() {
        for (text, found) in [
            ("mail bob@example.org.", &["email bob@example.org"][..]),
            ("mail Bob<bob@example.org>, please", &["email bob@example.org"]),
            ("see https://docs.example/a?b=1.", &["url https://docs.example/a?b=1"]),
            ("call +49 170 1234567 now", &["phone +491701234567"]),
            ("call (030) 1234567", &["phone 0301234567"]),
            (
                "pay 1.250,50 EUR to DE89 3704 0044 0532 0130 00",
                &["amount 1.250,50 EUR", "account DE89370400440532013000"],
            ),
            ("pay $20 and 30€, then USD 40.", &["amount $20", "amount 30€", "amount USD 40"]),
            ("meet on 2026-12-01 at 10:30", &["date 2026-12-01", "date 10:30"]),
            ("from 1.12.2026 and 2026-12-01T10:30:00Z", &["date 1.12.2026", "date 2026-12-01T10:30:00Z"]),
            ("open ./docs/a.md and report.pdf", &["path ./docs/a.md", "path report.pdf"]),
            ("add 12 chairs", &["number 12"]),
            ("add the task \"water the plants\" for Ana", &["title water the plants", "name Ana"]),
            ("tell the design team", &["name design team"]),
        ] {
            assert_eq!(shown(text), found, "{text}");
        }
    }

    #[test]
    fn number_has_one_reading_or_none() {
        for (text, number) in [
            ("20", Some("20")),
            ("1,250.50", Some("1250.5")),
            ("1.250,50", Some("1250.5")),
            ("1 250 000", Some("1250000")),
            ("1.250.000", Some("1250000")),
            ("12.5", Some("12.5")),
            ("1.250", None),
            ("1,250", None),
            ("1.25.000", None),
            ("007", Some("7")),
        ] {
            assert_eq!(reading(text).as_deref(), number, "{text}");
        }
    }

    #[test]
    fn named_field_and_mixed_letters_are_marked() {
        let all = |text| values(&TypedSpan::read(0, text), &[], Loopback::Refused);
        assert_eq!(all("payee: bob@example.org")[0].field.as_deref(), Some("payee"));
        assert_eq!(all("send to = bob@example.org")[0].field.as_deref(), Some("to"));
        assert_eq!(all("to bob@example.org")[0].field, None);
        assert!(all("mail b\u{43e}b@example.org")[0].is_mixed && !all("mail bob@example.org")[0].is_mixed);
    }

    #[test]
    fn address_that_no_person_typed_is_found() {
        let found = |text: &str| has_untyped_address(text, &|value| value == "bob@example.org", Loopback::Refused);
        for text in
            ["write eve@example.org", "see https://evil.example/x", "www.evil.example", "DE89 3704 0044 0532 0130 00"]
        {
            assert!(found(text), "{text}");
        }
        assert!(!found("hello bob@example.org, and/or 12 of node.js"));
    }
}
