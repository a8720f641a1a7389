//! A package: a tar archive without compression.

use crate::{Error, Manifest};
use ironclaw_contract::canonical::Digest;
use std::path::Path;

/// A package whose every entry, digest and bound was checked. Its signature is checked apart: see [`crate::signature`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The manifest.
    pub manifest: Manifest,
    /// The description of `SKILL.md`.
    pub description: String,
    /// The text of `SKILL.md` after its front matter.
    pub instructions: String,
    /// The digest of the whole archive.
    pub digest: Digest,
    /// Bytes of the whole archive.
    pub bytes: u64,
}

impl Package {
    /// Reads and checks an archive in one pass, without keeping more than one file in memory.
    ///
    /// # Errors
    /// Refuses as [`Error`] lists.
    pub fn read(_archive: &Path) -> Result<Self, Error> {
        unreachable!("built in the next commit")
    }

    /// Unpacks a checked archive into a new directory: files with mode 0444 or 0555, directories with 0755. Checks everything again.
    ///
    /// # Errors
    /// Refuses as [`Package::read`] does; a part may be written already.
    pub fn unpack(_archive: &Path, _into: &Path) -> Result<Self, Error> {
        unreachable!("built in the next commit")
    }
}

impl Manifest {
    /// Checks that a directory has exactly the files of this manifest and `skill.toml`, with these bytes.
    ///
    /// # Errors
    /// Names the first file that is missing, superfluous or different.
    pub fn verify_tree(&self, _directory: &Path) -> Result<(), Error> {
        unreachable!("built in the next commit")
    }
}
