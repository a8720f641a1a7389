//! The state directory of a server, as the host prepares it before a launch.
//!
//! The server may have left any file in it. The host follows no link there, and keeps all but temporary files and old errors.

use super::error::Error;
use ironclaw_jail::Identity;
use ironclaw_state::home::{make_private, remove_tree};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, fchownat};
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The home of the server in its state directory.
pub(super) const HOME: &str = "home";
/// The temporary files of the server in its state directory; each launch removes them.
pub(super) const TEMPORARY: &str = "tmp";
/// The file with its standard error.
pub(super) const ERRORS: &str = "stderr.log";
/// Most bytes of standard error that the host reads, from its end.
const ERRORS_BYTES_MAX: u64 = 16 * 1024;

/// Makes the state directory and the directories in it, owned by the user of the server. No process of the server runs meanwhile.
pub(super) fn prepare(state: &Path, identity: Identity) -> Result<(), Error> {
    let fault = || Error::io(state);
    if let Some(above) = state.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(Error::io(above))?;
    }
    make_private(state).map_err(io::Error::other).map_err(fault())?;
    std::fs::set_permissions(state, Permissions::from_mode(0o700)).map_err(fault())?;
    if let Identity::Mapped { uid, gid } = identity {
        std::os::unix::fs::lchown(state, Some(uid), Some(gid)).map_err(fault())?;
    }
    for old in [TEMPORARY, ERRORS] {
        remove_tree(&state.join(old)).map_err(Error::io(&state.join(old)))?;
    }
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = open(state, flags, Mode::empty()).map_err(io::Error::from).map_err(fault())?;
    for name in [HOME, TEMPORARY] {
        let make = || match mkdirat(&directory, name, Mode::S_IRWXU) {
            Ok(()) => match identity {
                Identity::Mapped { uid, gid } => {
                    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
                    fchownat(&directory, name, uid, gid, AtFlags::AT_SYMLINK_NOFOLLOW)
                }
                Identity::Own => Ok(()),
            },
            Err(Errno::EEXIST) => {
                let found = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
                let is_directory = found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits();
                if is_directory { Ok(()) } else { Err(Errno::ENOTDIR) }
            }
            Err(errno) => Err(errno),
        };
        make().map_err(io::Error::from).map_err(Error::io(&state.join(name)))?;
    }
    Ok(())
}

/// Returns the end of the standard error of a server, at most 16 KiB, with U+FFFD for bytes that are no text. The server wrote it.
///
/// # Errors
/// The server replaced the file with another kind of file, or the file cannot be read.
pub fn errors_of(stderr: &Path) -> io::Result<String> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut file = File::options().read(true).custom_flags(flags.bits()).open(stderr)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.seek(SeekFrom::Start(found.len().saturating_sub(ERRORS_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(ERRORS_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn state_keeps_files_and_loses_temporary_files_and_errors() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let state = directory.path().join("servers/one");
        prepare(&state, Identity::Own).expect("made");
        fs::write(state.join("home/kept"), "x").expect("written");
        fs::write(state.join("tmp/old"), "x").expect("written");
        fs::write(state.join(ERRORS), "x").expect("written");
        prepare(&state, Identity::Own).expect("made again");
        assert!(state.join("home/kept").exists() && !state.join("tmp/old").exists() && !state.join(ERRORS).exists());
        assert_eq!(state.metadata().expect("there").permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn link_that_a_server_left_is_not_followed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (state, outside) = (directory.path().join("one"), directory.path().join("outside"));
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("file"), "private").expect("written");
        prepare(&state, Identity::Own).expect("made");
        for name in [TEMPORARY, ERRORS] {
            remove_tree(&state.join(name)).expect("removed");
            symlink(&outside, state.join(name)).expect("a link");
        }
        prepare(&state, Identity::Own).expect("made again");
        assert!(outside.join("file").exists());
        symlink(outside.join("file"), state.join(ERRORS)).expect("a link");
        assert!(errors_of(&state.join(ERRORS)).is_err());
        fs::remove_dir(state.join(HOME)).expect("removed");
        symlink(&outside, state.join(HOME)).expect("a link");
        assert!(matches!(prepare(&state, Identity::Own), Err(Error::Io { path, .. }) if path == state.join(HOME)));
    }

    #[test]
    fn only_the_end_of_long_errors_is_read() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join(ERRORS);
        fs::write(&file, format!("{}end", "x".repeat(100_000))).expect("written");
        let read = errors_of(&file).expect("read");
        assert!(read.len() as u64 == ERRORS_BYTES_MAX && read.ends_with("end"));
    }
}
