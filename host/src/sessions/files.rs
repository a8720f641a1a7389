//! The files in the workspace of a session: list, read, write and remove, for people.
//!
//! The agent may change its workspace at any moment, so each path is resolved in one call below the workspace, never through a link,
//! and the host opens only what the kernel has reported as a regular file. See [`crate::runtime::workspace_files`].

mod path;
#[cfg(test)]
mod tests;
pub mod versions;

pub use ironclaw_operator::FileKind as Kind;
pub use path::{FilePath, shown};

use crate::registry::quota;
use crate::registry::quota::workspace;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{Bound, DenialCode, FILE_GET_BYTES_MAX};
use ironclaw_state::home::SessionDirectories;
use ironclaw_store::refusal::{Denied, Refusal};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{self, AtFlags, OFlag, OpenHow, RenameFlags, ResolveFlag, openat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, fsync, unlinkat};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Entries of one list.
pub const ENTRIES_MAX: usize = 1000;

/// Mode of a file that the host writes.
const FILE_MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// Mode of a directory that the host makes.
const DIRECTORY_MODE: Mode = Mode::S_IRWXU;

/// Name of an incomplete file. It is in the directory of the session, which no sandbox sees.
const DRAFT: &str = "put.new";

/// Bytes of a block, to which the size of a file is rounded up for the quota.
const BLOCK_BYTES: u64 = 4096;

/// The flags with which each directory is opened.
const DIRECTORY: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// The flags that find a file without opening it, so that a pipe or a device notices nothing.
const FOUND: OFlag = OFlag::O_PATH.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A path never leaves the workspace, and never goes through a link or into another mount.
const BENEATH: ResolveFlag = ResolveFlag::RESOLVE_BENEATH
    .union(ResolveFlag::RESOLVE_NO_SYMLINKS)
    .union(ResolveFlag::RESOLVE_NO_MAGICLINKS)
    .union(ResolveFlag::RESOLVE_NO_XDEV);

/// The reason that an operation did not happen.
pub type Error = Denied<io::Error>;

fn kind_of(stat: &FileStat) -> Kind {
    match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => Kind::File,
        SFlag::S_IFDIR => Kind::Directory,
        SFlag::S_IFLNK => Kind::Link,
        _ => Kind::Special,
    }
}

const fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "a file",
        Kind::Directory => "a directory",
        Kind::Link => "a link, and links are not followed",
        Kind::Special => "a pipe, a socket or a device",
    }
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path below the workspace, in the bytes that the agent chose.
    pub path: PathBuf,
    pub kind: Kind,
    /// Its size, if it is a file.
    pub bytes: u64,
    /// The time of its last change, in milliseconds since the epoch.
    pub modified_at: i64,
}

/// The workspace of one session, with its directory.
#[derive(Debug)]
pub struct Files {
    root: OwnedFd,
    /// The directory of the session, which only the host can write to.
    session: OwnedFd,
    /// The uid of the session, if the host was started as root.
    owner: Option<u32>,
}

impl Files {
    /// Opens the workspace; `None` if the session has none yet.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn open(place: &SessionDirectories, owner: Option<u32>) -> io::Result<Option<Self>> {
        let open = |path: &Path| match fcntl::open(path, DIRECTORY, Mode::empty()) {
            Err(Errno::ENOENT) => Ok(None),
            opened => opened.map(Some),
        };
        let (session, root) = (open(place.path())?, open(&place.workspace())?);
        Ok(session.zip(root).map(|(session, root)| Self { root, session, owner }))
    }

    /// Returns the entries below a directory, sorted by path, and whether there are more than [`ENTRIES_MAX`].
    ///
    /// # Errors
    /// Refuses a path that leads to no directory.
    pub fn list(&self, at: &FilePath, levels: usize) -> Result<(Vec<Entry>, bool), Error> {
        let mut left = VecDeque::from([(PathBuf::from(at.text()), 1)]);
        let (mut entries, mut more) = (Vec::new(), false);
        while let Some((directory, level)) = left.pop_front().filter(|_| !more) {
            let begins = entries.len();
            match self.list_one(&directory, &mut entries) {
                Ok(is_cut) => more = is_cut,
                Err(error) if level == 1 => return Err(refused(error, at)),
                // The agent removed, replaced or closed a directory below.
                Err(_) => {}
            }
            if level < levels {
                let found = entries[begins..].iter().filter(|entry| entry.kind == Kind::Directory);
                left.extend(found.map(|entry| (entry.path.clone(), level + 1)));
            }
        }
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok((entries, more))
    }

    /// Adds the entries of one directory; returns whether there was no room for all of them.
    fn list_one(&self, at: &Path, entries: &mut Vec<Entry>) -> nix::Result<bool> {
        let opened = self.resolve(at, DIRECTORY)?;
        for entry in Dir::openat(&opened, ".", DIRECTORY, Mode::empty())?.iter() {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            if entries.len() == ENTRIES_MAX {
                return Ok(true);
            }
            let stat = match fstatat(&opened, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => continue,
                stat => stat?,
            };
            let kind = kind_of(&stat);
            entries.push(Entry {
                path: at.join(OsStr::from_bytes(name.to_bytes())),
                kind,
                bytes: if kind == Kind::File { stat.st_size.unsigned_abs() } else { 0 },
                modified_at: stat.st_mtime.saturating_mul(1000),
            });
        }
        Ok(false)
    }

    /// Opens a file for reading; also returns its size.
    ///
    /// # Errors
    /// Refuses a path that leads to no regular file, and a file of more than [`FILE_GET_BYTES_MAX`] bytes.
    pub fn read(&self, path: &FilePath) -> Result<(File, u64), Error> {
        let (found, bytes) = self.find(path)?;
        if bytes > FILE_GET_BYTES_MAX {
            let remedy = "copy it from sessions/ID/workspace in the home as the user of the host";
            let bound = Bound::new(format!("bytes of {}", path.shown()), FILE_GET_BYTES_MAX, bytes, remedy);
            return Err(Refusal::over(DenialCode::FileTooLarge, bound).into());
        }
        Ok((reopen(&found).map_err(|error| refused(errno(&error), path))?, bytes))
    }

    /// Finds a regular file without opening it; also returns its size.
    fn find(&self, path: &FilePath) -> Result<(OwnedFd, u64), Error> {
        let found = self.resolve(Path::new(&path.text()), FOUND).map_err(|error| refused(error, path))?;
        let stat = fstat(&found).map_err(|error| refused(error, path))?;
        match kind_of(&stat) {
            Kind::File => {}
            kind => return Err(unfit(path, kind)),
        }
        // The agent can link only its own files; a link to a file of another user is not from the agent.
        if stat.st_nlink > 1 && self.owner.is_some_and(|owner| stat.st_uid != owner) {
            let words = format!("refused {}: it is a hard link to a file of another user", path.shown());
            return Err(Refusal::new(DenialCode::FileUnfit, words).into());
        }
        Ok((found, stat.st_size.unsigned_abs()))
    }

    /// Prepares the writing of a file: checks the path and the room, makes missing directories, and writes the content to a draft.
    ///
    /// # Errors
    /// Refuses a path that is taken by a file (unless it `replaces` the file) or by something else, and a file without room.
    pub fn draft(
        self,
        place: &SessionDirectories,
        quota: &quota::Config,
        path: FilePath,
        content: &[u8],
        replaces: bool,
    ) -> Result<Draft, Error> {
        let (above, name) = path.split().ok_or_else(|| unfit(&path, Kind::Directory))?;
        check_room(place, quota, &path, content.len() as u64)?;
        let directory = self.make_directories(above).map_err(|error| refused(error, &path))?;
        match fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => {}
            Err(error) => return Err(refused(error, &path)),
            Ok(stat) => match kind_of(&stat) {
                Kind::File if replaces => {}
                Kind::File => return Err(taken(&path)),
                kind => return Err(unfit(&path, kind)),
            },
        }
        let name = name.to_owned();
        let draft = Draft { files: self, directory, name, path, replaces, is_placed: false };
        draft.write(content).map_err(Denied::Failed)?;
        Ok(draft)
    }

    /// Opens the directory of these names, and makes the missing ones.
    fn make_directories(&self, names: &[String]) -> nix::Result<OwnedFd> {
        let mut directory = self.resolve(Path::new(""), DIRECTORY)?;
        for (count, name) in names.iter().enumerate() {
            let path = names[..=count].join("/");
            directory = match self.resolve(Path::new(&path), DIRECTORY) {
                Err(Errno::ENOENT) => {
                    let is_ours = match mkdirat(&directory, name.as_str(), DIRECTORY_MODE) {
                        Err(Errno::EEXIST) => false,
                        made => made.map(|()| true)?,
                    };
                    let made = self.resolve(Path::new(&path), DIRECTORY)?;
                    if let Some(owner) = self.owner.filter(|_| is_ours) {
                        fchown(&made, Some(owner), Some(owner)).map_err(|error| errno(&error))?;
                    }
                    made
                }
                found => found?,
            };
        }
        Ok(directory)
    }

    /// Prepares the removal of a file.
    ///
    /// # Errors
    /// Refuses a path that leads to no regular file.
    pub fn removal(&self, path: FilePath) -> Result<Removal, Error> {
        let (found, bytes) = self.find(&path)?;
        let (above, name) = path.split().ok_or_else(|| unfit(&path, Kind::Directory))?;
        let above = self.resolve(Path::new(&above.join("/")), DIRECTORY).map_err(|error| refused(error, &path))?;
        let name = name.to_owned();
        Ok(Removal { directory: above, name, digest: digest(&found, bytes), bytes, path })
    }

    /// Resolves a path below the workspace.
    fn resolve(&self, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fcntl::openat2(&self.root, path, OpenHow::new().flags(flags).resolve(BENEATH))
    }
}

/// A complete file outside of the workspace, with its place in the workspace. Dropping it removes the file.
#[derive(Debug)]
pub struct Draft {
    files: Files,
    directory: OwnedFd,
    name: String,
    path: FilePath,
    replaces: bool,
    is_placed: bool,
}

impl Draft {
    fn write(&self, content: &[u8]) -> io::Result<()> {
        let session = &self.files.session;
        match unlinkat(session, DRAFT, UnlinkatFlags::NoRemoveDir) {
            // A killed host left one.
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(session, DRAFT, flags, FILE_MODE)?);
        if let Some(owner) = self.files.owner {
            fchown(&file, Some(owner), Some(owner))?;
        }
        file.write_all(content)?;
        file.sync_all()
    }

    /// Moves the file to its place. The agent sees all of it or nothing.
    ///
    /// # Errors
    /// Refuses a place that was taken meanwhile.
    pub fn place(mut self) -> Result<(), Error> {
        let flags = if self.replaces { RenameFlags::empty() } else { RenameFlags::RENAME_NOREPLACE };
        let moved = renameat2(&self.files.session, DRAFT, &self.directory, self.name.as_str(), flags);
        match moved {
            Ok(()) => self.is_placed = true,
            Err(Errno::EEXIST) => return Err(taken(&self.path)),
            Err(Errno::EISDIR | Errno::ENOTEMPTY) => return Err(unfit(&self.path, Kind::Directory)),
            Err(error) => return Err(refused(error, &self.path)),
        }
        fsync(&self.directory).map_err(|error| Denied::Failed(error.into()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_placed {
            // The next draft removes it otherwise.
            let _ = unlinkat(&self.files.session, DRAFT, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// A file that is about to be removed.
#[derive(Debug)]
pub struct Removal {
    directory: OwnedFd,
    name: String,
    path: FilePath,
    pub bytes: u64,
    /// The digest of its content, if the host can read it and it is not too large.
    pub digest: Option<Digest>,
}

impl Removal {
    /// Removes the name of the file, whatever file has the name by now; never a directory.
    ///
    /// # Errors
    /// Refuses a file that is gone, or whose directory keeps the host out.
    pub fn remove(self) -> Result<(), Error> {
        let removed = unlinkat(&self.directory, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        removed.map_err(|error| refused(error, &self.path))
    }
}

/// Opens a found file for reading. The path names the found file itself, also if another one has its name by now.
fn reopen(found: &OwnedFd) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

fn digest(found: &OwnedFd, bytes: u64) -> Option<Digest> {
    if bytes > FILE_GET_BYTES_MAX {
        return None;
    }
    let mut content = Vec::new();
    reopen(found).ok()?.take(FILE_GET_BYTES_MAX).read_to_end(&mut content).ok()?;
    Some(Digest::of(&content))
}

/// Refuses a file that would take the directories of the session over their quota.
fn check_room(place: &SessionDirectories, quota: &quota::Config, path: &FilePath, bytes: u64) -> Result<(), Error> {
    let rounded = bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
    let rest = quota::Config {
        workspace_bytes: quota.workspace_bytes.saturating_sub(rounded),
        workspace_files: quota.workspace_files.saturating_sub(path.names().len() as u64),
        ..quota.clone()
    };
    let Some(over) = workspace::exceeded_bound(place.path(), &rest).map_err(Denied::Failed)? else { return Ok(()) };
    let (most, files) = (quota.workspace_bytes, quota.workspace_files);
    let words = format!(
        "no room for {} of {bytes} bytes in the workspace ({}): it takes at most {most} bytes and {files} files",
        path.shown(),
        over.code()
    );
    let hint = "remove files with `ironctl file remove`, or raise quota.workspace_bytes or quota.workspace_files, then \
                `ironctl config reload`";
    Err(Refusal::new(DenialCode::WorkspaceFull, words).hint(hint).into())
}

fn taken(path: &FilePath) -> Error {
    let refusal = Refusal::new(DenialCode::FileExists, format!("the workspace already has {}", path.shown()));
    refusal.hint("choose another path, or replace the file with --replace").into()
}

fn unfit(path: &FilePath, kind: Kind) -> Error {
    let refusal = Refusal::new(DenialCode::FileUnfit, format!("refused {}: it is {}", path.shown(), words(kind)));
    refusal.hint("only regular files can be read, written and removed").into()
}

/// Returns the refusal for an error of the system about a path.
fn refused(error: Errno, path: &FilePath) -> Error {
    let shown = path.shown();
    let (code, words, hint) = match error {
        Errno::ENOENT => (
            DenialCode::FileUnknown,
            format!("there is no file {shown} in the workspace"),
            "list it: `ironctl file list`",
        ),
        Errno::ELOOP => (DenialCode::FileUnfit, format!("refused {shown}: links are not followed"), ""),
        Errno::ENOTDIR => {
            (DenialCode::FileUnfit, format!("refused {shown}: a file is in the place of a directory"), "")
        }
        Errno::EXDEV => (DenialCode::FileUnfit, format!("refused {shown}: it is outside of the workspace"), ""),
        Errno::EISDIR => return unfit(path, Kind::Directory),
        Errno::ENAMETOOLONG => (DenialCode::FilePath, format!("refused {shown}: a name is too long"), ""),
        Errno::EACCES | Errno::EPERM => (
            DenialCode::FileClosed,
            format!("the permissions of {shown} keep the host out"),
            "the user of the host can change them in sessions/ID/workspace of the home",
        ),
        error => return Denied::Failed(error.into()),
    };
    Refusal::new(code, words).hint(hint).into()
}

/// Returns whether a path below the workspace has no entry, so that a file can be made there.
fn no_file_at(files: &Files, path: &str) -> bool {
    files.resolve(Path::new(path), FOUND).is_err_and(|error| error == Errno::ENOENT)
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32))
}
