//! The file systems that can hold a home and its sockets, by their names in the table of mounts.
//!
//! A type that the list does not have is tried with a database. Never repairs and never mounts. See [`crate::daemon::preflight`].

use ironclaw_jail::mount_table::{FileSystem, Mounts, canonical};
use ironclaw_operator::Check;
use ironclaw_state::probe;
use nix::sys::statfs::{self, FsType, statfs};
use std::path::{Path, PathBuf};

/// The name of the check of the home.
const CHECK: &str = "file system of the home";

/// The remedy for a home on a file system that cannot hold it.
const MOVE: &str = "name a directory on a disk of this machine (ext4, xfs or btrfs, for example) with --home or IRONCLAW_HOME; stop the host before you move a home";

/// Directories of a home that can be mounts of their own.
const BELOW_HOME: [&str; 4] = ["sessions", "agents", "ledger", "logs"];

/// Types with locks, shared memory maps, owners and modes, on this machine alone.
const FIT: [&str; 12] =
    ["ext4", "ext3", "ext2", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs", "overlay", "nilfs2"];

/// Types whose content is gone after a restart of the machine.
const VOLATILE: [&str; 2] = ["tmpfs", "ramfs"];

/// Types that other machines share.
const NETWORK: [&str; 18] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "ncpfs",
    "afs",
    "ceph",
    "coda",
    "lustre",
    "gfs2",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "beegfs",
    "gpfs",
    "acfs",
    "glusterfs",
];

/// Types that a virtual machine shares with the machine below it.
const SHARED: [&str; 6] = ["9p", "virtiofs", "vboxsf", "prl_fs", "hgfs", "vmhgfs"];

/// Types without owners and modes.
const WITHOUT_OWNERS: [&str; 8] = ["vfat", "msdos", "exfat", "ntfs", "ntfs3", "hfs", "hpfs", "udf"];

/// The types by their magic numbers, statfs(2), for a machine whose table of mounts cannot be read.
const MAGIC: [(FsType, &str); 14] = [
    (statfs::NFS_SUPER_MAGIC, "nfs"),
    (statfs::SMB_SUPER_MAGIC, "smbfs"),
    (FsType(0xFE53_4D42), "smb3"),
    (FsType(0xFF53_4D42), "cifs"),
    (FsType(0x0102_1997), "9p"),
    (FsType(0x6573_5546), "fuse"),
    (FsType(0x4d44), "vfat"),
    (FsType(0x2011_BAB0), "exfat"),
    (FsType(0x5346_414F), "afs"),
    (FsType(0x00C3_6400), "ceph"),
    (FsType(0x7375_7245), "coda"),
    (FsType(0x7366_746E), "ntfs3"),
    (FsType(0x0102_1994), "tmpfs"),
    (FsType(0xEF53), "ext4"),
];

/// The reason that a file system cannot hold a directory of the host.
#[derive(Debug, thiserror::Error)]
#[error("{what} {path} is on {kind}, mounted at {point}, {why}", path = .path.display(), point = .found.point.display(), kind = .found.kind)]
pub struct Unfit {
    /// The name of the directory.
    what: &'static str,
    path: PathBuf,
    found: FileSystem,
    /// The reason, as a clause.
    why: String,
}

impl Unfit {
    /// Returns the remedy.
    pub const fn hint(&self) -> &'static str {
        MOVE
    }
}

/// Returns why a type of file system cannot hold a home; `None` for a type that can, or that is not known.
fn fault(kind: &str) -> Option<&'static str> {
    let (main, has_subtype) = kind.split_once('.').map_or((kind, false), |(main, _)| (main, true));
    if main == "fuse" || main == "fuseblk" {
        return Some("which a program serves: its locks and shared memory maps do not protect a database");
    }
    let kind = if has_subtype { main } else { kind };
    if NETWORK.contains(&kind) {
        Some("a file system of a network: its locks and shared memory maps do not hold between machines")
    } else if SHARED.contains(&kind) {
        Some(
            "which a virtual machine shares with the machine below it: its locks and shared memory maps do not hold on both",
        )
    } else if WITHOUT_OWNERS.contains(&kind) {
        Some("which has no owners and no modes, so other users could read the keys")
    } else {
        None
    }
}

/// Returns the directory itself, or the nearest one above it that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"))
}

/// Returns the file system of a path: by the table of mounts, or by its number if the table cannot be read.
fn find(mounts: Option<&Mounts>, path: &Path) -> Option<FileSystem> {
    mounts.and_then(|mounts| mounts.file_system(path)).or_else(|| {
        let magic = statfs(existing(path)).ok()?.filesystem_type();
        let (_, kind) = MAGIC.iter().find(|(known, _)| *known == magic)?;
        Some(FileSystem { kind: (*kind).to_owned(), point: existing(path).to_owned() })
    })
}

/// Checks the file system of one directory, which need not exist.
fn check_one(mounts: Option<&Mounts>, what: &'static str, path: &Path) -> Result<Option<FileSystem>, Unfit> {
    let path = canonical(path);
    let Some(found) = find(mounts, &path) else { return Ok(None) };
    let kind = found.kind.as_str();
    let why = match fault(kind) {
        Some(why) => why.to_owned(),
        None if FIT.contains(&kind) || VOLATILE.contains(&kind) => return Ok(Some(found)),
        None => match probe::try_record(existing(&path)) {
            Err(error @ (probe::Error::NoMaps | probe::Error::NoLocks)) => format!("and {error}"),
            // Another error, such as a missing right, has its own words at the next step.
            Ok(()) | Err(probe::Error::Other(_)) => return Ok(Some(found)),
        },
    };
    Err(Unfit { what, path, found, why })
}

/// Refuses a home on a file system that cannot hold it, before a file of it is made or opened.
pub fn refuse_home(path: &Path) -> Result<(), Unfit> {
    home(path).map(drop)
}

/// Returns whether a directory is on a file system that can hold sockets.
pub fn holds_sockets(path: &Path) -> bool {
    check_one(Mounts::read().ok().as_ref(), "the runtime directory", path).is_ok()
}

/// Checks a home and the directories below it that can be mounts of their own. Returns the file system of the home.
fn home(path: &Path) -> Result<Option<FileSystem>, Unfit> {
    let mounts = Mounts::read().ok();
    let found = check_one(mounts.as_ref(), "the home", path)?;
    for below in BELOW_HOME.map(|name| path.join(name)) {
        let is_own = mounts
            .as_ref()
            .and_then(|mounts| mounts.file_system(&below))
            .is_some_and(|own| found.as_ref().is_none_or(|home| home.point != own.point));
        if is_own {
            check_one(mounts.as_ref(), "the directory", &below)?;
        }
    }
    Ok(found)
}

/// Returns the check of a home for `doctor`.
pub fn check(path: &Path) -> Check {
    let name = CHECK.to_owned();
    match home(path) {
        Ok(Some(found)) if VOLATILE.contains(&found.kind.as_str()) => Check {
            name,
            ok: true,
            found: format!(
                "{} at {}: the home is gone after a restart of the machine",
                found.kind,
                found.point.display()
            ),
            remedy: MOVE.to_owned(),
        },
        Ok(Some(found)) => Check {
            name,
            ok: true,
            found: format!("{} at {}", found.kind, found.point.display()),
            remedy: String::new(),
        },
        Ok(None) => Check { name, ok: true, found: "of a type without a name".to_owned(), remedy: String::new() },
        Err(unfit) => Check { name, ok: false, found: unfit.to_string(), remedy: unfit.hint().to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a path on a mount of this type.
    fn on(kind: &str) -> Result<Option<FileSystem>, Unfit> {
        let line = format!("21 1 254:0 / / rw - ext4 /dev/vda rw\n30 21 0:50 / /mnt/there rw - {kind} source rw\n");
        check_one(Some(&Mounts::from_text(&line)), "the home", Path::new("/mnt/there/home"))
    }

    #[test]
    fn file_systems_that_cannot_hold_a_home_are_refused_by_name() {
        for kind in [
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "9p",
            "virtiofs",
            "vboxsf",
            "fuse",
            "fuse.sshfs",
            "fuse.rclone",
            "fuse.s3fs",
            "fuse.fuse-overlayfs",
            "fuse.glusterfs",
            "fuseblk",
            "ceph",
            "afs",
            "vfat",
            "exfat",
            "ntfs3",
            "lustre",
        ] {
            let unfit = on(kind).err().unwrap_or_else(|| panic!("{kind} was accepted"));
            assert_eq!((unfit.found.kind.as_str(), unfit.found.point.as_path()), (kind, Path::new("/mnt/there")));
            let words = unfit.to_string();
            assert!(
                words.starts_with(&format!("the home /mnt/there/home is on {kind}, mounted at /mnt/there, ")),
                "{words}"
            );
        }
        for kind in FIT.iter().chain(&VOLATILE) {
            assert!(on(kind).is_ok(), "{kind}");
        }
    }

    #[test]
    fn unknown_type_is_tried_with_a_database() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = canonical(directory.path());
        let line = format!("30 21 0:50 / {} rw - newfs source rw\n", path.display());
        let found =
            check_one(Some(&Mounts::from_text(&line)), "the home", &path.join("home")).expect("the trial passes");
        assert_eq!(found.map(|found| found.kind).as_deref(), Some("newfs"));
    }

    #[test]
    fn a_list_names_each_type_once() {
        let mut all: Vec<_> = [&FIT[..], &VOLATILE, &NETWORK, &SHARED, &WITHOUT_OWNERS].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        let named = |kind: &&str| all.contains(kind) || fault(kind).is_some();
        assert!(MAGIC.iter().all(|(_, kind)| named(kind)));
    }

    #[test]
    fn home_of_this_machine_is_on_a_named_file_system() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let check = check(&directory.path().join("home"));
        assert!(check.ok && !check.found.is_empty(), "{check:?}");
        assert!(!directory.path().join("home").exists());
    }
}
