//! Keyed digests: a value is recognised again, and its digest says nothing to a reader without the key.

use super::{Error, random};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// The key of digests of values.
pub struct DigestKey(Zeroizing<[u8; KEY_BYTES]>);

impl DigestKey {
    /// Makes a fresh key.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn fresh() -> Result<Self, Error> {
        random().map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// Reads a key from its text.
    ///
    /// # Errors
    /// The text is no key.
    pub fn read(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Sealed("the key of digests");
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let is_hex = text.len() == 2 * KEY_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (at, byte) in key.iter_mut().enumerate().filter(|_| is_hex) {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong())?;
        }
        is_hex.then_some(Self(key)).ok_or_else(wrong)
    }

    /// Returns the key as 64 hex characters, to be stored.
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the first 64 bits of the digest of a text.
    pub fn digest(&self, text: &str) -> i64 {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_slice()).expect("HMAC takes any key");
        mac.update(text.as_bytes());
        let digest: [u8; 32] = mac.finalize().into_bytes().into();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        i64::from_be_bytes(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_follows_from_the_key_and_the_text() {
        let key = DigestKey::fresh().expect("random bytes");
        let same = DigestKey::read(&key.text()).expect("a key");
        assert_eq!(key.digest("a"), same.digest("a"));
        assert_ne!(key.digest("a"), key.digest("b"));
        assert_ne!(key.digest("a"), DigestKey::fresh().expect("random bytes").digest("a"));
        for wrong in ["", "00", &"g".repeat(64), &"0".repeat(66)] {
            assert!(DigestKey::read(wrong).is_err(), "{wrong}");
        }
    }
}
