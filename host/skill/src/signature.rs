//! Signatures of packages by keys of minisign, in both of its forms.

use crate::{Error, Name};
use semver::Version;
use std::path::Path;

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
    pub fn parse(_text: &str) -> Result<Self, Error> {
        unreachable!("built in the next commit")
    }
}

/// Returns the id of the key that a signature names.
///
/// # Errors
/// Refuses a text that is no signature with [`Error::Unsigned`].
pub fn key_id(_signature: &str) -> Result<String, Error> {
    unreachable!("built in the next commit")
}

/// Checks a signature over a file, in either form, and returns its trusted comment.
///
/// # Errors
/// Refuses as [`Error::Unsigned`] and [`Error::Signature`] say.
pub fn verify(_file: &Path, _signature: &str, _key: &PublicKey) -> Result<String, Error> {
    unreachable!("built in the next commit")
}

/// Returns the trusted comment that the signature of a package must have.
pub fn comment_of(name: &Name, version: &Version) -> String {
    format!("skill {name} {version}")
}
