//! The stored form of keys and secrets, wrapped under a key from the master key, and of bodies under the keys of sessions.
//!
//! A sealed value opens under its own name alone. Never touches a database. See `key_rotation` of the host.

use super::{Bytes, Error, KEY_BYTES, SecretText, random, wipe_stack};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use ironclaw_contract::ids::{ItemId, SessionId};
use ironclaw_contract::seam::crypt::SessionKey;
use zeroize::{Zeroize, Zeroizing};

const NONCE_BYTES: usize = 24;

const TAG_BYTES: usize = 16;

/// Key that wraps and unwraps the keys of sessions and the ledger, and secrets.
pub struct WrappingKey(pub(super) Bytes);

/// A fresh signing key of the ledger.
pub struct LedgerSecret {
    /// Name of the key: the public key, 64 hex characters.
    pub name: String,
    pub secret: Zeroizing<[u8; KEY_BYTES]>,
    /// The secret half, wrapped.
    pub stored: Vec<u8>,
}

/// The two keys of a session: its sandbox gets one, and the other never leaves the host.
pub struct SessionKeys {
    /// Key of both queues; the sandbox gets it.
    pub queue: SessionKey,
    /// Key of the bodies in `state.db`; the sandbox does not get it.
    pub content: ContentKey,
}

impl WrappingKey {
    /// Makes two fresh keys and their stored form.
    pub fn make(&self, session: SessionId) -> Result<(SessionKeys, [Vec<u8>; 2]), Error> {
        let (queue, content) = (Zeroizing::new(random()?), Bytes::random()?);
        let stored = [
            seal(&self.0.0, queue.as_slice(), format!("queue key of {session}").as_bytes())?,
            seal(&self.0.0, content.0.as_slice(), format!("content key of {session}").as_bytes())?,
        ];
        Ok((SessionKeys { queue: SessionKey::new(*queue), content: ContentKey(content) }, stored))
    }

    /// Opens the stored key of the queues.
    pub fn queue_key(&self, session: SessionId, stored: &[u8]) -> Result<SessionKey, Error> {
        Ok(SessionKey::new(*self.unwrap(stored, format!("queue key of {session}"), "the wrapped queue key")?))
    }

    /// Opens the stored key of the bodies.
    pub fn content_key(&self, session: SessionId, stored: &[u8]) -> Result<ContentKey, Error> {
        let opened = self.unwrap(stored, format!("content key of {session}"), "the wrapped content key")?;
        let copied = Bytes::written(|bytes| {
            bytes.copy_from_slice(opened.as_slice());
            Ok::<_, Error>(())
        });
        Ok(ContentKey(copied?))
    }

    /// Makes a fresh signing key of the ledger and its stored form. `name` computes the name of the key.
    pub fn make_ledger_key(&self, name: impl FnOnce(&[u8; KEY_BYTES]) -> String) -> Result<LedgerSecret, Error> {
        let secret = Zeroizing::new(random()?);
        let name = name(&secret);
        let stored = seal(&self.0.0, secret.as_slice(), format!("ledger key {name}").as_bytes())?;
        Ok(LedgerSecret { name, secret, stored })
    }

    /// Opens the stored signing key of the ledger with this name.
    pub fn ledger_key(&self, name: &str, stored: &[u8]) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
        self.unwrap(stored, format!("ledger key {name}"), "the wrapped key of the ledger")
    }

    /// Wraps the two stored keys of a session under another key.
    pub fn rewrap(&self, other: &Self, session: SessionId, stored: &[Vec<u8>; 2]) -> Result<[Vec<u8>; 2], Error> {
        let [queue, content] = stored;
        Ok([
            self.pass(other, queue, format!("queue key of {session}"), "the wrapped queue key")?,
            self.pass(other, content, format!("content key of {session}"), "the wrapped content key")?,
        ])
    }

    /// Wraps the stored signing key of the ledger with this name under another key.
    pub fn rewrap_ledger_key(&self, other: &Self, name: &str, stored: &[u8]) -> Result<Vec<u8>, Error> {
        self.pass(other, stored, format!("ledger key {name}"), "the wrapped key of the ledger")
    }

    /// Wraps a secret of the operator for storage under its name. It does not open under another name.
    pub fn wrap_secret(&self, name: &str, text: &SecretText) -> Result<Vec<u8>, Error> {
        seal(&self.0.0, text.expose().as_bytes(), format!("secret {name}").as_bytes())
    }

    /// Opens the stored secret with this name.
    pub fn secret(&self, name: &str, stored: &[u8]) -> Result<SecretText, Error> {
        let sealed = Error::Sealed("a stored secret");
        let Some(opened) = open(&self.0.0, stored, format!("secret {name}").as_bytes()) else { return Err(sealed) };
        match String::from_utf8(opened) {
            Ok(text) => Ok(SecretText::new(text)),
            Err(error) => {
                error.into_bytes().zeroize();
                Err(sealed)
            }
        }
    }

    /// Wraps the stored secret with this name under another key.
    pub fn rewrap_secret(&self, other: &Self, name: &str, stored: &[u8]) -> Result<Vec<u8>, Error> {
        let text = self.secret(name, stored)?;
        let wrapped = other.wrap_secret(name, &text)?;
        if other.secret(name, &wrapped)?.expose() != text.expose() {
            return Err(Error::Sealed("a stored secret"));
        }
        Ok(wrapped)
    }

    /// Wraps a stored key under the other key, and opens the result again to compare it.
    fn pass(&self, other: &Self, stored: &[u8], context: String, what: &'static str) -> Result<Vec<u8>, Error> {
        let key = self.unwrap(stored, context.clone(), what)?;
        let wrapped = seal(&other.0.0, key.as_slice(), context.as_bytes())?;
        if *other.unwrap(&wrapped, context, what)? != *key {
            return Err(Error::Sealed(what));
        }
        Ok(wrapped)
    }

    fn unwrap(&self, stored: &[u8], context: String, what: &'static str) -> Result<Zeroizing<[u8; KEY_BYTES]>, Error> {
        let opened = Zeroizing::new(open(&self.0.0, stored, context.as_bytes()).ok_or(Error::Sealed(what))?);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if opened.len() != KEY_BYTES {
            return Err(Error::Sealed(what));
        }
        key.copy_from_slice(&opened);
        Ok(key)
    }
}

/// Key that encrypts the bodies of one session in `state.db`.
pub struct ContentKey(Bytes);

impl ContentKey {
    /// Encrypts the body of this item into its stored form.
    pub fn seal(&self, item: ItemId, body: &[u8]) -> Result<Vec<u8>, Error> {
        seal(&self.0.0, body, item.to_string().as_bytes())
    }

    /// Decrypts the body of this item.
    pub fn open(&self, item: ItemId, stored: &[u8]) -> Result<Vec<u8>, Error> {
        open(&self.0.0, stored, item.to_string().as_bytes()).ok_or(Error::Sealed("the body of an item"))
    }
}

/// Key that encrypts backups.
pub struct BackupKey {
    key: Bytes,
    name: [u8; BackupKey::NAME_BYTES],
}

impl BackupKey {
    /// Bytes of a name.
    pub const NAME_BYTES: usize = 8;

    /// Bytes that an encrypted part has in addition to its content: nonce and tag.
    pub const OVERHEAD_BYTES: usize = NONCE_BYTES + TAG_BYTES;

    pub(super) fn new(key: Bytes, name: [u8; Self::NAME_BYTES]) -> Self {
        Self { key, name }
    }

    /// Returns the fingerprint of the master key, from which this key is derived.
    pub fn name(&self) -> [u8; Self::NAME_BYTES] {
        self.name
    }

    /// Encrypts a part of a backup. It opens with this context alone.
    pub fn seal(&self, context: &[u8], plain: &[u8]) -> Result<Vec<u8>, Error> {
        seal(&self.key.0, plain, context)
    }

    /// Decrypts a part of a backup.
    pub fn open(&self, context: &[u8], stored: &[u8]) -> Result<Vec<u8>, Error> {
        open(&self.key.0, stored, context).ok_or(Error::Sealed("a part of the backup"))
    }
}

/// Encrypts with XChaCha20-Poly1305, and puts the random nonce in front.
fn seal(key: &[u8; KEY_BYTES], plain: &[u8], context: &[u8]) -> Result<Vec<u8>, Error> {
    let nonce = random::<NONCE_BYTES>()?;
    let cipher = XChaCha20Poly1305::new(key.into());
    let sealed = cipher.encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: context });
    drop(cipher);
    wipe_stack();
    let mut stored = nonce.to_vec();
    stored.extend(sealed.expect("a body is far below the cipher's limit of 256 GiB"));
    Ok(stored)
}

fn open(key: &[u8; KEY_BYTES], stored: &[u8], context: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = stored.split_first_chunk::<NONCE_BYTES>()?;
    let cipher = XChaCha20Poly1305::new(key.into());
    let opened = cipher.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: context }).ok();
    drop(cipher);
    wipe_stack();
    opened
}
