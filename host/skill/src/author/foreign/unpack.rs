//! Archives of other programs: tar, tar.gz and ZIP, whatever their name.
//!
//! Bounds what it unpacks, and writes nothing. Devices and paths that leave the archive are refused. See [`super::tree`].

mod zip;

use super::tree::{Content, Entry, Tree};
use crate::path::refused;
use crate::{Error, archive};
use flate2::read::MultiGzDecoder;
use std::io::{Read, Seek};
use std::path::Path;

/// Bytes of all files of an archive, unpacked.
pub(super) const UNPACKED_BYTES_MAX: u64 = 256 * 1024 * 1024;
const GZIP: &[u8] = b"\x1f\x8b";
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// Forms of compression that are not read.
const OTHERS: [(&[u8], &str); 6] = [
    (b"\xfd7zXZ", "it is compressed by xz: unpack it first, and import its directory"),
    (b"BZh", "it is compressed by bzip2: unpack it first, and import its directory"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd: unpack it first, and import its directory"),
    (b"7z\xbc\xaf", "it is an archive of 7z: unpack it first, and import its directory"),
    (b"Rar!", "it is an archive of rar: unpack it first, and import its directory"),
    (b"\x1f\x9d", "it is compressed by compress: unpack it first, and import its directory"),
];

/// Reads an archive.
///
/// # Errors
/// Refuses what is no archive, and each entry that no skill may have.
pub(super) fn archive(path: &Path) -> Result<Tree, Error> {
    let mut file = archive::open(path)?;
    let mut magic = Vec::new();
    let failed = |source| Error::io(path, source);
    file.by_ref().take(8).read_to_end(&mut magic).map_err(failed)?;
    file.rewind().map_err(failed)?;
    if let Some((_, what)) = OTHERS.iter().find(|(other, _)| magic.starts_with(other)) {
        return Err(Error::file(path.display().to_string(), what));
    }
    let read = if ZIP.iter().any(|zip| magic.starts_with(zip)) {
        zip::read(file)
    } else if magic.starts_with(GZIP) {
        tar(MultiGzDecoder::new(file))
    } else {
        tar(file)
    };
    read.map_err(|error| match error {
        Error::Io { source, .. } => Error::io(path, source),
        other => other,
    })
}

pub(super) fn failed(source: std::io::Error) -> Error {
    Error::Io { path: String::new(), source }
}

fn tar(reader: impl Read) -> Result<Tree, Error> {
    let mut archive = tar::Archive::new(reader.take(UNPACKED_BYTES_MAX));
    let mut tree = Tree::default();
    let mut total = 0;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let path = inside(&raw)?;
        if kind.is_symlink() || kind.is_hard_link() {
            let target = entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
            let target = target.unwrap_or_default();
            let up = "../".repeat(path.matches('/').count());
            let target = if kind.is_hard_link() { format!("{up}{target}") } else { target };
            tree.add(path, Entry { may_run: false, content: Content::Link(target) })?;
            continue;
        }
        if !kind.is_file() {
            return Err(refused(&path, "it is a device, a pipe or a sparse file"));
        }
        total += entry.size();
        if total > UNPACKED_BYTES_MAX {
            return Err(archive_too_large());
        }
        let may_run = entry.header().mode().map_err(failed)? & 0o111 != 0;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(failed)?;
        tree.add(path, Entry { may_run, content: Content::Bytes(bytes) })?;
    }
    Ok(tree)
}

/// Returns the path of an entry, without `./`.
fn inside(raw: &str) -> Result<String, Error> {
    let path = raw.trim_start_matches("./").trim_end_matches('/');
    if path.starts_with('/') || path.split('/').any(|part| matches!(part, ".." | "." | "")) {
        return Err(refused(raw, "the path leaves the archive, or has an empty part"));
    }
    Ok(path.to_owned())
}

fn archive_too_large() -> Error {
    Error::TooLarge(format!("the archive has more than {UNPACKED_BYTES_MAX} bytes, unpacked"))
}
