//! The removal of a secret that a server sends back: in plain form, and base64, hex, percent-encoded, as a JSON string or escaped for
//! HTML.
//!
//! Never claims more: a server that has the secret can hide it in other ways. See [`crate::fetch`].

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ironclaw_text::secret::SecretText;
use memchr::memmem;
use std::ops::Range;

/// Bytes of a credential below which its removal from an answer would remove other text.
pub const SECRET_BYTES_MIN: usize = 8;
/// The text in place of a secret.
pub const REMOVED: &str = "[secret removed]";
/// Bytes of one byte of a secret in the longest form.
const FORM_FACTOR: usize = 10;

/// The forms of one secret.
pub(super) struct Echo {
    forms: Vec<SecretText>,
    bytes_max: usize,
}

/// Returns a text of a server without the secret that it was sent, in each form that this module knows.
pub fn without_secret(text: &str, secret: &SecretText) -> String {
    let (kept, _) = Echo::new(secret).remove(text.as_bytes(), text.len());
    String::from_utf8_lossy(&kept).into_owned()
}

impl Echo {
    pub(super) fn new(secret: &SecretText) -> Self {
        let secret = secret.expose();
        let mut forms = vec![secret.to_owned()];
        for shift in 0..3 {
            // The secret may begin at any of three places of a group; the letters that it shares with a neighbour are left out.
            let shifted = [&[0; 2][..shift.min(2)], secret.as_bytes()].concat();
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let begin = (shift * 8).div_ceil(6);
                let end = shifted.len() * 8 / 6;
                forms.push(engine.encode(&shifted)[begin..end].to_owned());
            }
        }
        let hex = |upper: bool| {
            secret
                .bytes()
                .map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") })
                .collect::<String>()
        };
        forms.extend([hex(false), hex(true)]);
        let forms: Vec<_> = forms.into_iter().map(SecretText::new).collect();
        Self { bytes_max: secret.len() * FORM_FACTOR, forms }
    }

    /// Returns the bytes of the longest form.
    pub(super) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Returns the first `keep` bytes without the secret, and the number of places. A form that begins there is removed whole.
    pub(super) fn remove(&self, bytes: &[u8], keep: usize) -> (Vec<u8>, usize) {
        let (kept, places, _) = self.clean(bytes, keep);
        (kept, places)
    }

    /// Returns the first `keep` bytes without the secret, and the number of bytes that they were.
    pub(super) fn release(&self, bytes: &[u8], keep: usize) -> (Vec<u8>, usize) {
        let (kept, _, done) = self.clean(bytes, keep);
        (kept, done)
    }

    fn clean(&self, bytes: &[u8], keep: usize) -> (Vec<u8>, usize, usize) {
        let keep = keep.min(bytes.len());
        let (mut kept, mut done, mut places) = (Vec::with_capacity(keep), 0, 0);
        for found in self.places(bytes).into_iter().filter(|found| found.start < keep) {
            kept.extend(&bytes[done..found.start]);
            kept.extend(REMOVED.as_bytes());
            (done, places) = (found.end, places + 1);
        }
        kept.extend(bytes.get(done..keep).unwrap_or_default());
        (kept, places, done.max(keep))
    }

    /// Returns the text without the secret.
    pub(super) fn remove_from(&self, text: &str) -> String {
        let (kept, _) = self.remove(text.as_bytes(), text.len());
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// Returns the places of the secret, in order and without overlap.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let written = View::new(bytes);
        let once = written.decoded(percent);
        let mut places = self.places_in(&written);
        let (in_json, in_html) = (written.decoded(json), written.decoded(html));
        let views = [once.decoded(percent), once.decoded(json), once.decoded(html), once, written.decoded(blank)];
        for view in views.into_iter().chain([in_json.decoded(html), in_json, in_html.decoded(html), in_html]) {
            places.extend(self.places_in(&view));
        }
        places.sort_by_key(|place| place.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for place in places {
            match merged.last_mut() {
                Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
                Some(_) | None => merged.push(place),
            }
        }
        merged
    }

    fn places_in(&self, view: &View) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        if view.is_same {
            return places;
        }
        for form in &self.forms {
            let form = form.expose().as_bytes();
            for begin in memmem::find_iter(&view.bytes, form) {
                places.push(view.place(begin)..view.place(begin + form.len()));
            }
        }
        places
    }
}

/// A text after a decoding, with the place of each byte before it.
struct View {
    bytes: Vec<u8>,
    /// The place of each byte, and the end; empty if each byte is at its own place.
    places: Vec<usize>,
    /// Whether the decoding changed nothing.
    is_same: bool,
}

/// Reads the first byte of a text, and returns it with its length; `None` is a byte that is left out.
type Decode = fn(&[u8]) -> (Option<u8>, usize);

impl View {
    fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), places: Vec::new(), is_same: false }
    }

    fn place(&self, at: usize) -> usize {
        self.places.get(at).copied().unwrap_or(at)
    }

    fn decoded(&self, decode: Decode) -> Self {
        let (mut bytes, mut places, mut at) = (Vec::new(), Vec::new(), 0);
        while at < self.bytes.len() {
            let (byte, length) = decode(&self.bytes[at..]);
            if let Some(byte) = byte {
                bytes.push(byte);
                places.push(self.place(at));
            }
            at += length;
        }
        places.push(self.place(at));
        let is_same = bytes.len() == self.bytes.len();
        Self { bytes, places, is_same }
    }
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

fn percent(text: &[u8]) -> (Option<u8>, usize) {
    match text {
        [b'%', a, b, ..] => hex(&[*a, *b]).map_or((Some(b'%'), 1), |byte| (Some(byte), 3)),
        _ => (Some(text[0]), 1),
    }
}

fn json(text: &[u8]) -> (Option<u8>, usize) {
    match text {
        [b'\\', b'u', b'0', b'0', a, b, ..] => hex(&[*a, *b]).map_or((Some(b'\\'), 1), |byte| (Some(byte), 6)),
        [b'\\', letter @ (b'/' | b'\\' | b'"'), ..] => (Some(*letter), 2),
        _ => (Some(text[0]), 1),
    }
}

/// The characters of HTML with a name.
const NAMED: [(&[u8], u8); 5] =
    [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
/// Digits of a numbered character of HTML; a longer number is another text.
const DIGITS_MAX: usize = 6;

fn html(text: &[u8]) -> (Option<u8>, usize) {
    let plain = (Some(text[0]), 1);
    if text[0] != b'&' {
        return plain;
    }
    let is_named = |name: &[u8]| text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    if let Some((name, byte)) = NAMED.into_iter().find(|(name, _)| is_named(name)) {
        return (Some(byte), name.len());
    }
    let (begin, radix) = match text {
        [_, b'#', b'x' | b'X', ..] => (3, 16),
        [_, b'#', ..] => (2, 10),
        _ => return plain,
    };
    let number = &text[begin..];
    let length = number.iter().take(DIGITS_MAX + 1).take_while(|digit| digit.is_ascii_hexdigit()).count();
    let digits = std::str::from_utf8(&number[..length]).unwrap_or_default();
    match (u8::from_str_radix(digits, radix), number.get(length)) {
        (Ok(byte), Some(b';')) if length <= DIGITS_MAX => (Some(byte), begin + length + 1),
        _ => plain,
    }
}

/// Leaves out line breaks, and the zero bytes of UTF-16.
fn blank(text: &[u8]) -> (Option<u8>, usize) {
    (Some(text[0]).filter(|byte| !matches!(byte, 0 | b'\r' | b'\n')), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "s3cr/t+T\"ken~%41";
    /// A secret that HTML escapes.
    const MARKED: &str = "a&b<c>d\"e'f%41";

    fn cleaned(text: &str) -> String {
        Echo::new(&SecretText::new(SECRET.to_owned())).remove_from(text)
    }

    #[test]
    fn every_form_of_a_secret_is_removed() {
        let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let some: String = "s3cr%2Ft%2bT%22ken~%2541".to_owned();
        let twice = percent.replace('%', "%25");
        let json: String = SECRET.bytes().map(|byte| format!("\\u00{byte:02X}")).collect();
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        let wide: String = SECRET.chars().map(|letter| format!("{letter}\0")).collect();
        let folded = SECRET.replace('t', "t\r\n");
        let escaped = SECRET.replace('/', "\\/").replace('"', "\\\"");
        let forms = [SECRET.to_owned(), percent, some, twice, json, hex.to_uppercase(), hex, wide, folded, escaped];
        for form in forms {
            let text = format!("<a>{form}</a>");
            assert!(matches!(&*cleaned(&text), "<a>[secret removed]</a>" | "<a>[secret removed]\0</a>"), "{text:?}");
        }
    }

    #[test]
    fn secret_that_is_escaped_for_html_is_removed() {
        let echo = Echo::new(&SecretText::new(MARKED.to_owned()));
        let named = MARKED.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        let whole = |form: fn(u8) -> String| MARKED.bytes().map(form).collect::<String>();
        let forms = [
            named.replace('\'', "&apos;"),
            named.replace('\'', "&#39;"),
            named.replace('\'', "&#039;").replace("&quot;", "&#34;"),
            named.replace('\'', "&#x27;").replace("&amp;", "&AMP;").replace("&lt;", "&LT;"),
            named.replace('&', "&amp;").replace('\'', "&amp;#39;"),
            named.replace('%', "&#37;"),
            named.replace('\'', "&#39;").replace('&', "\\u0026"),
            named.replace('\'', "&#39;").replace('%', "%25").replace('&', "%26").replace(';', "%3B"),
            whole(|byte| format!("&#{byte};")),
            whole(|byte| format!("&#x{byte:X};")),
            whole(|byte| format!("&#x{byte:04x};")),
        ];
        for form in forms {
            assert_eq!(echo.remove_from(&format!("<p>{form}</p>")), "<p>[secret removed]</p>", "{form}");
            assert!(form.len() <= echo.bytes_max(), "{form}");
        }
        for other in ["&amp", "&#;", "&#x;", "&#99999999;", "&#300;", "&unknown;", "&"] {
            assert_eq!(echo.remove_from(other), other);
        }
    }

    #[test]
    fn base64_of_a_secret_is_removed_at_each_place() {
        for before in ["", "u", "us", "usr:", "user:"] {
            for after in ["", "x", "xy"] {
                for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                    let text = engine.encode(format!("{before}{SECRET}{after}"));
                    let kept = cleaned(&text);
                    assert!(kept.contains(REMOVED) && kept.len() <= REMOVED.len() + 14, "{text}: {kept}");
                }
            }
        }
    }

    #[test]
    fn form_at_the_cut_is_removed_whole() {
        let echo = Echo::new(&SecretText::new(SECRET.to_owned()));
        let text = format!("abc{SECRET}xyz");
        for keep in 4..3 + SECRET.len() {
            assert_eq!(echo.remove(text.as_bytes(), keep), (b"abc[secret removed]".to_vec(), 1), "{keep}");
        }
        assert_eq!(echo.remove(text.as_bytes(), 3), (b"abc".to_vec(), 0));
        assert_eq!(echo.remove(text.as_bytes(), 99), (b"abc[secret removed]xyz".to_vec(), 1));
    }

    proptest! {
        #[test]
        fn text_without_the_secret_is_kept(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let echo = Echo::new(&SecretText::new(SECRET.to_owned()));
            prop_assert_eq!(echo.remove(&bytes, bytes.len()), (bytes.clone(), 0));
        }

        #[test]
        fn secret_is_removed_in_any_mix_of_encodings(
            before in prop::collection::vec(any::<u8>(), 0..20),
            choices in prop::collection::vec(any::<bool>(), 16),
            after in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut text = before;
            for (byte, coded) in SECRET.bytes().zip(choices) {
                // A plain percent sign before digits would be another text.
                if coded || byte == b'%' { text.extend(format!("%{byte:02X}").bytes()) } else { text.push(byte) }
            }
            text.extend(after);
            let echo = Echo::new(&SecretText::new(SECRET.to_owned()));
            let (kept, places) = echo.remove(&text, text.len());
            prop_assert!(places > 0 && kept.windows(REMOVED.len()).any(|part| part == REMOVED.as_bytes()));
        }
    }
}
