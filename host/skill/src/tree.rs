//! Checks an unpacked package against its manifest.

use crate::archive::{open, too_large};
use crate::package::{MISSING, NOT_NAMED, as_text, check_digest};
use crate::path::{Paths, refused};
use crate::{Error, MANIFEST, MANIFEST_BYTES_MAX, Manifest, PACKAGE_BYTES_MAX};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 256 * 1024;

impl Manifest {
    /// Checks that a directory has exactly the files of this manifest and `skill.toml`, with these bytes.
    ///
    /// # Errors
    /// Names the first file that is missing, superfluous or different.
    pub fn verify_tree(&self, directory: &Path) -> Result<(), Error> {
        let files = files(directory)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut total = 0;
        for path in &files {
            let full = directory.join(path);
            if path == MANIFEST {
                if read_manifest(&full)? != *self {
                    return Err(Error::file(path, "it is another manifest"));
                }
                continue;
            }
            if !self.files.contains_key(path) {
                return Err(Error::file(path, NOT_NAMED));
            }
            check_digest(self, path, digest(&full, &mut buffer, &mut total)?)?;
        }
        let names = std::iter::once(MANIFEST).chain(self.files.keys().map(String::as_str));
        match names.into_iter().find(|path| !files.contains(*path)) {
            Some(path) => Err(Error::file(path, MISSING)),
            None => Ok(()),
        }
    }
}

/// Returns the paths of the files of a directory.
///
/// # Errors
/// The first refusal of [`scan`].
pub(crate) fn files(root: &Path) -> Result<BTreeSet<String>, Error> {
    let (files, refused) = scan(root)?;
    refused.into_iter().next().map_or(Ok(files), Err)
}

/// Returns the paths of the files of a directory, and the refusals of everything else in it.
pub(crate) fn scan(root: &Path) -> Result<(BTreeSet<String>, Vec<Error>), Error> {
    let mut scan = Scan::default();
    let mut open: Vec<(PathBuf, String)> = vec![(root.to_owned(), String::new())];
    while let Some((directory, prefix)) = open.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| Error::io(&directory, error))?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| Error::io(&directory, error))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match scan.add(&entry, &path) {
                Ok(true) => open.push((entry.path(), format!("{path}/"))),
                Ok(false) => {}
                Err(error @ (Error::TooLarge(_) | Error::Io { .. })) => return Err(error),
                Err(error) => scan.refused.push(error),
            }
            if scan.refused.len() > REFUSED_MAX {
                return Ok((scan.files, scan.refused));
            }
        }
    }
    Ok((scan.files, scan.refused))
}

/// Refusals that are kept.
const REFUSED_MAX: usize = 100;

#[derive(Default)]
struct Scan {
    paths: Paths,
    files: BTreeSet<String>,
    refused: Vec<Error>,
}

impl Scan {
    /// Returns whether it is a directory to enter.
    fn add(&mut self, entry: &fs::DirEntry, path: &str) -> Result<bool, Error> {
        if entry.file_name().to_str().is_none() {
            return Err(refused(path, "the path is not UTF-8"));
        }
        let kind = entry.file_type().map_err(|error| Error::io(&entry.path(), error))?;
        if kind.is_dir() {
            return match crate::path::check(&format!("{path}/x")) {
                Ok(()) => Ok(true),
                Err(error) => Err(first_refusal(&entry.path(), path)?.unwrap_or(error)),
            };
        }
        if !kind.is_file() {
            return Err(refused(path, "it is a link, a device, a pipe or a socket"));
        }
        self.paths.add(path)?;
        self.files.insert(path.to_owned());
        Ok(false)
    }
}

/// Returns the refusal of the first file in a directory that no package has; that of the directory itself if it is empty.
fn first_refusal(directory: &Path, path: &str) -> Result<Option<Error>, Error> {
    let (mut directory, mut path) = (directory.to_owned(), path.to_owned());
    // Deeper than a path may be, the directory itself is named.
    for _ in 0..crate::path::PARTS_MAX {
        let entries = fs::read_dir(&directory).map_err(|error| Error::io(&directory, error))?;
        let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| Error::io(&directory, error))?;
        let Some(first) = entries.into_iter().min_by_key(fs::DirEntry::file_name) else { break };
        path = format!("{path}/{}", first.file_name().to_string_lossy());
        if !first.file_type().map_err(|error| Error::io(&first.path(), error))?.is_dir() {
            return Ok(crate::path::check(&path).err());
        }
        directory = first.path();
    }
    Ok(Some(refused(&path, "the empty directory is not in scripts/, references/ or assets/")))
}

fn read_manifest(path: &Path) -> Result<Manifest, Error> {
    let mut bytes = Vec::new();
    open(path)?.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| Error::io(path, error))?;
    Manifest::parse(&as_text(MANIFEST, bytes)?)
}

fn digest(path: &Path, buffer: &mut [u8], total: &mut u64) -> Result<[u8; 32], Error> {
    let mut file = open(path)?;
    let mut digest = Sha256::new();
    loop {
        match file.read(buffer).map_err(|error| Error::io(path, error))? {
            0 => return Ok(digest.finalize().into()),
            got => {
                digest.update(&buffer[..got]);
                *total += got as u64;
            }
        }
        if *total > PACKAGE_BYTES_MAX {
            return Err(too_large());
        }
    }
}
