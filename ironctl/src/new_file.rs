//! A new private file that appears under its name only when it is complete.
//!
//! Never overwrites a file unless the caller says so. Nothing remains of an incomplete file, also if this process is killed; on a file
//! system without unnamed files, a killed process leaves `.NAME.PID.new`. See [`crate::commands`].

use crate::failure::Error;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, renameat2};
use nix::unistd::linkat;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that has no name yet, or a temporary one beside its place.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// The temporary name, if the file has one.
    temporary: Option<PathBuf>,
    file: File,
    replaces: bool,
}

impl NewFile {
    /// Makes the file, mode 0600. With `replaces`, it will replace an existing file.
    pub fn create(path: &Path, replaces: bool) -> Result<Self, Error> {
        if path.is_dir() {
            return Err(
                Error::failed("file_exists", format!("{} is a directory", path.display())).hinting("name a file in it")
            );
        }
        if !replaces && path.symlink_metadata().is_ok() {
            return Err(taken(path));
        }
        if path.file_name().is_none() {
            return Err(unwritten(path, io::ErrorKind::InvalidFilename.into()));
        }
        let open = |place: &Path, flags: OFlag| {
            OpenOptions::new().write(true).mode(0o600).custom_flags(flags.bits()).open(place)
        };
        let opened = match open(directory_of(path), OFlag::O_TMPFILE) {
            Err(error) if is_unknown(&error) => {
                let temporary = temporary_of(path);
                open(&temporary, OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW).map(|file| (file, Some(temporary)))
            }
            opened => opened.map(|file| (file, None)),
        };
        let (file, temporary) = opened.map_err(|cause| unwritten(path, cause))?;
        Ok(Self { path: path.to_owned(), temporary, file, replaces })
    }

    /// Returns another handle of the file, for a process that writes it.
    pub fn handle(&self) -> Result<File, Error> {
        self.file.try_clone().map_err(|cause| unwritten(&self.path, cause))
    }

    /// Writes bytes at the end.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|cause| unwritten(&self.path, cause))
    }

    /// Gives the file its name, durably.
    pub fn keep(mut self) -> Result<(), Error> {
        self.file.sync_all().map_err(|cause| unwritten(&self.path, cause))?;
        match (self.temporary.clone(), self.replaces) {
            (None, false) => self.link(&self.path)?,
            (Some(temporary), false) => self.rename_to_new(&temporary)?,
            (temporary, true) => {
                let temporary = temporary.map_or_else(|| self.link_temporary(), Ok)?;
                fs::rename(temporary, &self.path).map_err(|cause| unwritten(&self.path, cause))?;
            }
        }
        self.temporary = None;
        // The content is on the disk. Not every file system can sync a directory.
        let _ = File::open(directory_of(&self.path)).and_then(|parent| parent.sync_all());
        Ok(())
    }

    /// Gives the unnamed file a name.
    fn link(&self, name: &Path) -> Result<(), Error> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match linkat(AT_FDCWD, own.as_str(), AT_FDCWD, name, AtFlags::AT_SYMLINK_FOLLOW) {
            Ok(()) => Ok(()),
            Err(Errno::EEXIST) => Err(taken(name)),
            Err(error) => Err(unwritten(name, error.into())),
        }
    }

    fn link_temporary(&mut self) -> Result<PathBuf, Error> {
        let temporary = temporary_of(&self.path);
        self.link(&temporary)?;
        self.temporary = Some(temporary.clone());
        Ok(temporary)
    }

    fn rename_to_new(&self, from: &Path) -> Result<(), Error> {
        let to = self.path.as_path();
        match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::EEXIST) => Err(taken(to)),
            // Some file systems cannot refuse to replace.
            Err(Errno::EINVAL | Errno::ENOSYS) if to.symlink_metadata().is_ok() => Err(taken(to)),
            Err(Errno::EINVAL | Errno::ENOSYS) => fs::rename(from, to).map_err(|cause| unwritten(to, cause)),
            Err(error) => Err(unwritten(to, error.into())),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

/// Returns whether the file system, or the kernel, has no unnamed files.
fn is_unknown(error: &io::Error) -> bool {
    let codes = [Errno::EOPNOTSUPP, Errno::EISDIR, Errno::EINVAL];
    error.raw_os_error().is_some_and(|code| codes.contains(&Errno::from_raw(code)))
}

fn taken(path: &Path) -> Error {
    Error::failed("file_exists", format!("{} exists", path.display()))
        .hinting("name another file, or replace it with --force")
}

fn unwritten(path: &Path, cause: io::Error) -> Error {
    let is_full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let error = Error::failed(
        if is_full { "disk_full" } else { "file_unwritable" },
        format!("cannot write {}", path.display()),
    );
    let hint = if is_full { "free space there, or name a file on another disk" } else { "" };
    error.hinting(hint).because(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("read").flatten();
        entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn existing_file_is_replaced_only_on_request() {
        let directory = tempfile::tempdir().expect("made");
        let path = directory.path().join("b");
        let write = |text: &str, force: bool| -> Result<(), Error> {
            let mut file = NewFile::create(&path, force)?;
            file.write(text.as_bytes())?;
            file.keep()
        };
        write("one", false).expect("new");
        let code = |refused: Result<(), Error>| refused.expect_err("refused").report().expect("shown").error.code;
        assert_eq!(code(write("two", false)), "file_exists");
        write("three", true).expect("forced");
        assert_eq!(fs::read_to_string(&path).expect("read"), "three");
        // The name is taken while the file is written.
        let other = directory.path().join("c");
        let late = NewFile::create(&other, false).expect("free");
        fs::write(&other, "first").expect("written");
        assert_eq!(code(late.keep()), "file_exists");
        assert_eq!(fs::read_to_string(&other).expect("read"), "first");
        assert_eq!(names(directory.path()).len(), 2, "no incomplete file remains");
    }

    #[test]
    fn incomplete_file_has_no_name_and_is_removed() {
        let directory = tempfile::tempdir().expect("made");
        let mut file = NewFile::create(&directory.path().join("b"), false).expect("made");
        file.write(b"half").expect("written");
        assert_eq!(names(directory.path()).len(), usize::from(file.temporary.is_some()));
        drop(file);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn file_system_without_unnamed_files_has_the_same_result() {
        let directory = tempfile::tempdir().expect("made");
        let named = |name: &str, replaces: bool| {
            let path = directory.path().join(name);
            let temporary = directory.path().join(".temporary");
            let file = File::create_new(&temporary).expect("made");
            NewFile { path, temporary: Some(temporary), file, replaces }
        };
        named("b", false).keep().expect("new");
        assert!(named("b", false).keep().is_err(), "it exists");
        named("b", true).keep().expect("replaced");
        drop(named("c", false));
        assert_eq!(names(directory.path()), ["b"]);
    }
}
