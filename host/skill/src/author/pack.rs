//! Packs a directory.

use crate::archive::open;
use crate::archive::{BLOCK_BYTES, Entry, too_large};
use crate::package::{as_text, same_name};
use crate::{
    Error, FrontMatter, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX, MANIFEST, MANIFEST_BYTES_MAX, Manifest,
    PACKAGE_BYTES_MAX, Package, path, tree,
};
use ironclaw_contract::canonical::Digest;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The modes of a program: one of the owner, the group and the others may run it.
const MAY_RUN: u32 = 0o111;

/// Packs a directory with `skill.toml`, `SKILL.md` and its files. Returns the archive. The digests of the files in it are new; those of the
/// directory's own `skill.toml` are left out.
///
/// # Errors
/// As [`Package::read`] for the files of a directory.
pub fn pack(directory: &Path) -> Result<Vec<u8>, Error> {
    let mut paths = tree::files(directory)?;
    let mut manifest = manifest(directory)?;
    let text = read(directory, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX)?;
    let (matter, _) = FrontMatter::parse(&text)?;
    same_name(&manifest, &matter)?;
    paths.remove(MANIFEST);
    manifest.files = BTreeMap::new();
    let mut body = Vec::new();
    for path in paths {
        let (entry, bytes) = file(directory, &path)?;
        manifest.files.insert(path, Digest::of(&bytes));
        add(&mut body, &entry, &bytes)?;
    }
    let text = manifest.to_toml();
    let entry = Entry { path: MANIFEST.to_owned(), is_program: false, bytes: text.len() as u64 };
    let mut archive = Vec::with_capacity(body.len() + text.len() + 4 * BLOCK_BYTES);
    add(&mut archive, &entry, text.as_bytes())?;
    archive.append(&mut body);
    archive.extend([0; 2 * BLOCK_BYTES]);
    Package::read_from(archive.as_slice())?;
    Ok(archive)
}

/// Reads the `skill.toml` of a directory.
///
/// # Errors
/// As [`Manifest::parse`]; [`Error::Io`] if it cannot be read.
pub fn manifest(directory: &Path) -> Result<Manifest, Error> {
    Manifest::parse(&read(directory, MANIFEST, MANIFEST_BYTES_MAX)?)
}

/// Reads a text file of a directory.
pub(super) fn read(directory: &Path, path: &str, bytes_max: u64) -> Result<String, Error> {
    let bytes = bounded(&directory.join(path), bytes_max)?;
    as_text(path, bytes)
}

/// Reads a file that has at most this many bytes.
pub(super) fn bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| Error::io(path, error))?;
    match bytes.len() as u64 > bytes_max {
        true => Err(Error::TooLarge(format!("{} has more than {bytes_max} bytes", path.display()))),
        false => Ok(bytes),
    }
}

fn file(directory: &Path, path: &str) -> Result<(Entry, Vec<u8>), Error> {
    let full = directory.join(path);
    let mode = full.symlink_metadata().map_err(|error| Error::io(&full, error))?.permissions().mode();
    if mode & 0o7000 != 0 {
        return Err(path::refused(path, "it has a set-uid, set-gid or sticky mode"));
    }
    let bytes = bounded(&full, PACKAGE_BYTES_MAX)?;
    Ok((Entry { path: path.to_owned(), is_program: mode & MAY_RUN != 0, bytes: bytes.len() as u64 }, bytes))
}

fn add(archive: &mut Vec<u8>, entry: &Entry, bytes: &[u8]) -> Result<(), Error> {
    let header = entry.header().ok_or_else(|| path::refused(&entry.path, "the path is too long for an archive"))?;
    archive.extend(header);
    archive.extend(bytes);
    archive.resize(archive.len().next_multiple_of(BLOCK_BYTES), 0);
    if archive.len() as u64 > PACKAGE_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}
