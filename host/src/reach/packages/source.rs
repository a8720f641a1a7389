//! Fetched files before they are part of a layer.
//!
//! Only copies files. See [`crate::reach::packages::layer`].

use super::error::Error;
use crate::registry::live_settings::packages::Config;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use sha2::{Digest as _, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Top directory of a layer.
pub(super) const TOP: &str = "usr";
/// Longest path in a layer, in bytes; the kernel accepts four times this.
pub(super) const PATH_BYTES_MAX: usize = 1024;
/// Bytes of one read.
const CHUNK_BYTES: usize = 64 * 1024;

/// A directory of fetched files.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Path of the files.
    pub(super) root: PathBuf,
    /// Mapping of its paths to those of the layer.
    pub(super) place: Place,
    /// Name of the package that brought it, for a refusal.
    pub(super) name: String,
}

/// Mapping of the paths of a source to those of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Paths from the root of a machine: `usr`, and the directories merged into it. Others are left out.
    Root,
    /// Paths below `usr`.
    Prefix,
    /// A layer itself: only `usr`.
    Layer,
}

/// One path of a layer.
#[derive(Debug)]
pub(super) enum Entry {
    Directory,
    File { source: PathBuf, executable: bool, bytes: u64 },
    Link { target: String },
}

/// Refuses more than a layer may hold.
pub(super) fn check_size(bytes: u64, files: u64, config: &Config) -> Result<(), Error> {
    let (bytes_max, files_max) = (config.layer_bytes_max, config.layer_files_max);
    if bytes <= bytes_max && files <= files_max {
        return Ok(());
    }
    let message = format!("the packages are larger than allowed: over {bytes_max} bytes or {files_max} files");
    let hint = "ask for fewer packages, or raise packages.layer_bytes_max or packages.layer_files_max";
    Err(Refusal::new(DenialCode::PackagesTooLarge, message).hint(hint).into())
}

/// Reads a file of exactly this many bytes, copies it if there is a target, and returns its digest.
pub(super) fn copy(source: &Path, bytes: u64, mut into: Option<&File>) -> io::Result<Digest> {
    let mut options = OpenOptions::new();
    let mut file =
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC).open(source)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is no longer a file"));
    }
    let (mut hash, mut chunk, mut length) = (Sha256::new(), vec![0; CHUNK_BYTES], 0);
    loop {
        match file.read(&mut chunk)? {
            0 if length == bytes => return Ok(Digest::from_bytes(hash.finalize().into())),
            0 => return Err(io::Error::other("changed while it was read")),
            read => {
                length += read as u64;
                if length > bytes {
                    return Err(io::Error::other("changed while it was read"));
                }
                hash.update(&chunk[..read]);
                if let Some(into) = &mut into {
                    into.write_all(&chunk[..read])?;
                }
            }
        }
    }
}
