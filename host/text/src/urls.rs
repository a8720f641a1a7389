//! The URLs in a text, and the form of a URL that no terminal turns into a link.
//!
//! Finds more than a terminal would: a stretch that is no URL for a reader may be one for a program. See [`find`].

use std::ops::Range;

/// The mark between a scheme and the rest.
const BETWEEN: &str = "://";

/// Beginnings of a host name that terminals take for a URL without a scheme.
const BARE: [&str; 2] = ["www.", "ftp."];

/// The remark behind a URL in its inert form.
pub const UNKNOWN: &str = "(unknown address)";

/// Marks that end a URL, besides white space and control characters.
const ENDS: [char; 6] = ['<', '>', '"', '`', '⟨', '⟩'];

/// Marks at the end of a URL that belong to the sentence around it.
const CLOSING: [char; 25] = [
    '.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '*', '_', '|', '~', '…', '“', '”', '’', '。', '，', '、', '；',
    '：', '）', '】',
];

/// Returns the ranges of bytes of the URLs in a text, in order. Each begins with a scheme and `://`, or with `www.` or `ftp.`.
pub fn find(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for begin in begins(text) {
        if begin < at {
            continue;
        }
        let rest = &text[begin..];
        let end = rest.find(|next: char| next.is_whitespace() || next.is_control() || ENDS.contains(&next));
        let whole = &rest[..end.unwrap_or(rest.len())];
        found.push(begin..begin + trimmed(whole).len());
        at = begin + whole.len();
    }
    found
}

/// Returns whether a part of a text may be in a URL: it has the mark of one.
pub fn may_have_url(text: &str) -> bool {
    text.contains(BETWEEN) || BARE.iter().any(|bare| position(text, bare, 0).is_some())
}

/// Returns the places at which a URL begins, in order. One may be inside of another URL.
fn begins(text: &str) -> Vec<usize> {
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
    let mut begins: Vec<usize> = Vec::new();
    for (mark, _) in text.match_indices(BETWEEN) {
        let scheme = text.as_bytes()[..mark].iter().rev().take_while(|byte| is_of_scheme(byte)).count();
        begins.extend((scheme > 0).then_some(mark - scheme));
    }
    for bare in BARE {
        let mut at = 0;
        while let Some(begin) = position(text, bare, at) {
            at = begin + bare.len();
            let before = text[..begin].chars().next_back();
            let after = text[at..].chars().next();
            let is_begin = !before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric);
            begins.extend(is_begin.then_some(begin));
        }
    }
    begins.sort_unstable();
    begins
}

/// Returns the place of an ASCII word from `from` on, in upper or lower case.
fn position(text: &str, word: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes().get(from..)?;
    bytes.windows(word.len()).position(|part| part.eq_ignore_ascii_case(word.as_bytes())).map(|at| from + at)
}

/// Returns a URL without the marks at its end that belong to the sentence. A bracket that the URL opens belongs to it.
fn trimmed(whole: &str) -> &str {
    let (opened, mut closed) = (whole.matches('(').count(), whole.matches(')').count());
    let mut url = whole;
    while let Some(last) = url.chars().next_back() {
        if !CLOSING.contains(&last) || last == ')' && opened >= closed {
            break;
        }
        closed -= usize::from(last == ')');
        url = &url[..url.len() - last.len_utf8()];
    }
    url
}

/// Returns a URL as text that is no link: in brackets, with blanks where a terminal would begin one, and with a remark.
pub fn inert(url: &str) -> String {
    let mut text = url.replace(BETWEEN, ": //").replace('@', "@ ");
    for bare in BARE {
        let mut split = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(begin) = position(&text, bare, at) {
            split.push_str(&text[at..begin + bare.len()]);
            split.push(' ');
            at = begin + bare.len();
        }
        split.push_str(&text[at..]);
        text = split;
    }
    format!("⟨{text}⟩ {UNKNOWN}")
}

/// Returns a text with each URL in its inert form for which `is_inert` is true.
pub fn with_inert(text: &str, mut is_inert: impl FnMut(&str) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for range in find(text) {
        let url = &text[range.clone()];
        shown.push_str(&text[at..range.start]);
        match is_inert(url) {
            true => shown.push_str(&inert(url)),
            false => shown.push_str(url),
        }
        at = range.end;
    }
    shown.push_str(&text[at..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn urls_are_found_without_the_marks_around_them() {
        for (text, wanted) in [
            ("see https://a.example/x.", vec!["https://a.example/x"]),
            (
                "[docs](https://a.example/x_(y)) and (http://b.example)",
                vec!["https://a.example/x_(y)", "http://b.example"],
            ),
            ("<HTTPS://A.example> `ssh://h/x`", vec!["HTTPS://A.example", "ssh://h/x"]),
            ("www.a.example, WWW.b.example and ftp.c.example", vec!["www.a.example", "WWW.b.example", "ftp.c.example"]),
            ("https://a.example/?u=https://b.example", vec!["https://a.example/?u=https://b.example"]),
            ("https://a.example/x).evil.example", vec!["https://a.example/x).evil.example"]),
            ("awww. and :// and www. nothing", vec![]),
            ("词https://a.example/次。", vec!["https://a.example/次"]),
        ] {
            assert_eq!(found(text), wanted, "{text}");
        }
    }

    #[test]
    fn inert_form_has_no_link() {
        assert_eq!(inert("https://a.example/x"), "⟨https: //a.example/x⟩ (unknown address)");
        assert_eq!(inert("www.a.example"), "⟨www. a.example⟩ (unknown address)");
        assert_eq!(inert("https://b@www.a.example"), "⟨https: //b@ www. a.example⟩ (unknown address)");
        let shown = with_inert("a https://a.example b https://b.example.", |url| url.contains("b."));
        assert_eq!(shown, "a https://a.example b ⟨https: //b.example⟩ (unknown address).");
    }

    /// With quadratic time this test would take minutes.
    #[test]
    fn worst_text_takes_linear_time() {
        for unit in ["://", "a://", "www.", "http", "ftp.", "(", "https://a/) "] {
            let text = unit.repeat(256 * 1024 / unit.len());
            let shown = with_inert(&text, |_| true);
            assert!(shown.len() >= text.len());
        }
    }

    proptest! {
        #[test]
        fn no_text_has_a_url_after_all_are_inert(text in "[a-c:/w.@ )(\u{e9}<]{0,40}") {
            let shown = with_inert(&text, |_| true);
            prop_assert!(!may_have_url(&shown) || find(&shown).is_empty(), "{} became {}", text, shown);
        }
    }
}
