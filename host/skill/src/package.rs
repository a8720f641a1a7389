//! A package: a tar archive without compression.

use crate::archive::{Archive, Entry, open};
use crate::path::Paths;
use crate::signature::{self, PublicKey};
use crate::{Error, FrontMatter, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX, MANIFEST, MANIFEST_BYTES_MAX, Manifest};
use ironclaw_contract::canonical::Digest;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

mod unpack;

/// A package whose every entry, digest and bound was checked. Its signature is checked apart: see [`crate::signature`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
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
    pub fn read(archive: &Path) -> Result<Self, Error> {
        Self::read_from(open(archive)?)
    }

    /// [`Package::read`] for bytes.
    ///
    /// # Errors
    /// As [`Package::read`].
    pub fn read_from(reader: impl Read) -> Result<Self, Error> {
        let mut digest = Sha256::new();
        let mut seen = |bytes: &[u8]| digest.update(bytes);
        let mut archive = Archive::new(reader, &mut seen);
        let checked = walk(&mut archive, &mut Nowhere)?;
        let bytes = archive.bytes;
        Ok(checked.into_package(digest, bytes))
    }

    /// Reads and checks an archive with its signature, in one pass over the file. The trusted comment must name the skill.
    ///
    /// # Errors
    /// As [`Package::read`] and [`signature::verify`]; the signature is judged first. [`Error::Comment`] for another comment.
    pub fn read_signed(archive: &Path, signature: &str, key: &PublicKey) -> Result<Self, Error> {
        let claim = signature::Parsed::read(signature)?.by(key)?;
        let file = open(archive)?;
        let mut digest = Sha256::new();
        let (checked, bytes) = claim.beside(|signed| {
            let mut seen = |bytes: &[u8]| {
                signed(bytes);
                digest.update(bytes);
            };
            let mut archive = Archive::new(file, &mut seen);
            let checked = walk(&mut archive, &mut Nowhere);
            if checked.is_err() {
                archive.drain()?;
            }
            Ok((checked, archive.bytes))
        })?;
        let checked = checked?;
        signature::check_comment(claim.comment(), &checked.manifest.name, &checked.manifest.version)?;
        Ok(checked.into_package(digest, bytes))
    }

    /// Unpacks a checked archive into a new directory: files with mode 0444 or 0555, directories with 0755. Checks everything again.
    ///
    /// # Errors
    /// Refuses as [`Package::read`] does; a part may be written already.
    pub fn unpack(archive: &Path, into: &Path) -> Result<Self, Error> {
        let mut digest = Sha256::new();
        let mut seen = |bytes: &[u8]| digest.update(bytes);
        let mut archive = Archive::new(open(archive)?, &mut seen);
        let checked = walk(&mut archive, &mut unpack::Directory::create(into)?)?;
        let bytes = archive.bytes;
        Ok(checked.into_package(digest, bytes))
    }
}

/// Gets the files of an archive, in order.
trait Sink {
    fn begin(&mut self, entry: &Entry) -> Result<(), Error>;
    fn piece(&mut self, bytes: &[u8]) -> Result<(), Error>;
    fn end(&mut self) -> Result<(), Error>;
}

/// Keeps no file.
struct Nowhere;

impl Sink for Nowhere {
    fn begin(&mut self, _: &Entry) -> Result<(), Error> {
        Ok(())
    }

    fn piece(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

struct Checked {
    manifest: Manifest,
    description: String,
    instructions: String,
}

impl Checked {
    fn into_package(self, digest: Sha256, bytes: u64) -> Package {
        let Self { manifest, description, instructions } = self;
        Package { manifest, description, instructions, digest: Digest::from_bytes(digest.finalize().into()), bytes }
    }
}

fn walk<R: Read>(archive: &mut Archive<'_, R>, sink: &mut dyn Sink) -> Result<Checked, Error> {
    let mut paths = Paths::default();
    let manifest = text(archive, &mut paths, sink, MANIFEST, MANIFEST_BYTES_MAX)?;
    let manifest = Manifest::parse(&manifest)?;
    let instructions = text(archive, &mut paths, sink, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX)?;
    let (matter, body) = FrontMatter::parse(&instructions)?;
    same_name(&manifest, &matter)?;
    check_digest(&manifest, INSTRUCTIONS, Sha256::digest(&instructions).into())?;
    let mut seen = BTreeSet::from([INSTRUCTIONS.to_owned()]);
    while let Some(entry) = archive.next()? {
        paths.add(&entry.path)?;
        if !manifest.files.contains_key(&entry.path) {
            return Err(Error::file(&entry.path, NOT_NAMED));
        }
        let mut digest = Sha256::new();
        sink.begin(&entry)?;
        archive.content(&entry, |bytes| {
            digest.update(bytes);
            sink.piece(bytes)
        })?;
        sink.end()?;
        check_digest(&manifest, &entry.path, digest.finalize().into())?;
        if seen.last().is_some_and(|last| *last > entry.path) {
            return Err(Error::file(&entry.path, "the files are not in order"));
        }
        seen.insert(entry.path);
    }
    match manifest.files.keys().find(|path| !seen.contains(*path)) {
        Some(path) => Err(Error::file(path, MISSING)),
        None => Ok(Checked { description: matter.description, instructions: body.to_owned(), manifest }),
    }
}

pub(crate) const NOT_NAMED: &str = "skill.toml does not name it";
pub(crate) const MISSING: &str = "it is missing, and skill.toml names it";

/// Reads the next file, which must be this one, as text.
fn text<R: Read>(
    archive: &mut Archive<'_, R>,
    paths: &mut Paths,
    sink: &mut dyn Sink,
    path: &str,
    bytes_max: u64,
) -> Result<String, Error> {
    let entry = archive.next()?.ok_or_else(|| Error::file(path, "it is missing"))?;
    paths.add(&entry.path)?;
    if entry.path != path {
        return Err(Error::file(path, "it is not at its place: skill.toml is the first file, and SKILL.md the second"));
    }
    if entry.bytes > bytes_max {
        return Err(Error::TooLarge(format!("{path} has more than {bytes_max} bytes")));
    }
    let mut text = Vec::new();
    sink.begin(&entry)?;
    archive.content(&entry, |bytes| {
        text.extend_from_slice(bytes);
        sink.piece(bytes)
    })?;
    sink.end()?;
    as_text(path, text)
}

/// Returns the bytes of a file as text.
pub(crate) fn as_text(path: &str, bytes: Vec<u8>) -> Result<String, Error> {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(Error::manifest(path, "it is not a text in UTF-8")),
    }
}

/// Checks that both files name one skill.
pub(crate) fn same_name(manifest: &Manifest, matter: &FrontMatter) -> Result<(), Error> {
    match manifest.name == matter.name {
        true => Ok(()),
        false => {
            Err(Error::manifest(INSTRUCTIONS, format!("name is {}, and {MANIFEST} has {}", matter.name, manifest.name)))
        }
    }
}

pub(crate) fn check_digest(manifest: &Manifest, path: &str, digest: [u8; 32]) -> Result<(), Error> {
    match manifest.files.get(path) {
        Some(expected) if expected.as_bytes() == &digest => Ok(()),
        Some(_) => Err(Error::file(path, "its bytes have another digest than skill.toml names")),
        None => Err(Error::file(path, NOT_NAMED)),
    }
}

#[cfg(test)]
mod tests;
