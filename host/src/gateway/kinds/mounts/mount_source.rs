//! Inspects a path of this machine without waiting for another machine or another program.
//!
//! Never follows a link. Never touches a file system that another machine or program serves: the caller holds the record, and a
//! disk that hangs would block it forever. See `check`.

use ironclaw_jail::mount_table::unescaped;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{SFlag, fstat};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The mount table, which the kernel gives from memory.
const MOUNTS: &str = "/proc/self/mountinfo";

/// File systems that the kernel of this machine serves by itself. All others are served elsewhere, or unknown.
const LOCAL: [&str; 23] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus", "iso9660", "jfs", "msdos",
    "nilfs2", "ntfs3", "overlay", "ramfs", "rootfs", "squashfs", "tmpfs", "udf", "vfat", "xfs", "zfs",
];

/// The properties of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathProperties {
    /// The kind of its file system.
    pub filesystem: String,
    /// True if it is a directory.
    pub directory: bool,
    /// The user id of its owner.
    pub owner: u32,
}

/// The reason why a path has no known properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LookError {
    /// The path leads to a file system of this kind, which is not local. It was not touched.
    Elsewhere(String),
    /// The path is a link, or leads through one.
    Link,
    /// The path does not exist.
    Absent,
    /// The path cannot be reached.
    Closed,
}

/// Inspects an absolute path.
///
/// # Errors
/// Returns the reason why it cannot be inspected.
pub(super) fn read_properties(path: &Path) -> Result<PathProperties, LookError> {
    let mountinfo = std::fs::read(MOUNTS).map_err(|_| LookError::Elsewhere("unknown".to_owned()))?;
    look_with(&mountinfo, path)
}

fn look_with(mountinfo: &[u8], path: &Path) -> Result<PathProperties, LookError> {
    let filesystem = local(mountinfo, path).map_err(LookError::Elsewhere)?;
    // One call: no process can put a link to a network file system between a check and its use.
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    let opened = openat2(AT_FDCWD, path, how).map_err(|errno| match errno {
        Errno::ELOOP => LookError::Link,
        Errno::ENOENT => LookError::Absent,
        _ => LookError::Closed,
    })?;
    let found = fstat(&opened).map_err(|_| LookError::Closed)?;
    let directory = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
    Ok(PathProperties { filesystem, directory, owner: found.st_uid })
}

/// Returns the kind of a path's file system; as an error the kind of the first one on the way that is not local.
///
/// Every mount point at or above the path counts, not only the last one. The kernel asks a network directory for the mounts in it,
/// and a mount over another one can be removed.
fn local(mountinfo: &[u8], path: &Path) -> Result<String, String> {
    let unknown = || "unknown".to_owned();
    let mut way = Vec::new();
    for line in mountinfo.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let (point, filesystem) = mount(line).ok_or_else(unknown)?;
        if path.starts_with(&point) {
            way.push((point.components().count(), filesystem));
        }
    }
    // The deepest comes last; of several at one path, the newest.
    way.sort_by_key(|(depth, _)| *depth);
    if let Some((_, foreign)) = way.iter().find(|(_, filesystem)| !LOCAL.contains(&filesystem.as_str())) {
        return Err(foreign.clone());
    }
    way.pop().map(|(_, filesystem)| filesystem).ok_or_else(unknown)
}

/// Returns the mount point and the kind of a line: `36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw`, proc_pid_mountinfo(5).
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
        for (expected, paths) in [
            (Err("nfs4"), &["/srv/net", "/srv/net/deep/er", "/srv/net/disk/x"][..]),
            (Err("fuse.sshfs"), &["/srv/with space/x"]),
            (Err("cifs"), &["/srv/back\\slash"]),
            (Err("autofs"), &["/srv/auto/x"]),
            (Err("9p"), &["/srv/new\nline"]),
            (Ok("ext4"), &["/", "/home/me"]),
            (Ok("xfs"), &["/srv", "/srv/network", "/srv/with", "/srv/with\\040space"]),
            (Ok("btrfs"), &["/srv/twice/x"]),
        ] {
            for path in paths {
                let found = local(MACHINE.as_bytes(), Path::new(path));
                assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
            }
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
    fn foreign_path_is_untouched_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("there");
        std::fs::create_dir_all(root.join("own/deep")).expect("made");
        symlink(root.join("own"), root.join("link")).expect("linked");
        std::fs::write(root.join("file"), "x").expect("written");
        let mountinfo = format!("1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {}/net rw - nfs x rw\n", root.display());
        let look_at = |rest: &str| look_with(mountinfo.as_bytes(), &root.join(rest));
        assert_eq!(look_at("net/nothing"), Err(LookError::Elsewhere("nfs".to_owned())), "not absent");
        assert_eq!(look_at("nothing"), Err(LookError::Absent));
        assert_eq!(look_at("link"), Err(LookError::Link));
        assert_eq!(look_at("link/deep"), Err(LookError::Link));
        assert_eq!(look_at("file/x"), Err(LookError::Closed));
        assert_eq!(look_at("file").map(|place| place.directory), Ok(false));
        let found = read_properties(&root.join("own/deep")).expect("a local directory");
        assert!(found.directory && found.owner == nix::unistd::getuid().as_raw(), "{found:?}");
    }
}
