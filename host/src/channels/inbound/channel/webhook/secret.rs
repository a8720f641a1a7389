//! The signing secret of a webhook, in the forms in which other programs show theirs.
//!
//! A text with `whsec_` is base64 and gives the bytes that it encodes; any other text gives its own bytes. Never repeats a part of a
//! secret in a sentence. See [`super::signature`].

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::{Hmac, KeyInit};
use ironclaw_state::keys::{self, SecretText};
use sha2::Sha256;
use std::ops::RangeInclusive;
use zeroize::Zeroizing;

/// Prefix of a secret that is base64.
const PREFIX: &str = "whsec_";

/// Version that some products write in front of the prefix.
const VERSION: &str = "v1";

/// Prefixes of the keys of the asymmetric scheme, public and private.
const ASYMMETRIC: [&str; 3] = ["whpk_", "whsk_", "v1a,"];

/// Bytes of a fresh secret.
const FRESH_BYTES: usize = 32;

/// Bytes that a base64 secret encodes, as in the specification.
const ENCODED_BYTES: RangeInclusive<usize> = 24..=64;

/// Bytes of a secret that is used as text: the same least, and room for 64 bytes in hex.
const TEXT_BYTES: RangeInclusive<usize> = 24..=128;

/// Secrets of one channel: the present one, and the next one while the other side replaces it.
pub(super) const KEYS_MAX: usize = 2;

/// Other readings of a secret that a wrong sender may sign with.
pub(super) const READINGS_MAX: usize = 2;

type Bytes = Zeroizing<Vec<u8>>;

/// A signing secret: does not print, does not clone, wipes itself.
pub struct Secret {
    keys: Vec<Key>,
}

/// One key, with the bytes that its text could also mean.
pub(super) struct Key {
    bytes: Bytes,
    others: Vec<Bytes>,
    /// `true` if the bytes are those of the text.
    pub is_text: bool,
}

impl Secret {
    /// Makes a fresh secret in its text form.
    pub fn fresh() -> Result<SecretText, keys::Error> {
        let bytes = Zeroizing::new(keys::random::<FRESH_BYTES>()?);
        let text = Zeroizing::new(STANDARD.encode(bytes.as_slice()));
        Ok(SecretText::new(format!("{PREFIX}{}", text.as_str())))
    }

    /// Parses a secret from its text form.
    ///
    /// # Errors
    /// A sentence that names the rule, and nothing of the secret.
    pub fn read(text: &SecretText) -> Result<Self, String> {
        let text = text.expose().trim();
        if text.is_empty() {
            return Err("the secret is empty".to_owned());
        }
        if ASYMMETRIC.iter().any(|prefix| text.starts_with(prefix)) {
            let words = "this is a key of the asymmetric scheme (v1a), and a channel takes a shared secret";
            return Err(format!("{words}, such as {PREFIX}…"));
        }
        let parts: Vec<&str> =
            text.split([' ', '|', ',']).filter(|part| !part.is_empty() && *part != VERSION).collect();
        if !parts.iter().any(|part| part.starts_with(PREFIX)) {
            return Ok(Self { keys: vec![Key::from_text(text)?] });
        }
        if parts.len() > KEYS_MAX {
            let words = "secrets, and a channel has at most";
            return Err(format!("the list has {} {words} {KEYS_MAX}: the present one and the next one", parts.len()));
        }
        let keys = parts.iter().map(|part| Key::from_encoded(part)).collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }

    /// Returns a secret for a channel that does not exist: its check takes as long as the check of a wrong signature, and always fails.
    pub fn placeholder() -> Self {
        let key = || Key { bytes: Zeroizing::new(vec![0; FRESH_BYTES]), others: Vec::new(), is_text: false };
        Self { keys: vec![key()] }
    }

    /// Returns a remark on a secret that a program may also read in another way.
    pub fn remark(&self) -> Option<&'static str> {
        let is_unclear = |key: &Key| key.is_text && !key.others.is_empty();
        self.keys.iter().any(is_unclear).then_some(
            "the secret has no whsec_ in front, so its text signs, as it is typed; if the other side decodes it as base64, remove the \
             channel and add it again with whsec_ in front of the secret",
        )
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }
}

impl Key {
    /// Reads one secret of a list.
    fn from_encoded(text: &str) -> Result<Self, String> {
        let Some(encoded) = text.strip_prefix(PREFIX) else {
            return Err(format!("a list of secrets has the form {PREFIX}… {PREFIX}…, and one part has no {PREFIX}"));
        };
        let bytes = decoded(encoded).ok_or_else(|| {
            format!("the text after {PREFIX} is not base64 (of either alphabet, with or without padding)")
        })?;
        check_length(bytes.len(), &ENCODED_BYTES)?;
        let others = [text, encoded].map(|text| Zeroizing::new(text.as_bytes().to_vec())).into();
        Ok(Self { bytes, others, is_text: false })
    }

    /// Reads a secret whose text signs.
    fn from_text(text: &str) -> Result<Self, String> {
        if text.chars().any(|character| character.is_control() || character.is_whitespace()) {
            return Err(format!(
                "a secret without {PREFIX} is used as text, and has no blanks and no control characters"
            ));
        }
        check_length(text.len(), &TEXT_BYTES)?;
        let others = [decoded_hex(text), decoded(text)].into_iter().flatten().collect();
        Ok(Self { bytes: Zeroizing::new(text.as_bytes().to_vec()), others, is_text: true })
    }

    /// Returns the MAC under this key.
    pub fn mac(&self) -> Hmac<Sha256> {
        mac(&self.bytes)
    }

    /// Returns the MAC under each other reading of the text, filled up to a fixed number with a key that no sender has.
    pub fn other_macs(&self) -> [(Hmac<Sha256>, bool); READINGS_MAX] {
        std::array::from_fn(|place| match self.others.get(place) {
            Some(bytes) => (mac(bytes), true),
            None => (mac(&[]), false),
        })
    }
}

/// Decodes base64 of either alphabet, with or without padding.
fn decoded(text: &str) -> Option<Bytes> {
    let standard = |character| match character {
        '-' => '+',
        '_' => '/',
        other => other,
    };
    let plain = Zeroizing::new(text.trim_end_matches('=').chars().map(standard).collect::<String>());
    STANDARD_NO_PAD.decode(plain.as_bytes()).ok().map(Zeroizing::new)
}

fn decoded_hex(text: &str) -> Option<Bytes> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    // No sign: `from_str_radix` reads `+f` as a number.
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| (0..text.len()).step_by(2).map(pair).collect::<Option<Vec<_>>>()).flatten().map(Zeroizing::new)
}

fn check_length(found: usize, range: &RangeInclusive<usize>) -> Result<(), String> {
    if found < *range.start() {
        return Err(format!("the secret has {found} bytes, and a signing secret has at least {}", range.start()));
    }
    if found > *range.end() {
        return Err(format!("the secret has {found} bytes, and a signing secret has at most {}", range.end()));
    }
    Ok(())
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Secret, String> {
        Secret::read(&SecretText::new(text.to_owned()))
    }

    /// Returns the base64 of so many bytes that use both letters of each alphabet.
    fn encoded(bytes: usize) -> String {
        STANDARD.encode(
            vec![0xfb; bytes].iter().enumerate().map(|(n, b)| if n % 3 == 1 { 0xff } else { *b }).collect::<Vec<u8>>(),
        )
    }

    #[test]
    fn secrets_of_the_usual_forms_give_the_bytes_that_they_mean() {
        let padded = encoded(32);
        let bare = padded.trim_end_matches('=');
        let urlsafe = padded.replace('+', "-").replace('/', "_");
        assert!(padded.ends_with('=') && padded.contains('+') && padded.contains('/'), "{padded}");
        let meant = STANDARD.decode(&padded).expect("base64");
        for text in [
            format!("whsec_{padded}"),
            format!("whsec_{bare}"),
            format!("whsec_{urlsafe}"),
            format!("whsec_{}", urlsafe.trim_end_matches('=')),
            format!("v1,whsec_{padded}"),
            format!("  whsec_{padded}\n"),
        ] {
            let secret = read(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!((secret.keys.len(), secret.keys[0].bytes.as_slice()), (1, meant.as_slice()), "{text}");
            assert_eq!(secret.remark(), None, "{text}");
        }
        let other = encoded(24);
        for text in [
            format!("v1,whsec_{padded}|v1,whsec_{other}"),
            format!("v1,whsec_{padded} v1,whsec_{other}"),
            format!("whsec_{padded} whsec_{other}"),
            format!("v1,whsec_{padded},v1,whsec_{other}"),
        ] {
            assert_eq!(read(&text).map(|secret| secret.keys.len()).ok(), Some(2), "{text}");
        }
        let hex = "0f".repeat(32);
        for text in ["correct-horse-battery-staple!", &hex, &"0F".repeat(64), "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            let secret = read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(secret.keys[0].bytes.as_slice(), text.as_bytes(), "a text signs as it is typed");
            assert_eq!(secret.remark().is_some(), !text.contains('!'), "{text}");
        }
    }

    #[test]
    fn a_malformed_secret_is_refused_by_its_rule_and_not_repeated() {
        let short = format!("whsec_{}", encoded(20));
        let long = format!("whsec_{}", encoded(65));
        let three = format!("{0} {0} {0}", format!("whsec_{}", encoded(24)));
        let mixed = format!("whsec_{} other-secret-of-the-receiver", encoded(24));
        for (text, rule) in [
            ("", "the secret is empty"),
            ("  \n", "the secret is empty"),
            ("whsec_", "the secret has 0 bytes, and a signing secret has at least 24"),
            ("whsec_!!!!", "the text after whsec_ is not base64"),
            ("whsec_AAAA", "the secret has 3 bytes, and a signing secret has at least 24"),
            (&short, "the secret has 20 bytes, and a signing secret has at least 24"),
            (&long, "the secret has 65 bytes, and a signing secret has at most 64"),
            ("zinnober", "the secret has 8 bytes, and a signing secret has at least 24"),
            (&"x".repeat(129), "the secret has 129 bytes, and a signing secret has at most 128"),
            ("a secret with blanks in it is a sentence", "a secret without whsec_ is used as text"),
            ("whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "this is a key of the asymmetric scheme"),
            ("v1a,whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "this is a key of the asymmetric scheme"),
            (&three, "the list has 3 secrets"),
            (&mixed, "a list of secrets has the form"),
        ] {
            let Err(words) = read(text) else { panic!("{text} was accepted") };
            assert!(words.starts_with(rule), "{text}: {words}");
            let kept = text.trim().trim_start_matches("whsec_");
            assert!(kept.len() < 8 || !words.contains(kept), "{words}");
        }
    }
}
