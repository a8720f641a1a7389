//! Looks at a path of this machine without waiting for another machine or another program.
//!
//! Never follows a link, and touches no file system that another machine or program serves: the caller holds the record, and a disk
//! that hangs would hold it for good. See `check`.

use ironclaw_jail::shown::unescaped;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{SFlag, fstat};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What is mounted where, as the kernel tells it from memory.
const MOUNTS: &str = "/proc/self/mountinfo";

/// File systems whose answers the kernel of this machine gives by itself. All others are asked elsewhere, or not known.
const LOCAL: [&str; 23] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus", "iso9660", "jfs", "msdos",
    "nilfs2", "ntfs3", "overlay", "ramfs", "rootfs", "squashfs", "tmpfs", "udf", "vfat", "xfs", "zfs",
];

/// What of a place is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Kind of the file system that it lies on.
    pub filesystem: String,
    /// Whether it is a directory.
    pub directory: bool,
    /// User id of its owner.
    pub owner: u32,
}

/// Why nothing is known of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unseen {
    /// On the way to it lies a file system of this kind, which is not local: nothing of it was touched.
    Elsewhere(String),
    /// It is a link, or its path goes by one.
    Link,
    /// There is nothing.
    Absent,
    /// It cannot be reached.
    Closed,
}

/// Looks at an absolute path.
///
/// # Errors
/// Why nothing is known of it.
pub(super) fn look(path: &Path) -> Result<Place, Unseen> {
    let mountinfo = std::fs::read(MOUNTS).map_err(|_| Unseen::Elsewhere("unknown".to_owned()))?;
    look_beside(&mountinfo, path)
}

fn look_beside(mountinfo: &[u8], path: &Path) -> Result<Place, Unseen> {
    let filesystem = local(mountinfo, path).map_err(Unseen::Elsewhere)?;
    // By one call, so that nobody puts a link to a network between looking at a name and going through it.
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    let opened = openat2(AT_FDCWD, path, how).map_err(|errno| match errno {
        Errno::ELOOP => Unseen::Link,
        Errno::ENOENT => Unseen::Absent,
        _ => Unseen::Closed,
    })?;
    let found = fstat(&opened).map_err(|_| Unseen::Closed)?;
    let directory = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
    Ok(Place { filesystem, directory, owner: found.st_uid })
}

/// The kind of the file system that a path lies on, or of the first on the way to it that is not local.
///
/// Every mount point at or above the path counts, not only the last: a directory of a network is asked for what is mounted in it, and
/// what is mounted over another can be taken away from it.
fn local(mountinfo: &[u8], path: &Path) -> Result<String, String> {
    let unknown = || "unknown".to_owned();
    let mut way = Vec::new();
    for line in mountinfo.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let (point, filesystem) = mount(line).ok_or_else(unknown)?;
        if path.starts_with(&point) {
            way.push((point.components().count(), filesystem));
        }
    }
    // The deepest last; of several at one place the one that was mounted last.
    way.sort_by_key(|(depth, _)| *depth);
    if let Some((_, foreign)) = way.iter().find(|(_, filesystem)| !LOCAL.contains(&filesystem.as_str())) {
        return Err(foreign.clone());
    }
    way.pop().map(|(_, filesystem)| filesystem).ok_or_else(unknown)
}

/// Where it is mounted and of what kind it is: `36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw`, proc_pid_mountinfo(5).
fn mount(line: &[u8]) -> Option<(PathBuf, String)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = unescaped(fields.nth(4)?);
    fields.find(|field| *field == b"-")?;
    let filesystem = String::from_utf8_lossy(fields.next()?).into_owned();
    Some((PathBuf::from(OsString::from_vec(point)), filesystem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const MACHINE: &str = "\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:21 / /srv rw,relatime - xfs /dev/vdb rw
23 22 0:40 / /srv/net rw,relatime shared:2 master:3 - nfs4 server:/export rw,hard
24 22 0:41 / /srv/with\\040space rw - fuse.sshfs me@host:/ rw
25 22 0:42 / /srv/back\\134slash rw - cifs //server/x rw
26 23 0:43 / /srv/net/disk rw - ext4 /dev/vdc rw
27 22 0:44 / /srv/auto rw - autofs systemd-1 rw
28 27 0:45 / /srv/auto rw - ext4 /dev/vdd rw
29 22 0:46 / /srv/twice rw - tmpfs tmpfs rw
30 29 0:47 / /srv/twice rw - btrfs /dev/vde rw
31 22 0:48 / /srv/new\\012line rw - 9p x rw
";

    #[test]
    fn path_on_or_behind_a_foreign_file_system_is_not_local() {
        for (path, foreign) in [
            ("/srv/net", "nfs4"),
            ("/srv/net/deep/er", "nfs4"),
            ("/srv/net/disk/x", "nfs4"),
            ("/srv/with space/x", "fuse.sshfs"),
            ("/srv/back\\slash", "cifs"),
            ("/srv/auto/x", "autofs"),
            ("/srv/new\nline", "9p"),
        ] {
            assert_eq!(local(MACHINE.as_bytes(), Path::new(path)), Err(foreign.to_owned()), "{path}");
        }
        for (path, own) in [
            ("/", "ext4"),
            ("/home/me", "ext4"),
            ("/srv", "xfs"),
            ("/srv/network", "xfs"),
            ("/srv/with", "xfs"),
            ("/srv/with\\040space", "xfs"),
            ("/srv/twice/x", "btrfs"),
        ] {
            assert_eq!(local(MACHINE.as_bytes(), Path::new(path)), Ok(own.to_owned()), "{path}");
        }
    }

    #[test]
    fn malformed_mount_list_or_unknown_file_system_is_not_local() {
        for mountinfo in
            ["", "garbage", "21 1 254:0 / /\n", "21 1 254:0 / / rw - \n", "21 1 254:0 / / rw - nextfs x rw\n"]
        {
            assert!(local(mountinfo.as_bytes(), Path::new("/srv")).is_err(), "{mountinfo:?}");
        }
        for kind in
            ["fuse", "fuseblk", "fuse.glusterfs", "nfs", "smb3", "cifs", "9p", "virtiofs", "ceph", "afs", "lustre"]
        {
            let mountinfo = format!("21 1 254:0 / / rw - {kind} x rw\n");
            assert_eq!(local(mountinfo.as_bytes(), Path::new("/srv")), Err(kind.to_owned()));
        }
    }

    #[test]
    fn what_is_elsewhere_is_not_touched_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("there");
        std::fs::create_dir_all(root.join("own/deep")).expect("made");
        symlink(root.join("own"), root.join("link")).expect("linked");
        std::fs::write(root.join("file"), "x").expect("written");
        let elsewhere = format!("1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {}/net rw - nfs x rw\n", root.display());
        let beside = |rest: &str| look_beside(elsewhere.as_bytes(), &root.join(rest));
        assert_eq!(beside("net/nothing"), Err(Unseen::Elsewhere("nfs".to_owned())), "and not: it is absent");
        assert_eq!(beside("nothing"), Err(Unseen::Absent));
        assert_eq!(beside("link"), Err(Unseen::Link));
        assert_eq!(beside("link/deep"), Err(Unseen::Link));
        assert_eq!(beside("file/x"), Err(Unseen::Closed));
        assert_eq!(beside("file").map(|place| place.directory), Ok(false));
        let found = look(&root.join("own/deep")).expect("it is there, on a disk or in the memory of this machine");
        assert!(found.directory && found.owner == nix::unistd::getuid().as_raw(), "{found:?}");
    }
}
