//! The index of a source.

use crate::{Error, Name, Version};
use ironclaw_contract::canonical::Digest;
use serde::{Deserialize, Serialize};

/// An index.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its number.
    pub serial: u64,
    /// Its packages.
    pub skills: Vec<Entry>,
    /// Its revocations.
    #[serde(default)]
    pub revoked: Revoked,
}

/// A package.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name.
    pub name: Name,
    /// Version.
    pub version: Version,
    /// File.
    pub file: String,
    /// Bytes.
    pub bytes: u64,
    /// Digest.
    pub digest: Digest,
    /// Description.
    pub description: String,
}

/// Revocations.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    /// Keys.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Versions.
    #[serde(default)]
    pub skills: Vec<RevokedVersion>,
}

/// A revoked version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedVersion {
    /// Name.
    pub name: Name,
    /// Version.
    pub version: Version,
}

impl Index {
    /// Reads.
    ///
    /// # Errors
    /// Malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let limits = ironclaw_contract::canonical::Limits::bytes(1 << 20);
        ironclaw_contract::canonical::from_slice(bytes, limits)
            .map_err(|error| Error::Manifest { file: "index.json".to_owned(), what: error.to_string() })
    }
}
