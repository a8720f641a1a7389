//! Access to the files of the workspace, and to none outside of it. A path is parsed once and opened one name at a time.
//!
//! No link is followed, `..` is refused, and only regular files and directories are opened. If a process replaces a directory with
//! a link between two steps, the next step fails. See [`crate::files`].

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 1024;
/// Longest name in a path, in bytes; no file system allows more.
pub const NAME_BYTES_MAX: usize = 255;
pub const PATH_NAMES_MAX: usize = 32;
/// Name of the workspace in the jail, and so in a model's paths.
const ROOT: &str = "/workspace";

/// The reason why a path is refused. Each is a sentence with the path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Absolute, and below none of the directories.
    #[error("refused {path}: outside of {there}")]
    Outside {
        path: Shown,
        /// The directories that exist.
        there: String,
    },
    /// Holds `..`.
    #[error("refused {0}: `..` is not allowed in a path")]
    Parent(Shown),
    /// A component of the path is a link, or the file is one.
    #[error("refused {0}: links are not followed")]
    Link(Shown),
    /// The file is neither regular nor a directory.
    #[error("refused {0}: neither a regular file nor a directory")]
    Special(Shown),
    /// Too long, too deep, or with a NUL byte.
    #[error(
        "refused {0}: a path has at most {PATH_BYTES_MAX} bytes, {PATH_NAMES_MAX} names of {NAME_BYTES_MAX} bytes, and no NUL byte"
    )]
    Malformed(Shown),
    /// The path is a directory and should be a file.
    #[error("{0} is a directory")]
    IsDirectory(Shown),
    /// The file is not text.
    #[error("{path} is not UTF-8 text: {bytes} bytes")]
    NotText { path: Shown, bytes: u64 },
    /// The offset is past the end, or inside a character.
    #[error("{path} has {bytes} bytes, and no character begins at offset {offset}")]
    Offset { path: Shown, bytes: u64, offset: u64 },
    /// The file would exceed a bound.
    #[error("refused {path}: a file has at most {bytes_max} bytes")]
    TooLarge { path: Shown, bytes_max: u64 },
    #[error("cannot {what} {path}: {source}")]
    System { what: &'static str, path: Shown, source: io::Error },
}

/// A path in the form for a sentence: shortened, and on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown(String);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Characters of a path in a sentence.
const SHOWN_CHARACTERS_MAX: usize = 200;

fn shown(text: &str) -> Shown {
    let start: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
    let rest = if start.len() < text.len() { "…" } else { "" };
    Shown(on_one_line(&start) + rest)
}

/// Returns a name, escaped if it has control characters: a line break in it would look like a line of its own.
pub fn on_one_line(name: &str) -> String {
    if name.contains(char::is_control) { name.escape_debug().collect() } else { name.to_owned() }
}

/// A path below the workspace or another root: names without a slash, none of them `.` or `..`. Without names it is the root itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// Name of a granted root, with its slash; `None` for the workspace.
    root: Option<String>,
    names: Vec<String>,
}

impl Below {
    pub const ROOT: Self = Self { root: None, names: Vec::new() };

    /// Parses a path, which is relative to the workspace, or absolute below a root. The root need not exist.
    ///
    /// # Errors
    /// [`Error::Parent`] or [`Error::Malformed`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() || text.len() > PATH_BYTES_MAX || text.contains('\0') {
            return Err(Error::Malformed(shown(text)));
        }
        let mut names: Vec<String> =
            text.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect();
        if names.iter().any(|name| name == "..") {
            return Err(Error::Parent(shown(text)));
        }
        if names.len() > PATH_NAMES_MAX || names.iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(Error::Malformed(shown(text)));
        }
        // `/` itself is outside, so its root gets a name that no granted directory has.
        let root = match text.starts_with('/') {
            true if names.is_empty() || text.starts_with("//") => Some("/".to_owned()),
            true => Some(format!("/{}", names.remove(0))).filter(|root| root != ROOT),
            false => None,
        };
        Ok(Self { root, names })
    }

    /// Returns the path with one more name; `None` if it exceeds the bounds of a path.
    pub fn join(&self, name: &str) -> Option<Self> {
        let mut names = self.names.clone();
        names.push(name.to_owned());
        let below = Self::parse(&names.join("/")).ok().filter(|below| below.root.is_none() && below.names == names)?;
        Some(Self { root: self.root.clone(), ..below })
    }

    /// Returns the path in the form for a sentence.
    pub fn shown(&self) -> Shown {
        shown(&self.complete())
    }

    /// Returns the complete path, for a result.
    pub fn text(&self) -> String {
        on_one_line(&if self.root.is_none() && self.names.is_empty() { String::new() } else { self.complete() })
    }

    fn complete(&self) -> String {
        match (&self.root, self.names.as_slice()) {
            (None, []) => ".".to_owned(),
            (None, names) => names.join("/"),
            (Some(root), []) => root.clone(),
            (Some(root), names) => format!("{root}/{}", names.join("/")),
        }
    }

    /// Returns the names of the directories above, and the last name; `None` for a root itself.
    fn split(&self) -> Option<(&[String], &str)> {
        self.names.split_last().map(|(last, above)| (above, last.as_str()))
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name; bytes that are not UTF-8 are shown as `\xNN`, and such an entry cannot be opened.
    pub name: String,
    pub kind: EntryKind,
}

/// Kind of an entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file of so many bytes.
    File(u64),
    Directory,
    /// A symbolic link; shown, never followed.
    Link,
    /// A pipe, a socket or a device; shown, never opened.
    Special,
}

/// The directories that the local tools work in.
#[derive(Debug)]
pub struct Workspace {
    root: Option<OwnedFd>,
    /// Each with its name.
    granted: Vec<(String, OwnedFd)>,
    rules: Rules,
}

/// The rules by which a file is opened.
#[derive(Debug)]
enum Rules {
    /// Those of a jail, whose mounts decide what is there.
    Jail,
    /// Those of a directory of one author: no other mount, no file with a second name, and bounds.
    Alone(Bounds),
}

/// The bounds on the work of one call outside of a jail.
#[derive(Debug)]
pub struct Bounds {
    /// Bytes that are left to read.
    bytes: AtomicU64,
    /// Later no file and no directory is opened.
    until: Instant,
}

impl Bounds {
    /// Returns bounds on the bytes that a call reads, and on the time at which it opens files.
    #[must_use]
    pub const fn new(bytes: u64, until: Instant) -> Self {
        Self { bytes: AtomicU64::new(bytes), until }
    }
}

/// Flags to open a directory on the path: no link, and only directories.
const STEP: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// Flags to open a file: a pipe does not block, a terminal does not become the controlling one, a link is refused.
const FILE: OFlag = OFlag::O_NONBLOCK.union(OFlag::O_NOCTTY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A name never leads out of its directory, through a link or into another mount.
const BELOW: ResolveFlag = ResolveFlag::RESOLVE_BENEATH
    .union(ResolveFlag::RESOLVE_NO_SYMLINKS)
    .union(ResolveFlag::RESOLVE_NO_MAGICLINKS)
    .union(ResolveFlag::RESOLVE_NO_XDEV);
/// Bytes that a call reads of one file at most.
const BYTES_AT_ONCE: u64 = 1024 * 1024;

impl Workspace {
    /// Opens the workspace, and the granted directories by their names: `/` and one name.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn open<'a>(root: &Path, granted: impl IntoIterator<Item = (&'a str, &'a Path)>) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let open = |path: &Path| openat(AT_FDCWD, path, flags, Mode::empty());
        let mut opened = Vec::new();
        for (name, path) in granted {
            opened.push((name.to_owned(), open(path)?));
        }
        Ok(Self { root: Some(open(root)?), granted: opened, rules: Rules::Jail })
    }

    /// Opens one directory alone, by its name: `/` and one name. There is no workspace.
    ///
    /// No link leads to the directory or out of it, also none to another mount, and a file with two names counts as special. A call that
    /// exceeds its bounds fails, or leaves files out.
    ///
    /// # Errors
    /// Those of `openat2(2)`, also for a link.
    pub fn open_alone(name: &str, path: &Path, bounds: Bounds) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        let opened = openat2(AT_FDCWD, path, how)?;
        Ok(Self { root: None, granted: vec![(name.to_owned(), opened)], rules: Rules::Alone(bounds) })
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`Error`], also for a link, a directory, a pipe, a socket or a device.
    pub fn read(&self, path: &Below) -> Result<(File, FileStat), Error> {
        self.file(path, OFlag::O_RDONLY, "read")
    }

    /// Opens an existing regular file for appending.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    pub fn append(&self, path: &Below) -> Result<(File, FileStat), Error> {
        self.file(path, OFlag::O_WRONLY | OFlag::O_APPEND, "write")
    }

    fn file(&self, path: &Below, access: OFlag, what: &'static str) -> Result<(File, FileStat), Error> {
        let Some((above, name)) = path.split() else { return Err(self.refuse_root(path)) };
        let directory = self.walk(above, path, what)?;
        let file = self.open_file(&directory, name, access | FILE).map_err(|e| refusal(e, what, path))?;
        let stat = fstat(&file).map_err(|e| refusal(e, what, path))?;
        match kind(&stat) {
            EntryKind::File(bytes) if self.rules.permit(&stat, bytes) => Ok((file, stat)),
            EntryKind::File(_) => Err(Error::Special(path.shown())),
            EntryKind::Directory => Err(Error::IsDirectory(path.shown())),
            EntryKind::Link | EntryKind::Special => Err(Error::Special(path.shown())),
        }
    }

    fn open_file(&self, directory: &OwnedFd, name: &str, flags: OFlag) -> nix::Result<File> {
        match &self.rules {
            Rules::Jail => openat(directory, name, flags, Mode::empty()).map(File::from),
            // A pipe or a device notices nothing before its kind is known.
            Rules::Alone(_) => {
                let found = self.open_at(directory, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)?;
                if !matches!(kind(&fstat(&found)?), EntryKind::File(_)) {
                    return Ok(File::from(found));
                }
                let opened = File::options()
                    .read(true)
                    .custom_flags(OFlag::O_NONBLOCK.bits())
                    .open(format!("/proc/self/fd/{}", found.as_raw_fd()));
                opened.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32)))
            }
        }
    }

    /// Opens one name below an open directory.
    fn open_at(&self, directory: &OwnedFd, name: &str, flags: OFlag) -> nix::Result<OwnedFd> {
        match &self.rules {
            Rules::Jail => openat(directory, name, flags, Mode::empty()),
            Rules::Alone(bounds) if Instant::now() > bounds.until => Err(Errno::ETIME),
            Rules::Alone(_) => openat2(directory, name, OpenHow::new().flags(flags).resolve(BELOW)),
        }
    }

    /// Makes the missing directories above the file of this path; returns the last one, with the name of the file.
    ///
    /// # Errors
    /// [`Error`], also if a component of the path is no directory.
    pub fn make_parent<'a>(&self, path: &'a Below) -> Result<(OwnedFd, &'a str), Error> {
        let Some((above, name)) = path.split() else { return Err(self.refuse_root(path)) };
        let mut directory = self.reopen_root(path)?;
        for step in above {
            match mkdirat(&directory, step.as_str(), Mode::S_IRWXU | Mode::S_IRWXG | Mode::S_IRWXO) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(refusal(error, "make a directory for", path)),
            }
            directory = self.step(&directory, step, path, "write")?;
        }
        Ok((directory, name))
    }

    /// Returns the entries of a directory, at most `max` of them and whether there are more; sorted by name.
    ///
    /// # Errors
    /// As [`Workspace::read`], for a directory.
    pub fn list(&self, path: &Below, max: usize) -> Result<(Vec<Entry>, bool), Error> {
        let refused = |error| refusal(error, "list", path);
        let directory = match path.split() {
            None => self.reopen_root(path)?,
            Some((above, name)) => {
                let above = self.walk(above, path, "list")?;
                self.step(&above, name, path, "list")?
            }
        };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let readable = self.open_at(&directory, ".", flags).map_err(refused)?;
        let mut entries = Vec::new();
        for entry in Dir::from_fd(readable).map_err(refused)?.iter() {
            let entry = entry.map_err(refused)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if entries.len() == max {
                entries.sort_unstable_by(|a: &Entry, b: &Entry| a.name.cmp(&b.name));
                return Ok((entries, true));
            }
            let kind = match entry.file_type() {
                Some(Type::Directory) => EntryKind::Directory,
                Some(Type::Symlink) => EntryKind::Link,
                // The directory has no sizes, and on some file systems no types.
                _ => match fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Ok(stat) => kind(&stat),
                    Err(Errno::ENOENT) => continue,
                    Err(error) => return Err(refused(error)),
                },
            };
            let name = name.to_bytes();
            let name = std::str::from_utf8(name).map_or_else(|_| name.escape_ascii().to_string(), str::to_owned);
            entries.push(Entry { name, kind });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok((entries, false))
    }

    fn walk(&self, names: &[String], path: &Below, what: &'static str) -> Result<OwnedFd, Error> {
        names.iter().try_fold(self.reopen_root(path)?, |directory, name| self.step(&directory, name, path, what))
    }

    fn step(&self, above: &OwnedFd, name: &str, path: &Below, what: &'static str) -> Result<OwnedFd, Error> {
        self.open_at(above, name, STEP).map_err(|error| match error {
            // With O_DIRECTORY the error for a link is "not a directory"; the sentence should name the link.
            Errno::ENOTDIR => match fstatat(above, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) if kind(&stat) == EntryKind::Link => Error::Link(path.shown()),
                _ => refusal(error, what, path),
            },
            error => refusal(error, what, path),
        })
    }

    fn reopen_root(&self, path: &Below) -> Result<OwnedFd, Error> {
        let root = match &path.root {
            None => match &self.root {
                Some(root) => root,
                None => return Err(Error::Outside { path: path.shown(), there: self.there() }),
            },
            Some(root) => match self.granted.iter().find(|(name, _)| name == root) {
                Some((_, granted)) => granted,
                None => return Err(Error::Outside { path: path.shown(), there: self.there() }),
            },
        };
        self.open_at(root, ".", STEP).map_err(|error| refusal(error, "open", path))
    }

    /// Returns the error for a root in place of a file: it is a directory, or it does not exist.
    fn refuse_root(&self, path: &Below) -> Error {
        self.reopen_root(path).err().unwrap_or_else(|| Error::IsDirectory(path.shown()))
    }

    /// Returns the names of the directories, for a sentence.
    fn there(&self) -> String {
        let names: Vec<&str> =
            std::iter::once(ROOT).chain(self.granted.iter().map(|(name, _)| name.as_str())).collect();
        names.join(" and ")
    }
}

impl Rules {
    /// Returns whether a regular file of so many bytes may be read, and counts them.
    fn permit(&self, stat: &FileStat, bytes: u64) -> bool {
        match self {
            Self::Jail => true,
            Self::Alone(bounds) => {
                let left = bounds.bytes.load(Ordering::Relaxed).checked_sub(bytes.min(BYTES_AT_ONCE));
                bounds.bytes.store(left.unwrap_or_default(), Ordering::Relaxed);
                stat.st_nlink == 1 && left.is_some()
            }
        }
    }
}

/// Converts the system's error about a path into a sentence.
pub fn refusal(error: Errno, what: &'static str, path: &Below) -> Error {
    match error {
        Errno::ELOOP => Error::Link(path.shown()),
        // The path is a socket, or a pipe without a reader.
        Errno::ENXIO => Error::Special(path.shown()),
        Errno::EISDIR => Error::IsDirectory(path.shown()),
        error => Error::System { what, path: path.shown(), source: error.into() },
    }
}

pub fn kind(stat: &FileStat) -> EntryKind {
    match SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => EntryKind::File(u64::try_from(stat.st_size).unwrap_or(0)),
        SFlag::S_IFDIR => EntryKind::Directory,
        SFlag::S_IFLNK => EntryKind::Link,
        _ => EntryKind::Special,
    }
}

#[cfg(test)]
mod tests;
