//! Files of the caller: reads them up to a bound, and writes them without surprise.
//!
//! Never writes through a link, and never replaces a file unasked. See `commands::file` and `commands::chat::attach`.

use crate::failure::Error;
use crate::new_file::NewFile;
use nix::fcntl::OFlag;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a mebibyte.
const MIB: usize = 1024 * 1024;

/// Reads a file; refuses one with more than `bytes_max` bytes. Standard input and pipes are read too.
pub fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let file = File::open(path).map_err(|cause| refused(path, cause))?;
    read_up_to(path, file, bytes_max)
}

/// Reads a regular file; refuses a link, a directory, a pipe, a socket, a device and a file with more than `bytes_max` bytes, each by
/// its name and before its content is read.
pub fn read_regular(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let unfit = |words: &str| refused(path, io::Error::other(words.to_owned()));
    let found = fs::symlink_metadata(path).map_err(|cause| refused(path, cause))?;
    if let Some(words) = unfit_kind(&found) {
        return Err(unfit(words));
    }
    // Another file may have the name by now. The flags prevent that a link is followed, and that a pipe makes the program wait.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|cause| refused(path, cause))?;
    let opened = file.metadata().map_err(|cause| refused(path, cause))?;
    if let Some(words) = unfit_kind(&opened) {
        return Err(unfit(words));
    }
    if opened.len() > bytes_max as u64 {
        return Err(too_long(path, bytes_max));
    }
    read_up_to(path, file, bytes_max)
}

fn unfit_kind(of: &fs::Metadata) -> Option<&'static str> {
    match of.file_type() {
        kind if kind.is_file() => None,
        kind if kind.is_symlink() => Some("it is a link, and links are not followed"),
        kind if kind.is_dir() => Some("it is a directory"),
        _ => Some("it is a pipe, a socket or a device"),
    }
}

fn read_up_to(path: &Path, file: File, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(|cause| refused(path, cause))?;
    if bytes.len() > bytes_max { Err(too_long(path, bytes_max)) } else { Ok(bytes) }
}

fn too_long(path: &Path, bytes_max: usize) -> Error {
    let bound = if bytes_max < MIB { format!("{} KiB", bytes_max / 1024) } else { format!("{} MiB", bytes_max / MIB) };
    refused(path, io::Error::other(format!("it is longer than {bound}")))
}

fn refused(path: &Path, cause: io::Error) -> Error {
    Error::failed("file_refused", format!("cannot send {}", path.display())).because(cause)
}

/// Writes a new file of mode 0600; with `force` it replaces a regular file as a whole.
pub fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Error> {
    let unwritable = || Error::failed("file_unwritable", format!("cannot write {}", path.display()));
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(unwritable().because(cause)),
        Ok(found) if found.is_symlink() => {
            return Err(unwritable()
                .because("it is a link, and links are not followed")
                .hinting("-o names another file"));
        }
        Ok(found) if !found.is_file() => {
            return Err(unwritable().because("it is no regular file").hinting("-o names another file"));
        }
        Ok(_) if !force => {
            return Err(unwritable()
                .because("the file exists")
                .hinting("-o names another file, and --force replaces it"));
        }
        Ok(_) => {}
    }
    let mut file = NewFile::create(path, force)?;
    file.write(bytes)?;
    file.keep()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_existing_files_are_not_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("kept"), "old").expect("written");
        symlink(at("kept"), at("link")).expect("linked");
        symlink(at("none"), at("dangling")).expect("linked");
        fs::create_dir(at("directory")).expect("made");
        for (name, force) in [
            ("kept", false),
            ("link", false),
            ("link", true),
            ("dangling", true),
            ("directory", true),
            ("no/file", true),
        ] {
            let error = write(&at(name), b"new", force).expect_err(name).report().expect("reported").error;
            assert_eq!(error.code, "file_unwritable", "{name}");
        }
        assert!(!at("none").exists());
        assert_eq!(fs::read(at("kept")).expect("there"), b"old");
        write(&at("kept"), b"new", true).expect("replaced");
        write(&at("fresh"), b"new", false).expect("written");
        assert_eq!(
            (fs::read(at("kept")).expect("there"), fs::read(at("fresh")).expect("there")),
            (b"new".to_vec(), b"new".to_vec())
        );
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 5, "no draft remains");
    }

    #[test]
    fn file_over_the_bound_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("big");
        fs::write(&path, b"12345").expect("written");
        assert_eq!(read(&path, 5).expect("fits").len(), 5);
        assert!(read(&path, 4).is_err());
        assert!(read(directory.path(), 5).is_err());
    }

    #[test]
    fn only_regular_files_are_attached() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("real"), "12345").expect("written");
        symlink(at("real"), at("link")).expect("linked");
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bound");
        File::create(at("large")).expect("made").set_len(10 * 1024 * 1024 * 1024).expect("sparse");
        fs::create_dir(at("directory")).expect("made");
        for name in ["link", "pipe", "socket", "large", "directory", "none"] {
            let error = read_regular(&at(name), 5).expect_err(name).report().expect("reported").error;
            assert!(error.code == "file_refused" && error.message.contains(name), "{name}: {error:?}");
        }
        assert!(read_regular(Path::new("/dev/zero"), 5).is_err());
        assert_eq!(read_regular(&at("real"), 5).expect("fits"), b"12345");
    }
}
