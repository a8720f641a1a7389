//! Ways to break a file or a directory of a home.
//!
//! See `chaos::home_files` and `chaos::panic_homes`.

use nix::sys::stat::Mode;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// One way to break a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Missing,
    Empty,
    Garbage,
    Directory,
    Pipe,
    /// A file that only root can read. It is created if it is missing.
    Unreadable,
    /// A directory in which no file can be created.
    ReadOnly,
    /// A directory with its usual mode, so that it can be removed.
    Usable,
}

/// The kinds that a start is tested with.
pub(crate) const KINDS: [Kind; 6] =
    [Kind::Missing, Kind::Empty, Kind::Garbage, Kind::Directory, Kind::Pipe, Kind::Unreadable];

/// Breaks `path`. The new file belongs to the owner of the parent directory.
pub(crate) fn put(path: &Path, kind: Kind) {
    let mode = |mode| fs::set_permissions(path, Permissions::from_mode(mode));
    match kind {
        Kind::Unreadable => {
            if path.symlink_metadata().is_err() {
                fs::write(path, "").expect("written");
                give(path);
            }
            return mode(0o000).expect("we own the path");
        }
        Kind::ReadOnly => return mode(0o500).expect("we own the path"),
        // The host may have removed the path.
        Kind::Usable => return drop(mode(0o700)),
        _ => {}
    }
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).expect("removed"),
        Ok(_) => fs::remove_file(path).expect("removed"),
        Err(_) => {}
    }
    match kind {
        Kind::Empty => fs::write(path, "").expect("written"),
        Kind::Garbage => fs::write(path, [0xff, 0x00, b'{', b'\n', 0x80]).expect("written"),
        Kind::Directory => fs::create_dir(path).expect("made"),
        Kind::Pipe => nix::unistd::mkfifo(path, Mode::S_IRWXU).expect("made"),
        _ => return,
    }
    // A host that watches the path may have removed it already.
    let set = mode(if kind == Kind::Directory { 0o700 } else { 0o600 });
    assert!(set.is_ok() || path.symlink_metadata().is_err(), "{}: {set:?}", path.display());
    give(path);
}

/// Gives `path` to the owner of its parent directory.
fn give(path: &Path) {
    if nix::unistd::geteuid().is_root() {
        use std::os::unix::fs::MetadataExt;
        let above = fs::metadata(path.parent().expect("below a directory")).expect("there");
        // A host that watches the path may have removed it already.
        let given = chown(path, Some(above.uid()), Some(above.gid()));
        assert!(given.is_ok() || path.symlink_metadata().is_err(), "{}: {given:?}", path.display());
    }
}
