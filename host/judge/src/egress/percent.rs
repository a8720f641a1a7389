//! Percent-encoding (RFC 3986): the normal form of a path or a query, and the text behind it.
//!
//! Never decodes a character that is a delimiter somewhere: `%2F` and `/` stay different.

/// Returns whether a byte is the same with and without its encoding.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Returns whether a byte may be in a segment of a path without encoding.
pub(super) const fn is_segment(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'@')
}

/// Returns whether a byte may be in a path without encoding.
pub(super) const fn is_path(byte: u8) -> bool {
    is_segment(byte) || byte == b'/'
}

/// Returns whether a byte may be in a query without encoding.
pub(super) const fn is_query(byte: u8) -> bool {
    (is_path(byte) || byte == b'?') && byte != b'\''
}

/// Returns the normal form of a text: encoded only where it must be, in upper case. `None` if a `%` begins no encoding.
pub(super) fn normal(text: &str, plain: fn(u8) -> bool) -> Option<String> {
    let mut normal = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let coded = hex(bytes.next()?)? << 4 | hex(bytes.next()?)?;
            push(&mut normal, coded, is_unreserved(coded));
        } else {
            push(&mut normal, byte, plain(byte));
        }
    }
    Some(normal)
}

/// Returns the encoding of a text that has no encoding yet.
pub(super) fn encoded(text: &str, plain: fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        push(&mut encoded, byte, plain(byte));
    }
    encoded
}

/// Returns the text behind an encoding. `None` if a `%` begins no encoding, or if the text is not UTF-8.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let plain = if byte == b'%' { hex(bytes.next()?)? << 4 | hex(bytes.next()?)? } else { byte };
        decoded.push(plain);
    }
    String::from_utf8(decoded).ok()
}

fn push(text: &mut String, byte: u8, plain: bool) {
    if plain && byte.is_ascii() {
        text.push(char::from(byte));
    } else {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        text.push('%');
        text.extend(digits.map(char::from));
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_keep_their_encoding() {
        assert_eq!(normal("/%7euser/a%2fb%2Cc/ü", is_path).as_deref(), Some("/~user/a%2Fb%2Cc/%C3%BC"));
        assert_eq!(normal("q='a|b'&x=%27", is_query).as_deref(), Some("q=%27a%7Cb%27&x=%27"));
    }

    #[test]
    fn percent_sign_without_two_digits_is_refused() {
        for bad in ["%", "a%2", "%zz", "%%41", "%+1"] {
            assert_eq!(normal(bad, is_path), None, "{bad}");
            assert_eq!(decoded(bad), None, "{bad}");
        }
        assert_eq!(decoded("%ff"), None);
    }
}
