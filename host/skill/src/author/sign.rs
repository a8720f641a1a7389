//! Keys and signatures of authors, as the program minisign has them.

use crate::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey};
use minisign::{PublicKey, SecretKeyBox};
use std::io::Read;
use zeroize::Zeroizing;

/// The place of the key of Ed25519, with its public half, in the bytes of a secret key.
const ED25519_AT: usize = 62;
const ED25519_BYTES: usize = 64;
/// Bytes of a secret key with all that belongs to it.
const SECRET_BYTES: usize = 158;
const NO_KEY: &str = "the text is no secret key of minisign";
/// The form of a signature over the bytes themselves, and of a key.
const LEGACY: &[u8] = b"Ed";
const KEY_ID_BYTES: usize = 8;
/// The line before a signature.
const UNTRUSTED: &str = "signature from ironctl";

/// A secret key of minisign, ready to sign.
pub struct SecretKey(minisign::SecretKey);

/// A new key: the texts of its two files.
pub struct KeyPair {
    pub secret: Zeroizing<String>,
    pub public: String,
    /// Its id as minisign shows it.
    pub id: String,
}

impl SecretKey {
    /// Returns whether the text of a key needs a password.
    pub fn needs_password(text: &str) -> bool {
        let bytes = text.lines().nth(1).and_then(|line| STANDARD.decode(line).ok()).map(Zeroizing::new);
        bytes.is_some_and(|bytes| bytes.get(2..4) == Some(b"Sc"))
    }

    /// Reads the text of a key.
    ///
    /// # Errors
    /// [`Error::Unsigned`] for another text and for a wrong password.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Self, Error> {
        let key = match (Self::needs_password(text), password) {
            (true, None) => return Err(Error::Unsigned("the secret key needs its password".to_owned())),
            (true, Some(password)) => {
                let file = SecretKeyBox::from_string(text).map_err(refused)?;
                file.into_secret_key(Some(password.to_owned())).map_err(refused)?
            }
            (false, _) => plain_key(text).ok_or_else(|| Error::Unsigned(NO_KEY.to_owned()))?,
        };
        let key = Self(key);
        key.ed25519()?;
        Ok(key)
    }

    /// Refuses a key whose halves do not belong together.
    fn ed25519(&self) -> Result<SigningKey, Error> {
        let bytes = Zeroizing::new(self.0.to_bytes());
        let pair: Option<&[u8; ED25519_BYTES]> = bytes.get(ED25519_AT..).and_then(<[u8]>::first_chunk);
        let key = pair.and_then(|pair| SigningKey::from_keypair_bytes(pair).ok());
        key.ok_or_else(|| Error::Unsigned("the secret key is damaged".to_owned()))
    }

    /// Returns the text of its public key.
    ///
    /// # Errors
    /// [`Error::Unsigned`] for a damaged key.
    pub fn public(&self) -> Result<String, Error> {
        let public = PublicKey::from_secret_key(&self.0).and_then(|key| key.to_box()).map_err(refused)?;
        Ok(public.into_string())
    }

    /// Signs bytes itself: the crate writes the prehashed form only.
    fn legacy(&self, message: &[u8], comment: &str) -> Result<String, Error> {
        let key = self.ed25519()?;
        let signature = key.sign(message).to_bytes();
        let global = key.sign(&[signature.as_slice(), comment.as_bytes()].concat()).to_bytes();
        let id = &self.0.keynum()[..KEY_ID_BYTES];
        let line = STANDARD.encode([LEGACY, id, &signature].concat());
        Ok(format!("untrusted comment: {UNTRUSTED}\n{line}\ntrusted comment: {comment}\n{}\n", STANDARD.encode(global)))
    }
}

/// Reads a key without encryption. The program minisign leaves its checksum empty, and so the crate refuses it.
fn plain_key(text: &str) -> Option<minisign::SecretKey> {
    let bytes = Zeroizing::new(STANDARD.decode(text.lines().nth(1)?).ok()?);
    let is_plain = bytes.len() == SECRET_BYTES && bytes.starts_with(LEGACY) && bytes[2..4] == [0, 0];
    is_plain.then(|| minisign::SecretKey::from_bytes(&bytes).ok()).flatten()
}

/// Makes a key, encrypted if there is a password.
///
/// # Errors
/// [`Error::Unsigned`] if the system gives no random bytes.
pub fn generate_key(password: Option<&str>) -> Result<KeyPair, Error> {
    let pair = match password {
        Some(password) => minisign::KeyPair::generate_encrypted_keypair(Some(password.to_owned())),
        None => minisign::KeyPair::generate_unencrypted_keypair(),
    };
    let pair = pair.map_err(refused)?;
    let comment =
        if password.is_some() { "encrypted secret key of a skill author" } else { "secret key of a skill author" };
    let secret = pair.sk.to_box(Some(comment)).map_err(refused)?.into_string();
    let public = pair.pk.to_box().map_err(refused)?.into_string();
    let id = crate::signature::PublicKey::parse(&public)?.id;
    Ok(KeyPair { secret: Zeroizing::new(secret), public, id })
}

/// Signs bytes with a trusted comment, in the prehashed form or the legacy one. Returns the text of the signature.
///
/// # Errors
/// [`Error::Unsigned`] if the bytes cannot be read or the key is damaged.
pub fn sign(mut bytes: impl Read, key: &SecretKey, comment: &str, is_legacy: bool) -> Result<String, Error> {
    if is_legacy {
        let mut whole = Vec::new();
        bytes.read_to_end(&mut whole).map_err(|error| Error::Unsigned(error.to_string()))?;
        return key.legacy(&whole, comment);
    }
    Ok(minisign::sign(None, &key.0, bytes, Some(comment), Some(UNTRUSTED)).map_err(refused)?.into_string())
}

fn refused(error: minisign::PError) -> Error {
    Error::Unsigned(error.to_string())
}
