//! Directories that a jail shows, compared with other paths under all names that reach them.
//!
//! Reads paths and the table of mounts, opens no file and decides nothing. See [`crate::system`], which shows `/usr`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The kernel's table of mounts, proc_pid_mountinfo(5).
const MOUNTS: &str = "/proc/self/mountinfo";

/// The file system that stores a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// Its type, with the subtype of a FUSE mount: `ext4`, `fuse.sshfs`.
    pub kind: String,
    /// Its mount point.
    pub point: PathBuf,
}

/// A copy of the table of mounts of this machine.
#[derive(Debug)]
pub struct Mounts(Vec<u8>);

impl Mounts {
    /// Reads the table.
    ///
    /// # Errors
    /// The table cannot be read, e.g. because the process has no descriptor left. Bind mounts are unknown then, so a caller refuses any
    /// path that it cannot compare.
    pub fn read() -> io::Result<Self> {
        fs::read(MOUNTS).map(Self)
    }

    /// Returns the table in this text, for tests of other crates.
    pub fn from_text(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }

    /// Returns the file system of a path, which need not exist.
    pub fn file_system(&self, path: &Path) -> Option<FileSystem> {
        let path = canonical(path);
        let lines = self.0.split(|byte| *byte == b'\n').filter_map(file_system);
        lines.filter(|found| path.starts_with(&found.point)).max_by_key(|found| found.point.components().count())
    }

    /// Returns a mount point below a directory, if there is one.
    pub fn below(&self, directory: &Path) -> Option<PathBuf> {
        let mut points = self.0.split(|byte| *byte == b'\n').filter_map(mount).map(|(point, ..)| point);
        points.find(|point| point != directory && point.starts_with(directory))
    }

    /// Returns whether a jail with the directory `shown` can read `kept`: the same path or one below it, also by a link or a bind mount.
    pub fn is_within(&self, kept: &Path, shown: &Path) -> bool {
        is_within_by(&self.0, &canonical(kept), &canonical(shown))
    }
}

fn is_within_by(mounts: &[u8], kept: &Path, shown: &Path) -> bool {
    let same_storage = || {
        let (kept, shown) = (Stored::find(mounts, kept)?, Stored::find(mounts, shown)?);
        Some(kept.device == shown.device && kept.path.starts_with(&shown.path))
    };
    kept.starts_with(shown) || same_storage().unwrap_or(false)
}

/// Resolves the links of a path, as far as the path exists.
pub fn canonical(path: &Path) -> PathBuf {
    let found =
        path.ancestors().find_map(|there| Some(there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?)));
    found.unwrap_or_else(|| path.to_owned())
}

/// A path by the file system that stores it. Two bind mounts of one directory have the same.
#[derive(Debug, PartialEq, Eq)]
struct Stored {
    device: String,
    path: PathBuf,
}

impl Stored {
    /// Finds a path in the table of mounts. The deepest mount counts, and among mounts at one point the last.
    fn find(mounts: &[u8], path: &Path) -> Option<Self> {
        let lines = mounts.split(|byte| *byte == b'\n').filter_map(mount);
        let (point, device, root) =
            lines.filter(|(point, ..)| path.starts_with(point)).max_by_key(|(point, ..)| point.components().count())?;
        let below = path.strip_prefix(&point).ok()?;
        Some(Self { device, path: if below.as_os_str().is_empty() { root } else { root.join(below) } })
    }
}

/// Reads one line: mount point, device, and the mounted directory of that device.
fn mount(line: &[u8]) -> Option<(PathBuf, String, PathBuf)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = String::from_utf8_lossy(fields.next()?).into_owned();
    let path = |field| PathBuf::from(OsString::from_vec(unescaped(field)));
    let root = path(fields.next()?);
    Some((path(fields.next()?), device, root))
}

/// Reads the file system of one line. Its type is the first field behind a dash, after optional fields.
fn file_system(line: &[u8]) -> Option<FileSystem> {
    let (point, ..) = mount(line)?;
    let mut fields = line.split(|byte| *byte == b' ').skip_while(|field| *field != b"-").skip(1);
    Some(FileSystem { kind: String::from_utf8_lossy(fields.next()?).into_owned(), point })
}

/// Decodes the characters that the kernel writes as a backslash and three octal digits.
pub fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        match behind {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] if first == b'\\' => {
                found.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => {
                found.push(first);
                rest = behind;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &[u8] = b"\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 254:0 /usr/home /home rw - ext4 /dev/vda rw
23 21 254:1 / /srv rw - ext4 /dev/vdb rw
24 21 254:0 /var/with\\040space /data rw - ext4 /dev/vda rw
25 23 254:0 /opt /srv rw - ext4 /dev/vda rw
";

    #[test]
    fn a_bind_mount_of_a_shown_directory_is_within_it() {
        for (kept, shown, within) in [
            ("/usr/lib/x", "/usr", true),
            ("/usr", "/usr", true),
            ("/usrx", "/usr", false),
            ("/home/bob", "/usr", true),
            ("/home", "/usr/home/bob", false),
            ("/data/keys", "/var", true),
            ("/data/keys", "/var/with", false),
            ("/srv/x", "/opt", true),
            ("/root", "/usr", false),
        ] {
            assert_eq!(is_within_by(MACHINE, Path::new(kept), Path::new(shown)), within, "{kept} in {shown}");
        }
        assert!(is_within_by(b"", Path::new("/usr/x"), Path::new("/usr")));
        assert!(!is_within_by(b"garbage\n1 2\n", Path::new("/x"), Path::new("/usr")));
    }

    #[test]
    fn file_system_of_a_path_is_that_of_its_deepest_mount() {
        let text = "21 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n\
                    30 21 0:50 / /mnt/with\\040space rw,nosuid shared:7 master:1 - fuse.sshfs me@host:/ rw\n\
                    31 21 0:51 / /mnt/twice rw - tmpfs tmpfs rw\n\
                    32 21 0:52 / /mnt/twice rw - nfs4 server:/x rw\n";
        let mounts = Mounts::from_text(text);
        for (path, kind, point) in [
            ("/none/x", "ext4", "/"),
            ("/mnt/with space/home", "fuse.sshfs", "/mnt/with space"),
            ("/mnt/with", "ext4", "/"),
            ("/mnt/twice/home", "nfs4", "/mnt/twice"),
        ] {
            let found = mounts.file_system(Path::new(path));
            assert_eq!(found, Some(FileSystem { kind: kind.to_owned(), point: point.into() }), "{path}");
        }
        assert_eq!(Mounts::from_text("garbage\n").file_system(Path::new("/")), None);
    }

    #[test]
    fn a_path_behind_a_link_is_canonical_before_it_exists() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there");
        fs::create_dir(root.join("real")).expect("made");
        std::os::unix::fs::symlink("real", root.join("linked")).expect("linked");
        assert_eq!(canonical(&root.join("linked")), root.join("real"));
        assert_eq!(canonical(&root.join("linked/heads/of/it")), root.join("real/heads/of/it"));
        let mounts = Mounts::read().expect("readable");
        assert!(mounts.is_within(&root.join("linked/key"), &root.join("real")));
    }
}
