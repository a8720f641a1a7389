//! Packages of skills: a directory in the open Agent Skills format with `skill.toml`, as one archive with a signature.
//!
//! Reads and verifies bytes; never decides whether a skill may be installed, never reaches the network, and runs nothing of a skill.
//! A package is a tar archive without compression: `skill.toml`, `SKILL.md`, and files in `scripts/`, `references/` and `assets/`.

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

mod archive;
#[cfg(feature = "author")]
pub mod author;
pub mod front_matter;
pub mod index;
pub mod manifest;
pub mod package;
pub mod path;
pub mod plain;
pub mod signature;
mod tree;

pub use front_matter::FrontMatter;
pub use index::Index;
pub use manifest::{Grants, Manifest, McpGrant, Name, Needs};
pub use package::Package;
pub use semver::Version;

/// The manifest; the first file of an archive.
pub const MANIFEST: &str = "skill.toml";
/// The instructions; the second file of an archive.
pub const INSTRUCTIONS: &str = "SKILL.md";
/// The directories of a package.
pub const DIRECTORIES: [&str; 3] = ["scripts", "references", "assets"];

/// Bytes of a whole package.
pub const PACKAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Files of a package, with `skill.toml` and `SKILL.md`.
pub const FILES_MAX: usize = 2_000;
/// Bytes of `skill.toml`.
pub const MANIFEST_BYTES_MAX: u64 = 512 * 1024;
/// Bytes of `SKILL.md`.
pub const INSTRUCTIONS_BYTES_MAX: u64 = 64 * 1024;
pub const DESCRIPTION_CHARACTERS_MAX: usize = 1_024;

/// The reason that bytes are no good package. Each variant has a refusal code of its own at the host.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `skill.toml` or the front matter of `SKILL.md` is missing, malformed, out of bounds, or has an unknown field.
    #[error("{file}: {what}")]
    Manifest {
        file: String,
        /// The field and the reason.
        what: String,
    },
    /// A name of a file that no package may have: `..`, an absolute path, a link, a device, two names that are equal by case or Unicode
    /// form, a file outside of the known directories, or a character that is not plain.
    #[error("{path:?}: {what}")]
    Path {
        /// The start of the path, as text.
        path: String,
        what: &'static str,
    },
    /// A file that is missing, that the manifest does not name, or whose bytes have another digest.
    #[error("{path:?}: {what}")]
    File { path: String, what: &'static str },
    /// More bytes or files than a package may have.
    #[error("the package is too large: {0}")]
    TooLarge(String),
    /// No signature, or a text that is none.
    #[error("the package has no readable signature: {0}")]
    Unsigned(String),
    /// The signature is not by this key over these bytes.
    #[error("the signature does not match: {0}")]
    Signature(String),
    /// The trusted comment does not name this skill and version.
    #[error("the trusted comment of the signature is {found:?}; it must be {expected:?}")]
    Comment { found: String, expected: String },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io { path: String, source: std::io::Error },
}

impl Error {
    fn manifest(file: &str, what: impl Into<String>) -> Self {
        Self::Manifest { file: file.to_owned(), what: what.into() }
    }

    fn file(path: impl Into<String>, what: &'static str) -> Self {
        Self::File { path: path.into(), what }
    }

    fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Io { path: path.display().to_string(), source }
    }
}
