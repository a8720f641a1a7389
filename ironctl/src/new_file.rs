//! A new private file that appears under its name only when it is complete.
//!
//! Never overwrites a file unless the caller says so. Nothing remains of an incomplete file. See [`crate::commands`].

use crate::failure::Error;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file under a temporary name beside its place.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    replaces: bool,
    is_kept: bool,
}

impl NewFile {
    /// Makes the file, mode 0600. With `replaces`, it will replace an existing file.
    pub fn create(path: &Path, replaces: bool) -> Result<Self, Error> {
        if !replaces && path.symlink_metadata().is_ok() {
            return Err(taken(path));
        }
        let name = path.file_name().ok_or_else(|| unwritten(path, io::ErrorKind::InvalidFilename.into()))?;
        let temporary = path.with_file_name(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
        let file = file.map_err(|cause| unwritten(path, cause))?;
        Ok(Self { path: path.to_owned(), temporary, file, replaces, is_kept: false })
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
        if self.replaces {
            fs::rename(&self.temporary, &self.path).map_err(|cause| unwritten(&self.path, cause))?;
        } else {
            self.rename_to_new()?;
        }
        self.is_kept = true;
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The content is on the disk. Not every file system can sync a directory.
        let _ = File::open(parent).and_then(|parent| parent.sync_all());
        Ok(())
    }

    fn rename_to_new(&self) -> Result<(), Error> {
        let (from, to) = (self.temporary.as_path(), self.path.as_path());
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
        if !self.is_kept {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn taken(path: &Path) -> Error {
    Error::failed("file_exists", format!("{} exists", path.display()))
        .hinting("name another file, or replace it with --force")
}

fn unwritten(path: &Path, cause: io::Error) -> Error {
    let is_full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let error = Error::failed(
        if is_full { "disk_full" } else { "file_not_written" },
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
    fn incomplete_file_is_removed() {
        let directory = tempfile::tempdir().expect("made");
        let mut file = NewFile::create(&directory.path().join("b"), false).expect("made");
        file.write(b"half").expect("written");
        assert_eq!(names(directory.path()).len(), 1);
        drop(file);
        assert!(names(directory.path()).is_empty());
    }
}
