//! Signatures of packages by keys of minisign, in both of its forms.
//!
//! Never trusts a key by itself: the caller chooses it.

use crate::archive::{open, too_large};
use crate::{Error, Name, PACKAGE_BYTES_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semver::Version;
use std::io::Read;
use std::path::Path;

/// Bytes of the text of a signature or of a key.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// The form that signs the bytes themselves, and the one that signs their hash.
const FORMS: [&[u8; 2]; 2] = [b"Ed", b"ED"];
/// Bytes of a public key with its form and id, and of a signature with them.
const KEY_BYTES: usize = 42;
const SIGNATURE_BYTES: usize = 74;
const BUFFER_BYTES: usize = 256 * 1024;
/// Pieces of a file that wait for the check of the signature.
const WAITING_MAX: usize = 4;

/// A public key of minisign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// Its text: one line of base64.
    pub text: String,
    /// Its id as minisign shows it: 16 upper-case hexadecimal digits.
    pub id: String,
}

impl PublicKey {
    /// Reads the text of a key: its base64 line, with or without the line of the comment.
    ///
    /// # Errors
    /// Refuses another text with [`Error::Unsigned`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refused = || Error::Unsigned("the text is no public key of minisign".to_owned());
        let lines = lines(text).ok_or_else(refused)?;
        let line = match lines.as_slice() {
            [line] => line,
            [comment, line] if comment.starts_with(UNTRUSTED) => line,
            _ => return Err(refused()),
        };
        let bytes = STANDARD.decode(line).map_err(|_| refused())?;
        if bytes.len() != KEY_BYTES
            || !bytes.starts_with(FORMS[0])
            || minisign_verify::PublicKey::from_base64(line).is_err()
        {
            return Err(refused());
        }
        Ok(Self { text: (*line).to_owned(), id: id(&bytes) })
    }

    fn decoded(&self) -> Result<minisign_verify::PublicKey, Error> {
        minisign_verify::PublicKey::from_base64(&self.text).map_err(|error| Error::Unsigned(error.to_string()))
    }
}

const UNTRUSTED: &str = "untrusted comment:";
const TRUSTED: &str = "trusted comment: ";

/// Returns the lines of a text of minisign.
fn lines(text: &str) -> Option<Vec<&str>> {
    (text.len() <= TEXT_BYTES_MAX).then(|| text.trim_end_matches(['\n', '\r']).lines().collect())
}

/// Returns the id in the bytes of a key or a signature, as minisign shows it.
fn id(bytes: &[u8]) -> String {
    bytes[2..10].iter().rev().map(|byte| format!("{byte:02X}")).collect()
}

/// A signature that was read and not checked.
pub(crate) struct Parsed {
    signature: minisign_verify::Signature,
    key_id: String,
    is_legacy: bool,
}

impl Parsed {
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        let refused = || Error::Unsigned("the text is no signature of minisign".to_owned());
        let lines = lines(text).ok_or_else(refused)?;
        let [untrusted, line, trusted, _] = lines.as_slice() else { return Err(refused()) };
        let bytes = STANDARD.decode(line).map_err(|_| refused())?;
        let is_known = FORMS.iter().any(|form| bytes.starts_with(*form));
        let has_comments = untrusted.starts_with(UNTRUSTED) && trusted.starts_with(TRUSTED);
        if bytes.len() != SIGNATURE_BYTES || !is_known || !has_comments {
            return Err(refused());
        }
        let signature = minisign_verify::Signature::decode(&lines.join("\n")).map_err(|_| refused())?;
        Ok(Self { signature, key_id: id(&bytes), is_legacy: bytes.starts_with(FORMS[0]) })
    }

    pub(crate) fn comment(&self) -> &str {
        self.signature.trusted_comment()
    }

    /// Returns it with the key that must have made it.
    pub(crate) fn by(self, key: &PublicKey) -> Result<Claim, Error> {
        match self.key_id == key.id {
            true => Ok(Claim { key: key.decoded()?, parsed: self }),
            false => Err(Error::Signature(format!("it is by the key {}, and not by {}", self.key_id, key.id))),
        }
    }
}

/// A signature with a key, without the bytes.
pub(crate) struct Claim {
    parsed: Parsed,
    key: minisign_verify::PublicKey,
}

impl Claim {
    /// Begins a check over bytes that come later.
    pub(crate) fn check(&self) -> Result<Check<'_>, Error> {
        match self.parsed.is_legacy {
            true => Ok(Check::Whole(self, Vec::new())),
            false => Ok(Check::Stream(Box::new(self.key.verify_stream(&self.parsed.signature).map_err(mismatch)?))),
        }
    }

    /// Checks the bytes that `work` passes on, on another processor while `work` goes through them.
    ///
    /// # Errors
    /// That of `work`, else that of the signature.
    pub(crate) fn beside<T>(&self, work: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<T, Error>) -> Result<T, Error> {
        let mut check = self.check()?;
        let (send, receive) = std::sync::mpsc::sync_channel::<Vec<u8>>(WAITING_MAX);
        std::thread::scope(|scope| {
            let checking = std::thread::Builder::new().spawn_scoped(scope, move || {
                receive.iter().for_each(|bytes| check.update(&bytes));
                check.finish()
            });
            let failed = |source| Error::Io { path: "a thread for the signature".to_owned(), source };
            let checking = checking.map_err(failed)?;
            // A send fails only if the thread panicked, which the join reports.
            let done = work(&mut |bytes| drop(send.send(bytes.to_vec())))?;
            drop(send);
            checking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(done)
        })
    }

    pub(crate) fn comment(&self) -> &str {
        self.parsed.comment()
    }
}

fn mismatch(error: minisign_verify::Error) -> Error {
    Error::Signature(error.to_string())
}

/// A check that gets the signed bytes in pieces.
pub(crate) enum Check<'a> {
    /// Hashes the bytes.
    Stream(Box<minisign_verify::StreamVerifier<'a>>),
    /// Keeps the bytes: the legacy form signs all of them at once.
    Whole(&'a Claim, Vec<u8>),
}

impl Check<'_> {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Stream(verifier) => verifier.update(bytes),
            Self::Whole(_, whole) => whole.extend_from_slice(bytes),
        }
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        let outcome = match self {
            Self::Stream(mut verifier) => verifier.finalize(),
            Self::Whole(claim, whole) => claim.key.verify(&whole, &claim.parsed.signature, true),
        };
        outcome.map_err(mismatch)
    }
}

/// Returns the id of the key that a signature names.
///
/// # Errors
/// Refuses a text that is no signature with [`Error::Unsigned`].
pub fn key_id(signature: &str) -> Result<String, Error> {
    Ok(Parsed::read(signature)?.key_id)
}

/// Checks a signature over a file, in either form, and returns its trusted comment.
///
/// # Errors
/// Refuses as [`Error::Unsigned`] and [`Error::Signature`] say; [`Error::TooLarge`] for a file that is larger than a package.
pub fn verify(file: &Path, signature: &str, key: &PublicKey) -> Result<String, Error> {
    let claim = Parsed::read(signature)?.by(key)?;
    let mut check = claim.check()?;
    let mut reader = open(file)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut total = 0;
    loop {
        let got = reader.read(&mut buffer).map_err(|error| Error::io(file, error))?;
        if got == 0 {
            break;
        }
        total += got as u64;
        if total > PACKAGE_BYTES_MAX {
            return Err(too_large());
        }
        check.update(&buffer[..got]);
    }
    check.finish()?;
    Ok(claim.comment().to_owned())
}

/// [`verify`] for bytes in memory.
///
/// # Errors
/// As [`verify`].
pub fn verify_bytes(bytes: &[u8], signature: &str, key: &PublicKey) -> Result<String, Error> {
    let claim = Parsed::read(signature)?.by(key)?;
    let mut check = claim.check()?;
    check.update(bytes);
    check.finish()?;
    Ok(claim.comment().to_owned())
}

/// Returns the trusted comment that the signature of a package must have.
pub fn comment_of(name: &Name, version: &Version) -> String {
    format!("skill {name} {version}")
}

/// Checks that a trusted comment names this skill and version.
///
/// # Errors
/// [`Error::Comment`] with both.
pub fn check_comment(found: &str, name: &Name, version: &Version) -> Result<(), Error> {
    let expected = comment_of(name, version);
    match found == expected {
        true => Ok(()),
        false => Err(Error::Comment { found: found.chars().take(COMMENT_CHARACTERS_MAX).collect(), expected }),
    }
}

/// Characters of a comment in an error.
const COMMENT_CHARACTERS_MAX: usize = 200;

#[cfg(test)]
mod tests;
