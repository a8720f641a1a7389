//! The files of a home, read into a backup while agents may change their workspaces.
//!
//! Follows no link, enters no other mount, and opens no special file, also if an agent swaps files during the walk. An entry always has
//! the size that it announced. See [`super::entry`].

use super::entry::{Entry, Kind, MODE_MASK, PATH_BYTES_MAX, Totals};
use super::error::Error;
use ironclaw_jail::shortage::Shortage;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat2, readlinkat};
use nix::sys::stat::{Mode, fstat, fstatat};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a file that are read at once.
const READ_BYTES: usize = 256 * 1024;

const DIRECTORY: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A pipe does not block at its opening, and a terminal does not become that of the host.
const FILE: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

/// The reason that a file over the bounds is left out.
const OVER: Errno = Errno::EDQUOT;

/// The most files and bytes of a tree. The rest is left out and counted.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Files, directories and links.
    pub files: u64,
    /// Bytes of the files, as their sizes state them.
    pub bytes: u64,
}

impl Bounds {
    /// No bounds, for files that only the host writes.
    pub const NONE: Self = Self { files: u64::MAX, bytes: u64::MAX };
}

/// The writer of the content of a backup.
pub struct Contents<W> {
    out: W,
    totals: Totals,
    /// The owner of the home.
    user: u32,
    buffer: Vec<u8>,
}

impl<W: Write> Contents<W> {
    /// Returns a writer without content. `user` is the owner of the home.
    pub fn new(out: W, user: u32) -> Self {
        Self { out, totals: Totals::default(), user, buffer: vec![0; READ_BYTES] }
    }

    /// Adds a private directory.
    pub fn directory(&mut self, path: &Path) -> Result<(), Error> {
        let entry =
            Entry { kind: Kind::Directory, path: path.to_owned(), mode: 0o700, owner: None, changed_at: 0, size: 0 };
        entry.write(&mut self.out).map_err(Error::Output)
    }

    /// Adds the file at `source`, unless it is missing.
    pub fn file(&mut self, path: &Path, source: &Path) -> Result<(), Error> {
        match ironclaw_state::home::open_file(source) {
            Ok(file) => self.open_file(path, file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::Io { path: source.to_owned(), source: error }),
        }
    }

    /// Adds an open file.
    pub fn open_file(&mut self, path: &Path, file: File) -> Result<(), Error> {
        let found = file.metadata().map_err(|source| Error::Io { path: path.to_owned(), source })?;
        self.found_file(path, file, &found)
    }

    /// Adds an open file with the size and the mode that the caller found.
    fn found_file(&mut self, path: &Path, mut file: File, found: &Metadata) -> Result<(), Error> {
        let fault = |source| Error::Io { path: path.to_owned(), source };
        let (user, mode) = (found.uid(), found.mode() & MODE_MASK);
        let owner = (user != self.user).then_some((user, found.gid()));
        let (size, changed_at) = (found.len(), found.mtime());
        let entry = Entry { kind: Kind::File, path: path.to_owned(), mode, owner, changed_at, size };
        entry.write(&mut self.out).map_err(Error::Output)?;
        let mut left = size;
        while left > 0 {
            let wanted = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match file.read(&mut self.buffer[..wanted]) {
                Ok(0) => {
                    // The file became shorter; zeros take the place of its end.
                    io::copy(&mut io::repeat(0).take(left), &mut self.out).map_err(Error::Output)?;
                    left = 0;
                }
                Ok(read) => {
                    self.out.write_all(&self.buffer[..read]).map_err(Error::Output)?;
                    left -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fault(error)),
            }
        }
        let has_changed =
            |now: &Metadata| (now.len(), now.mtime(), now.mtime_nsec()) != (size, found.mtime(), found.mtime_nsec());
        self.totals.files += 1;
        self.totals.bytes += size;
        self.totals.changed += u64::from(has_changed(&file.metadata().map_err(fault)?));
        Ok(())
    }

    /// Adds a directory with everything in it, unless it is missing. `path` is its place in the backup.
    pub fn tree(&mut self, path: &Path, root: &Path, bounds: Bounds) -> Result<(), Error> {
        let fault = |error: Errno| Error::Io { path: root.to_owned(), source: error.into() };
        let opened = match open(root, DIRECTORY, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::ENOENT) => return Ok(()),
            Err(error) => return Err(fault(error)),
        };
        let mut walk = Walk { root: opened, path, left: vec![PathBuf::from(".")], bounds, skipped: 0 };
        while let Some(directory) = walk.left.pop() {
            match self.level(&mut walk, &directory) {
                Ok(()) => {}
                Err(Fault::Ours(error)) => return Err(error),
                Err(Fault::Theirs(error)) => walk.skip(&directory, error)?,
            }
        }
        if walk.skipped > 0 {
            tracing::warn!(files = walk.skipped, path = %root.display(), "files are not in the backup");
        }
        self.totals.skipped += walk.skipped;
        Ok(())
    }

    /// Adds a directory and its files, and queues the directories in it.
    fn level(&mut self, walk: &mut Walk<'_>, directory: &Path) -> Result<(), Fault> {
        let opened = walk.open(directory, DIRECTORY)?;
        self.entry(Kind::Directory, &walk.place(directory), &fstat(&opened)?, b"")?;
        let mut entries = Dir::openat(&opened, ".", DIRECTORY, Mode::empty())?;
        let mut names = HashSet::new();
        for entry in entries.iter() {
            let name = entry?.file_name().to_owned();
            // A name that is removed and made again during the walk may be listed twice, and a restore refuses its second entry.
            let is_again = walk.bounds.files > 0 && !names.insert(name.clone());
            if is_again || [c".", c".."].contains(&name.as_c_str()) {
                continue;
            }
            let below = directory.join(OsStr::from_bytes(name.to_bytes()));
            match self.one(walk, &opened, &below) {
                Ok(()) => {}
                Err(Fault::Ours(error)) => return Err(Fault::Ours(error)),
                Err(Fault::Theirs(error)) => walk.skip(&below, error).map_err(Fault::Ours)?,
            }
        }
        Ok(())
    }

    /// Adds a file or a link, or queues a directory.
    fn one(&mut self, walk: &mut Walk<'_>, directory: &OwnedFd, below: &Path) -> Result<(), Fault> {
        let name = below.file_name().unwrap_or_default();
        let found = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        let place = walk.place(below);
        if walk.bounds.files == 0 || place.as_os_str().len() > PATH_BYTES_MAX {
            return Err(Fault::Theirs(OVER));
        }
        walk.bounds.files -= 1;
        match found.st_mode & libc::S_IFMT {
            libc::S_IFDIR => walk.left.push(below.to_owned()),
            libc::S_IFLNK => {
                let target = readlinkat(directory, name)?;
                if target.is_empty() || target.len() > PATH_BYTES_MAX {
                    return Err(Fault::Theirs(Errno::ENAMETOOLONG));
                }
                self.entry(Kind::Link, &place, &found, target.as_bytes())?;
            }
            libc::S_IFREG => {
                let file = File::from(walk.open(below, FILE)?);
                let now = file.metadata().map_err(|_| Errno::EIO)?;
                if !now.is_file() {
                    return Err(Fault::Theirs(Errno::EINVAL));
                }
                let Some(left) = walk.bounds.bytes.checked_sub(now.len()) else {
                    return Err(Fault::Theirs(OVER));
                };
                walk.bounds.bytes = left;
                // With the size that the bounds counted: the file may grow meanwhile.
                self.found_file(&place, file, &now).map_err(Fault::Ours)?;
            }
            _ => return Err(Fault::Theirs(Errno::EINVAL)),
        }
        Ok(())
    }

    /// Adds a directory, or a link with its target.
    fn entry(
        &mut self,
        kind: Kind,
        path: &Path,
        found: &nix::sys::stat::FileStat,
        content: &[u8],
    ) -> Result<(), Fault> {
        let owner = (found.st_uid != self.user).then_some((found.st_uid, found.st_gid));
        let mode = if kind == Kind::Link { 0 } else { found.st_mode & MODE_MASK };
        let entry =
            Entry { kind, path: path.to_owned(), mode, owner, changed_at: found.st_mtime, size: content.len() as u64 };
        let written = entry.write(&mut self.out).and_then(|()| self.out.write_all(content));
        written.map_err(|error| Fault::Ours(Error::Output(error)))
    }

    pub fn finish(mut self) -> Result<(W, Totals), Error> {
        self.totals.write(&mut self.out).map_err(Error::Output)?;
        Ok((self.out, self.totals))
    }
}

/// A walk through a tree.
struct Walk<'a> {
    root: OwnedFd,
    /// The place of the root in the backup.
    path: &'a Path,
    /// Directories that the walk has not entered yet, each by its path below the root.
    left: Vec<PathBuf>,
    /// The rest of the bounds.
    bounds: Bounds,
    skipped: u64,
}

/// The reason that an entry is not in the backup.
enum Fault {
    Ours(Error),
    /// The entry is left out: an agent can cause this at any time.
    Theirs(Errno),
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        Self::Theirs(error)
    }
}

impl Walk<'_> {
    /// Opens a path in one call, because an agent may swap any directory of it for a link out of the tree.
    fn open(&self, below: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV;
        openat2(&self.root, below, OpenHow::new().flags(flags).resolve(resolve))
    }

    /// Returns the place of a path in the backup.
    fn place(&self, below: &Path) -> PathBuf {
        self.path.join(below.strip_prefix(".").unwrap_or(below)).components().collect()
    }

    /// Counts an entry that is left out. One that was removed meanwhile does not count.
    fn skip(&mut self, below: &Path, error: Errno) -> Result<(), Error> {
        if error == Errno::EIO || Shortage::from_errno(error as i32).is_some_and(|_| error != OVER) {
            return Err(Error::Io { path: self.place(below), source: error.into() });
        }
        self.skipped += u64::from(error != Errno::ENOENT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn read(root: &Path, bounds: Bounds) -> (Totals, Vec<u8>) {
        let mut contents = Contents::new(Vec::new(), nix::unistd::geteuid().as_raw());
        contents.tree(Path::new("x"), root, bounds).expect("read");
        let (bytes, totals) = contents.finish().expect("memory");
        (totals, bytes)
    }

    fn has(bytes: &[u8], text: &str) -> bool {
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    #[test]
    fn hostile_files_are_left_out_and_links_are_not_followed() {
        let (directory, outside) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
        std::fs::write(outside.path().join("secret"), "SECRET").expect("written");
        let root = directory.path();
        std::fs::create_dir(root.join("sub")).expect("made");
        std::fs::write(root.join("sub/kept"), "KEPT").expect("written");
        symlink(outside.path(), root.join("away")).expect("linked");
        symlink(outside.path().join("secret"), root.join("file")).expect("linked");
        nix::unistd::mkfifo(&root.join("pipe"), Mode::S_IRWXU).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).expect("bound");
        let (totals, bytes) = read(root, Bounds::NONE);
        assert_eq!((totals.files, totals.bytes, totals.changed, totals.skipped), (1, 4, 0, 2));
        assert!(has(&bytes, "x/sub/kept") && has(&bytes, "KEPT") && has(&bytes, "x/away") && !has(&bytes, "SECRET"));
        // A sparse file over the bound is left out, and so are files over the bound on their number.
        File::create(root.join("sparse")).and_then(|file| file.set_len(1 << 40)).expect("made");
        let (totals, _) = read(root, Bounds { files: 100, bytes: 1 << 20 });
        assert_eq!((totals.files, totals.skipped), (1, 3));
        let (totals, _) = read(root, Bounds { files: 0, bytes: 1 << 20 });
        assert_eq!((totals.files, totals.skipped), (0, 6));
    }

    #[test]
    fn directory_swapped_for_a_link_is_not_entered() {
        let (directory, outside) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
        std::fs::create_dir(directory.path().join("a")).expect("made");
        std::fs::write(outside.path().join("secret"), "SECRET").expect("written");
        let root = open(directory.path(), DIRECTORY, Mode::empty()).expect("opened");
        let walk = Walk { root, path: Path::new("x"), left: Vec::new(), bounds: Bounds::NONE, skipped: 0 };
        // After the walk listed the name, and before it opens the file.
        std::fs::remove_dir(directory.path().join("a")).expect("removed");
        symlink(outside.path(), directory.path().join("a")).expect("linked");
        for (below, flags) in [("./a", DIRECTORY), ("./a/secret", FILE), ("../secret", FILE)] {
            assert!(walk.open(Path::new(below), flags).is_err(), "{below}");
        }
        assert_eq!(walk.place(Path::new(".")), Path::new("x"));
        assert_eq!(walk.place(Path::new("./a/b")), Path::new("x/a/b"));
    }

    /// A file that changes between the entry and its content.
    #[test]
    fn changed_file_keeps_its_announced_size() {
        let directory = tempfile::tempdir().expect("made");
        let path = directory.path().join("log");
        for (before, after) in [(400_000usize, 10u64), (400_000, 900_000)] {
            std::fs::write(&path, vec![b'a'; before]).expect("written");
            struct Changing(PathBuf, u64, Vec<u8>);
            impl Write for Changing {
                fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                    if self.2.is_empty() {
                        File::options().write(true).open(&self.0)?.set_len(self.1)?;
                    }
                    self.2.extend(bytes);
                    Ok(bytes.len())
                }
                fn flush(&mut self) -> io::Result<()> {
                    Ok(())
                }
            }
            let mut contents = Contents::new(Changing(path.clone(), after, Vec::new()), 0);
            contents.file(Path::new("log"), &path).expect("read");
            let (out, totals) = contents.finish().expect("memory");
            assert_eq!((totals.changed, totals.bytes), (1, before as u64));
            let header = 1 + 2 + 3 + 4 + 4 + 4 + 8 + 8;
            assert_eq!(out.2.len(), header + before + 33);
        }
    }
}
