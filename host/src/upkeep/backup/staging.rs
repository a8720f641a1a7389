//! The directories in which a backup is unpacked: beside a home that it will replace, or a temporary one for a verification.
//!
//! A home is replaced in one step, and its former content is kept. Nothing of a failed attempt remains; the next attempt removes the
//! directory of a killed one. See [`super::put`].

use super::error::Error;
use ironclaw_operator::LOCK_FILE;
use ironclaw_state::home::{directory_of, remove_tree};
use ironclaw_state::{failpoint, keys};
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, OFlag, RenameFlags, renameat2};
use nix::unistd::geteuid;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most names that are tried for the former content of a home.
const NAMES_MAX: u32 = 10_000;

/// Files that an empty home may have: the master key for the restore, and the lock.
const PERMITTED: [&str; 2] = ["master.key", LOCK_FILE];

/// Begin of the name of a directory in a home with its former content.
pub(super) const INSIDE: &str = "before-restore-";

/// A private directory that is removed at the end.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Held while the directory is in use. Not every file system locks directories.
    _lock: Option<Flock<File>>,
}

impl Scratch {
    /// Makes a directory in `parent`. Its name begins with `name`. Removes directories of this name whose process was killed.
    pub fn make(parent: &Path, name: &str) -> Result<Self, Error> {
        let prefix = format!(".{name}.");
        remove_left(parent, &prefix);
        loop {
            let random: [u8; 8] = keys::random()?;
            let path = parent.join(format!("{prefix}{:016x}", u64::from_ne_bytes(random)));
            if let Err(source) = DirBuilder::new().mode(0o700).create(&path) {
                return Err(Error::Io { path, source });
            }
            match lock(&path) {
                // Another process took it for a left one in this moment, and removes it.
                Err(error) if is_held(&error) || !path.exists() => {}
                locked => return Ok(Self { path, _lock: locked.ok() }),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error leaves a directory that only its owner can enter.
        let _ = remove_tree(&self.path);
    }
}

/// Locks a directory, unless another process holds it.
fn lock(path: &Path) -> io::Result<Flock<File>> {
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let directory = File::options().read(true).custom_flags(flags).open(path)?;
    Flock::lock(directory, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

fn is_held(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Removes own scratch directories that no process holds. An error leaves them for the next attempt.
fn remove_left(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let is_scratch =
            number.is_some_and(|number| number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let is_own = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if is_scratch
            && is_own
            && let Ok(_held) = lock(&entry.path())
        {
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Returns whether a home is missing, or has nothing that a restore would lose.
pub fn is_empty(home: &Path) -> Result<bool, Error> {
    let fault = |source| Error::Io { path: home.to_owned(), source };
    let entries = match fs::read_dir(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries.map_err(fault)?,
    };
    for entry in entries {
        let name = entry.map_err(fault)?.file_name();
        if !PERMITTED.iter().any(|permitted| name == *permitted) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A home that is being restored, in a directory of its own.
#[derive(Debug)]
pub struct Staging {
    scratch: Scratch,
    home: PathBuf,
    /// The home was missing.
    is_new: bool,
    /// The home has content to keep.
    keeps: bool,
    /// The directory is in the home: the one above the home cannot be written.
    is_inside: bool,
}

impl Staging {
    /// Makes the directory beside the home, or in the home if that is not possible. Makes missing directories above the home. With
    /// `keeps`, the former content of the home is kept.
    ///
    /// # Errors
    /// [`Error::Swap`] if neither can be written.
    pub fn create(home: &Path, keeps: bool) -> Result<Self, Error> {
        let is_new = !home.exists();
        let name = home.file_name().unwrap_or_default().to_string_lossy();
        let above = directory_of(home);
        let swap = |source| Error::Swap { path: home.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(swap)?;
        let beside = match is_mount(home) {
            true => Err(Error::Io { path: home.to_owned(), source: io::ErrorKind::CrossesDevices.into() }),
            false => Scratch::make(above, &format!("{name}.restoring")),
        };
        let (scratch, is_inside) = match beside {
            Ok(scratch) => (scratch, false),
            Err(error) if error.is_disk_full() => return Err(error),
            Err(Error::Io { source, .. }) => {
                let inside = Scratch::make(home, "restoring");
                (inside.map_err(|_| swap(source))?, true)
            }
            Err(error) => return Err(error),
        };
        Ok(Self { scratch, home: home.to_owned(), is_new, keeps, is_inside })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Puts the directory in the place of the home. Returns the directory with the former content, unless the home was missing or
    /// empty. Beside the home it is one step. In the home, a crash leaves a home without a record, which does not start.
    ///
    /// # Errors
    /// [`Error::Swap`].
    pub fn take_over(self) -> Result<Option<PathBuf>, Error> {
        let (from, home) = (self.scratch.path(), self.home.as_path());
        let taken = match self.is_inside {
            true => exchange_content(home, from, self.keeps),
            false if self.is_new => rename(from, home, RenameFlags::RENAME_NOREPLACE).map(|()| None),
            false => exchange(home, from, self.keeps),
        };
        let taken = taken.map_err(|source| Error::Swap { path: home.to_owned(), source })?;
        // The content is on the disk. After a power cut, the names may be the former ones.
        let _ = sync(directory_of(home));
        Ok(taken)
    }
}

/// Returns whether a home is on another file system than the directory above it, so that it cannot be renamed.
fn is_mount(home: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    device(home).is_some_and(|own| device(directory_of(home)) != Some(own))
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    Ok(renameat2(AT_FDCWD, from, AT_FDCWD, to, flags)?)
}

/// Exchanges a home and the directory beside it. The directory gets the name for the former content first, so that a crash never leaves
/// this content in a directory that is removed.
fn exchange(home: &Path, from: &Path, keeps: bool) -> io::Result<Option<PathBuf>> {
    if !keeps {
        return rename(from, home, RenameFlags::RENAME_EXCHANGE).map(|()| None);
    }
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let former = |number| home.with_file_name(format!("{name}.before-restore-{number}"));
    let former = free_name(former, |to| rename(from, to, RenameFlags::RENAME_NOREPLACE))?;
    failpoint::reach("restore_named");
    match rename(&former, home, RenameFlags::RENAME_EXCHANGE) {
        Ok(()) => Ok(Some(former)),
        Err(error) => {
            // Back, so that it is removed with the scratch directory.
            rename(&former, from, RenameFlags::RENAME_NOREPLACE)?;
            Err(error)
        }
    }
}

/// Moves the content of a home to a directory in it, and then the restored content into the home: the record first and last.
fn exchange_content(home: &Path, from: &Path, keeps: bool) -> io::Result<Option<PathBuf>> {
    let former = match keeps {
        true => {
            let make = |to: &Path| DirBuilder::new().mode(0o700).create(to);
            Some(free_name(|number| home.join(format!("{INSIDE}{number}")), make)?)
        }
        false => None,
    };
    if let Some(former) = &former {
        let stays = |name: &str| {
            name.starts_with(INSIDE)
                || name == LOCK_FILE
                || Some(name) == from.file_name().and_then(|name| name.to_str())
        };
        for name in names(home, true)?.into_iter().filter(|name| !name.to_str().is_some_and(stays)) {
            fs::rename(home.join(&name), former.join(&name))?;
        }
        sync(former)?;
    }
    for name in names(from, false)? {
        if name == "state.db" {
            // The record appears on the disk after everything else.
            sync(home)?;
        }
        fs::rename(from.join(&name), home.join(&name))?;
    }
    sync(home)?;
    Ok(former)
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Returns the names in a directory, with that of the record first or last.
fn names(directory: &Path, record_first: bool) -> io::Result<Vec<OsString>> {
    let mut names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort_by_key(|name| (name == "state.db") != record_first);
    Ok(names)
}

/// Uses the first free name.
fn free_name(name: impl Fn(u32) -> PathBuf, take: impl Fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    for number in 1..=NAMES_MAX {
        let to = name(number);
        match take(&to) {
            Ok(()) => return Ok(to),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staging(home: &Path) -> Result<Staging, Error> {
        Staging::create(home, !is_empty(home)?)
    }

    #[test]
    fn former_content_is_kept_beside_the_home() {
        let temporary = tempfile::tempdir().expect("made");
        let directory = temporary.path().join("missing");
        let home = directory.join("h");
        let restore = |text: &str| {
            let made = staging(&home).expect("made");
            fs::write(made.path().join("state.db"), text).expect("written");
            made.take_over().expect("put in place")
        };
        assert_eq!(restore("one"), None, "there was no home");
        for (number, before, after) in [(1, "one", "two"), (2, "two", "three")] {
            let former = restore(after).expect("kept");
            assert_eq!(former, directory.join(format!("h.before-restore-{number}")));
            assert_eq!(fs::read_to_string(former.join("state.db")).expect("kept"), before);
            assert_eq!(fs::read_to_string(home.join("state.db")).expect("restored"), after);
        }
        drop(staging(&home).expect("made"));
        // A killed attempt leaves a directory without a lock, and one that still runs has a lock.
        fs::create_dir(directory.join(".h.restoring.0123456789abcdef")).expect("made");
        let running = staging(&home).expect("made");
        drop(staging(&home).expect("made"));
        assert!(running.path().exists(), "it is in use");
        drop(running);
        let names: Vec<_> = fs::read_dir(&directory).expect("read").flatten().map(|e| e.file_name()).collect();
        assert_eq!(names.len(), 3, "nothing of a failed attempt remains: {names:?}");
    }

    #[test]
    fn content_is_exchanged_within_a_home() {
        let directory = tempfile::tempdir().expect("made");
        let (home, from) = (directory.path(), directory.path().join(".restoring.1"));
        let write = |path: PathBuf, text: &str| fs::write(path, text).expect("written");
        for (number, text) in [(1, "two"), (2, "three")] {
            write(home.join("host.lock"), "");
            fs::create_dir(&from).expect("made");
            write(from.join("state.db"), text);
            write(home.join("old.txt"), "old");
            let former = exchange_content(home, &from, true).expect("exchanged").expect("kept");
            assert_eq!(former, home.join(format!("before-restore-{number}")));
            assert!(former.join("old.txt").exists() && !home.join("old.txt").exists());
            assert!(home.join("host.lock").exists(), "the lock stays");
            assert_eq!(fs::read_to_string(home.join("state.db")).expect("restored"), text);
            fs::remove_dir(&from).expect("empty");
        }
        assert_eq!(fs::read_to_string(home.join("before-restore-2/state.db")).expect("kept"), "two");
    }

    #[test]
    fn home_that_was_made_meanwhile_is_not_replaced() {
        let directory = tempfile::tempdir().expect("made");
        let home = directory.path().join("h");
        let made = staging(&home).expect("made");
        fs::create_dir(&home).expect("made");
        fs::write(home.join("state.db"), "other").expect("written");
        assert!(matches!(made.take_over(), Err(Error::Swap { .. })));
        assert_eq!(fs::read_to_string(home.join("state.db")).expect("kept"), "other");
        assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 1, "nothing of the attempt remains");
    }

    #[test]
    fn empty_home_with_a_key_is_replaced_without_a_trace() {
        let directory = tempfile::tempdir().expect("made");
        let home = directory.path().join("h");
        fs::create_dir(&home).expect("made");
        assert!(is_empty(&home).expect("read"));
        fs::write(home.join("master.key"), "k").expect("written");
        assert!(is_empty(&home).expect("read"));
        assert_eq!(staging(&home).expect("made").take_over().expect("in place"), None);
        assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 1);
        fs::write(home.join("config.toml"), "").expect("written");
        assert!(!is_empty(&home).expect("read"));
    }
}
