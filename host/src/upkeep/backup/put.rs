//! The files of a backup, written into an empty directory.
//!
//! Never writes outside of that directory, and never through a link, whatever the backup contains. See [`super::entry`].

use super::entry::{self, Entry, Item, Kind, Totals};
use super::error::Error;
use super::format::{Header, Opener};
use ironclaw_state::backup::{oldest_schema, schema};
use ironclaw_state::keys::BackupKey;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat, geteuid, symlinkat, syncfs};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1024 * 1024;

const DIRECTORY: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// The rights of an owner to a directory in which files can be made.
const OWNER_ALL: u32 = 0o700;

/// Decrypts a backup and writes everything in it to an empty directory, durably.
///
/// # Errors
/// Those of the container, [`Error::NewerSchema`] and [`Error::OlderSchema`], and the errors of the system. The directory then has a part of the files.
pub fn unpack(file: &Path, key: &BackupKey, to: &Path) -> Result<(Header, Totals), Error> {
    let (mut from, header) = Opener::open(file, key)?;
    if header.schema > schema() {
        return Err(Error::NewerSchema { path: file.to_owned(), found: header.schema, known: schema() });
    }
    if header.schema < oldest_schema() {
        return Err(Error::OlderSchema { path: file.to_owned(), found: header.schema, oldest: oldest_schema() });
    }
    let fault = |error: nix::Error| Error::Io { path: to.to_owned(), source: error.into() };
    let root = open(to, DIRECTORY, Mode::empty()).map_err(fault)?;
    let mut target = Target { root, path: to, is_root: geteuid().is_root(), late: Vec::new() };
    loop {
        match entry::read(&mut from)? {
            Item::Entry(entry) => target.put(&entry, &mut from)?,
            Item::End(totals) => {
                target.finish()?;
                return Ok((header, totals));
            }
        }
    }
}

/// The directory that gets the files.
struct Target<'a> {
    root: OwnedFd,
    path: &'a Path,
    is_root: bool,
    /// Directories that get their mode last: their owner may not write to them.
    late: Vec<(PathBuf, u32)>,
}

impl Target<'_> {
    fn put(&mut self, entry: &Entry, from: &mut Opener<'_>) -> Result<(), Error> {
        let path = self.path.join(&entry.path);
        let fault = |source: io::Error| Error::Io { path: path.clone(), source };
        let (parent, name) = self.parent(&entry.path).map_err(|error| fault(error.into()))?;
        match entry.kind {
            Kind::Directory => {
                self.directory(&parent, name, entry).map_err(|error| fault(error.into()))?;
            }
            Kind::File => {
                let mut file = self.file(&parent, name, entry).map_err(|error| fault(error.into()))?;
                let mut left = entry.size;
                while left > 0 {
                    let some = from.some(WRITE_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX)))?;
                    file.write_all(some).map_err(fault)?;
                    left -= some.len() as u64;
                }
                let at = TimeSpec::new(entry.changed_at, 0);
                futimens(&file, &at, &at).map_err(|error| fault(error.into()))?;
            }
            Kind::Link => {
                let mut target = vec![0; usize::try_from(entry.size).unwrap_or(0)];
                from.fill(&mut target)?;
                let made = symlinkat(OsStr::from_bytes(&target), &parent, name);
                made.and_then(|()| self.give(&parent, name, entry)).map_err(|error| fault(error.into()))?;
            }
        }
        Ok(())
    }

    /// Opens the directory of an entry, and returns its name there.
    fn parent<'e>(&self, path: &'e Path) -> nix::Result<(OwnedFd, &'e OsStr)> {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV;
        let opened = openat2(&self.root, parent, OpenHow::new().flags(DIRECTORY).resolve(resolve))?;
        Ok((opened, path.file_name().unwrap_or_default()))
    }

    fn directory(&mut self, parent: &OwnedFd, name: &OsStr, entry: &Entry) -> nix::Result<()> {
        mkdirat(parent, name, Mode::S_IRWXU)?;
        self.give(parent, name, entry)?;
        if entry.mode & OWNER_ALL == OWNER_ALL {
            return set_mode(parent, name, entry.mode);
        }
        self.late.push((entry.path.clone(), entry.mode));
        Ok(())
    }

    fn file(&self, parent: &OwnedFd, name: &OsStr, entry: &Entry) -> nix::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(parent, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        self.give(parent, name, entry)?;
        set_mode(parent, name, entry.mode)?;
        Ok(file.into())
    }

    /// Gives an entry to its owner, as root. Another user owns all files of a home.
    fn give(&self, parent: &OwnedFd, name: &OsStr, entry: &Entry) -> nix::Result<()> {
        match entry.owner.filter(|_| self.is_root) {
            None => Ok(()),
            Some((user, group)) => {
                let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
                fchownat(parent, name, Some(user), Some(group), AtFlags::AT_SYMLINK_NOFOLLOW)
            }
        }
    }

    /// Sets the modes that are left, and writes everything to the disk.
    fn finish(mut self) -> Result<(), Error> {
        // The inner directories come later, and a mode may shut them off.
        while let Some((path, mode)) = self.late.pop() {
            let set = self.parent(&path).and_then(|(parent, name)| set_mode(&parent, name, mode));
            set.map_err(|error| Error::Io { path: self.path.join(&path), source: error.into() })?;
        }
        syncfs(&self.root).map_err(|error| Error::Io { path: self.path.to_owned(), source: error.into() })
    }
}

/// Sets the mode of a file or directory that this process has just made.
fn set_mode(parent: &OwnedFd, name: &OsStr, mode: u32) -> nix::Result<()> {
    fchmodat(parent, name, Mode::from_bits_truncate(mode), FchmodatFlags::FollowSymlink)
}
