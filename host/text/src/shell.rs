//! Words of a command line for a POSIX shell.

use std::borrow::Cow;

/// Returns a word in the form that a shell reads as one word: as it is if no character is special, else between single quotes.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/:@%+=,".contains(&b));
    match is_plain {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_with_special_characters_is_quoted_for_a_shell() {
        for plain in ["/srv/iron-claw_1.0", "127.0.0.1:8443", "a=b,c+d", "user@host%"] {
            assert_eq!(quoted(plain), plain);
        }
        for (word, expected) in [
            ("/srv/my home", "'/srv/my home'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("/simple/{package}/", "'/simple/{package}/'"),
            ("*", "'*'"),
            ("$HOME", "'$HOME'"),
            ("a;b", "'a;b'"),
            ("~", "'~'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
