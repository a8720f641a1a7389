//! The snapshots of the state before each migration: the way back to an older version.
//!
//! Never leaves an incomplete copy under the name of a snapshot. An erasure removes all snapshots, because they still hold the
//! erased content. See [`crate::migrations`].

use super::home::{ASIDE, is_set_aside};
use super::{Error, connect, home, log, sql};
use ironclaw_contract::seam::crypt::{SessionKey, prepare_cipher};
use nix::sys::statvfs::statvfs;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Snapshots that are kept; the oldest is removed first.
pub const KEPT_MAX: usize = 3;

/// Bytes that a migration may need in addition to the snapshot and the size of the state.
const ROOM_BYTES_MIN: u64 = 8 * 1024 * 1024;

/// A snapshot beside the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub path: PathBuf,
    /// The first version that ran after the snapshot; the snapshot has the version before it.
    pub before: i64,
}

/// Copies the state before version `before` runs on it.
///
/// # Errors
/// [`Error::NoRoom`] before the copy begins; [`Error::Snapshot`] when the copy cannot be made or is damaged.
pub fn take(db: &Connection, path: &Path, key: &SessionKey, before: i64) -> Result<Snapshot, Error> {
    let target = name(path, before);
    let fault = |what: &str, why: &dyn std::fmt::Display| Error::Snapshot {
        path: target.display().to_string(),
        why: format!("{what}: {why}"),
    };
    // First, because an unfinished copy may be the reason that the disk is full.
    discard_unfinished(path).map_err(|error| fault("cannot remove the unfinished copy of an earlier start", &error))?;
    check_room(path, &target)?;
    let unfinished = unfinished(&target);
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
    drop(made.map_err(|error| fault("cannot be made", &error))?);
    let copied = || -> Result<(), Error> {
        let mut copy = connect(&unfinished, key)?;
        sql::disable_wal(&copy)?;
        // In one step, so that no other process can write in between.
        Backup::new(db, &mut copy)?.run_to_completion(i32::MAX, Duration::ZERO, None)?;
        log::mark_closed(&copy)?;
        sql::prove(&copy, "the snapshot")
    };
    let kept = copied().map_err(|error| fault("is not a complete copy", &error)).and_then(|()| {
        let keep = || -> io::Result<()> {
            File::open(&unfinished)?.sync_all()?;
            home::rename_durably(&unfinished, &target)
        };
        keep().map_err(|error| fault("cannot be kept", &error))
    });
    if let Err(error) = kept {
        // Only this function uses the unfinished copy.
        let _ = discard(&unfinished);
        return Err(error);
    }
    let over = all(path);
    for old in over.iter().take(over.len().saturating_sub(KEPT_MAX)) {
        if let Err(error) = fs::remove_file(&old.path) {
            tracing::warn!(%error, "cannot remove the old snapshot {}", old.path.display());
        }
    }
    Ok(Snapshot { path: target, before })
}

/// Returns every snapshot of the state at `path`, oldest version first.
pub fn all(path: &Path) -> Vec<Snapshot> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let prefix = format!("{name}.before-v");
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<Snapshot> = names
        .filter_map(|entry| {
            let before = entry.file_name().to_str()?.strip_prefix(&prefix)?.parse().ok()?;
            Some(Snapshot { path: entry.path(), before })
        })
        .collect();
    found.sort_by_key(|snapshot| snapshot.before);
    found
}

/// Removes every snapshot and unfinished copy, and returns the paths of the removed snapshots. An erasure and a key rotation call it.
///
/// # Errors
/// The first snapshot that cannot be removed; the others are removed all the same.
pub fn remove_all(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let fault = |path: &Path, why: String| Error::Snapshot { path: path.display().to_string(), why };
    let unfinished =
        discard_unfinished(path).map_err(|error| fault(path, format!("is unfinished and cannot be removed: {error}")));
    let remove = |Snapshot { path, .. }: Snapshot| match fs::remove_file(&path).and_then(|()| sync_directory(&path)) {
        Ok(()) => Ok(path),
        Err(error) => Err(fault(&path, format!("cannot be removed: {error}"))),
    };
    let removed: Vec<Result<PathBuf, Error>> = all(path).into_iter().map(remove).collect();
    unfinished.and_then(|()| removed.into_iter().collect())
}

/// Returns the commands that go back to the newest snapshot that opens under `key` and whose version is one of `readable`. Without such
/// a snapshot, it returns a sentence that says so.
pub fn way_back(path: &Path, key: &SessionKey, found: i64, readable: RangeInclusive<i64>) -> String {
    let mut newest = all(path).into_iter().rev();
    let usable = newest.find(|snapshot| readable.contains(&(snapshot.before - 1)) && opens(&snapshot.path, key));
    let Some(snapshot) = usable else {
        return "no snapshot of an earlier schema opens under the master key".to_owned();
    };
    let name = snapshot.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside = path.with_file_name(format!("{ASIDE}{found}"));
    let (file, kept, aside) = (quoted(path), quoted(&aside.join(&name)), quoted(&aside));
    format!(
        "or go back to the snapshot {name}, which has none of the later changes: \
         mkdir -m 700 {aside} && mv {file}* {aside}/ && cp -p {kept} {file}"
    )
}

/// Returns the directories with records that an operator moved to go back to a snapshot. No erasure reaches them.
pub fn aside(path: &Path) -> Vec<PathBuf> {
    let names = path.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        names.filter(|entry| entry.file_name().to_str().is_some_and(is_set_aside)).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns the snapshots that this key does not open; they are from before a key rotation.
pub fn under_other_keys(path: &Path, key: &SessionKey) -> Vec<PathBuf> {
    all(path).into_iter().map(|snapshot| snapshot.path).filter(|snapshot| !opens(snapshot, key)).collect()
}

/// The characters that are encoded in the path of an address of SQLite.
const OUTSIDE_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// Returns whether this key opens the snapshot. It writes no file.
fn opens(snapshot: &Path, key: &SessionKey) -> bool {
    let address = format!("file:{}?immutable=1", percent_encode(snapshot.as_os_str().as_encoded_bytes(), OUTSIDE_PATH));
    let look = || -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        prepare_cipher();
        let db = Connection::open_with_flags(address, flags)?;
        sql::unlock(&db, key)?;
        sql::read_schema(&db)
    };
    look().is_ok()
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn name(path: &Path, before: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".before-v{before}"));
    name.into()
}

fn unfinished(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.unfinished"))
}

/// Removes unfinished copies of any version.
fn discard_unfinished(path: &Path) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    let prefix = format!(".{name}.before-v");
    for entry in fs::read_dir(directory)?.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

pub(super) fn discard(unfinished: &Path) -> io::Result<()> {
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut name = unfinished.as_os_str().to_owned();
        name.push(end);
        home::discard(Path::new(&name))?;
    }
    Ok(())
}

/// Syncs the directory of a file, because its name must survive a power cut too.
fn sync_directory(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// Checks that the disk has space for the snapshot, and as much again for the migration itself.
fn check_room(path: &Path, target: &Path) -> Result<(), Error> {
    let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    let log = path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().to_string_lossy()));
    let needed = (size(path) + size(&log)) * 2 + ROOM_BYTES_MIN;
    let Some(found) = path.parent().and_then(|directory| statvfs(directory).ok()) else { return Ok(()) };
    let free = found.blocks_available().saturating_mul(found.fragment_size());
    if free >= needed {
        return Ok(());
    }
    Err(Error::NoRoom { path: target.display().to_string(), needed, free })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{create, migrations, open_to_look};
    use std::os::unix::fs::PermissionsExt;

    fn key() -> SessionKey {
        SessionKey::new([5; 32])
    }

    fn state(directory: &Path) -> (PathBuf, Connection) {
        let path = directory.join("state.db");
        create(&path).expect("made");
        let db = connect(&path, &key()).expect("opened");
        migrations::run(&db, &path, &key()).expect("a schema");
        (path, db)
    }

    #[test]
    fn snapshot_is_private_and_only_the_newest_are_kept() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, db) = state(directory.path());
        assert_eq!(all(&path), [], "a fresh file has nothing to go back to");
        // The copy also has content that is only in the log.
        db.execute("INSERT INTO meta (key, value) VALUES ('word', 'kept')", []).expect("written");
        for before in 10..15 {
            take(&db, &path, &key(), before).expect("taken");
        }
        let versions: Vec<i64> = all(&path).iter().map(|snapshot| snapshot.before).collect();
        assert_eq!(versions, [12, 13, 14]);
        let mut names = fs::read_dir(directory.path()).expect("read").map(|entry| entry.expect("read").file_name());
        assert!(names.all(|name| !name.to_string_lossy().contains("unfinished")), "a copy leaves no log");
        let newest = all(&path).pop().expect("three").path;
        let mode = fs::metadata(&newest).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let copy = open_to_look(&newest, &key()).expect("it opens under the key");
        let word: String =
            copy.query_row("SELECT value FROM meta WHERE key = 'word'", [], |row| row.get(0)).expect("one");
        assert_eq!(word, "kept");
        assert!(matches!(open_to_look(&newest, &SessionKey::new([6; 32])), Err(Error::WrongKey(_))));
    }

    #[test]
    fn unfinished_copy_is_ignored_and_then_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, db) = state(directory.path());
        for before in [8, 9] {
            fs::write(unfinished(&name(&path, before)), "half").expect("written");
        }
        assert_eq!(all(&path), []);
        take(&db, &path, &key(), 9).expect("taken");
        assert!(!unfinished(&name(&path, 8)).exists() && !unfinished(&name(&path, 9)).exists());
        fs::write(unfinished(&name(&path, 10)), "half").expect("written");
        assert_eq!(remove_all(&path).expect("removed"), [name(&path, 9)]);
        assert_eq!(all(&path), []);
        assert!(!unfinished(&name(&path, 10)).exists(), "an unfinished copy has erased content too");
        fs::create_dir(name(&path, 3)).expect("made");
        take(&db, &path, &key(), 9).expect("taken");
        assert!(remove_all(&path).is_err_and(|error| error.to_string().contains("before-v3 cannot be removed")));
        assert!(!name(&path, 9).exists(), "the others are removed all the same");
    }

    #[test]
    fn way_back_names_the_newest_snapshot_that_can_be_opened() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = directory.path().join("it's a home %41?");
        fs::create_dir(&home).expect("made");
        let (path, db) = state(&home);
        assert!(way_back(&path, &key(), 9, 4..=5).starts_with("no snapshot"));
        for before in [5, 6, 8] {
            fs::rename(take(&db, &path, &key(), 20).expect("taken").path, name(&path, before)).expect("renamed");
        }
        let names = || fs::read_dir(&home).expect("readable").count();
        let (whole, before) = (fs::read(name(&path, 6)).expect("readable"), names());
        let way = way_back(&path, &key(), 9, 4..=5);
        assert!(way.contains("state.db.before-v6") && !way.contains("before-v8"), "{way}");
        assert!(way_back(&path, &key(), 9, 6..=6).starts_with("no snapshot"), "the others are too old");
        let other = SessionKey::new([6; 32]);
        assert!(way_back(&path, &other, 9, 4..=5).starts_with("no snapshot"));
        assert_eq!(under_other_keys(&path, &key()), [] as [PathBuf; 0]);
        assert_eq!(under_other_keys(&path, &other).len(), 3);
        assert_eq!((fs::read(name(&path, 6)).expect("readable"), names()), (whole, before), "it was only read");
        drop(db);
        let commands = way.split("the later changes: ").nth(1).expect("the commands");
        assert!(std::process::Command::new("sh").args(["-c", commands]).status().is_ok_and(|status| status.success()));
        assert!(open_to_look(&path, &key()).is_ok());
        assert_eq!(aside(&path), [home.join("state-v9")]);
    }
}
