//! The state under another key: a whole copy beside the original, changed, re-encrypted, proven, and put in its place in one
//! step.
//!
//! Never writes into the original but to close its log, and never leaves a file behind it that SQLite could take for the new
//! one's. See `key_rotation` of the host.

use super::{Error, ReadTx, WriteTx, connect, create, log, migrations, sql, wall_clock};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pages that are copied between two checks for another writer.
const PAGES_AT_ONCE: i32 = 1024;

/// A copy in the making. While it lives no other process can open the original.
pub struct Copy {
    original: Connection,
    copy: Connection,
    from: PathBuf,
    to: PathBuf,
}

impl Copy {
    /// Copies the state at `path`, page by page, to a new file `to`.
    ///
    /// # Errors
    /// [`Error::WrongKey`], [`Error::Newer`], [`Error::InUse`] while another process has it open.
    pub fn of(path: &Path, key: &SessionKey, to: &Path) -> Result<Self, Error> {
        let left = log::look(path)?;
        let original = connect(path, key)?;
        migrations::run(&original, path, key)?;
        // The changes that a crash left are taken in here, and those that it lost are noted; afterwards neither file needs a log.
        // Until then an error leaves the log in place.
        log::opened(&original, path, &left)?;
        log::closed(&original)?;
        // Out of the write-ahead log, which a renamed file would leave behind, and alone.
        match sql::take_alone(&original) {
            Ok(mode) if mode == "memory" => {}
            Ok(_) => return Err(Error::InUse(path.display().to_string())),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                return Err(Error::InUse(path.display().to_string()));
            }
            Err(error) => return Err(error.into()),
        }
        create(to)?;
        let mut copy = connect(to, key)?;
        sql::leave_log(&copy)?;
        Backup::new(&original, &mut copy)?.run_to_completion(PAGES_AT_ONCE, Duration::ZERO, None)?;
        Ok(Self { original, copy, from: path.to_owned(), to: to.to_owned() })
    }

    /// Changes the copy, in one transaction.
    ///
    /// # Errors
    /// What `change` says, and then nothing is changed.
    pub fn change<T, E: From<Error>>(&mut self, change: impl FnOnce(&mut WriteTx<'_>) -> Result<T, E>) -> Result<T, E> {
        let last = sql::newest_entry_at(&self.copy).map_err(Error::from)?;
        let wall = wall_clock();
        sql::begin_to_write(&self.copy).map_err(Error::from)?;
        let now = wall.max(last.unwrap_or(0));
        let mut tx = WriteTx::new(ReadTx { db: &self.copy, now, wall, prune: wall });
        let changed = change(&mut tx)?;
        sql::commit(&self.copy).map_err(Error::from)?;
        Ok(changed)
    }

    /// Encrypts the copy anew and proves it: every page opens under the new key, and SQLite finds nothing wrong with it.
    ///
    /// # Errors
    /// When it does not; the original is as it was.
    pub fn rekey(self, key: &SessionKey) -> Result<Ready, Error> {
        let Self { original, copy, from, to } = self;
        sql::rekey(&copy, key)?;
        drop(copy);
        let proof = connect(&to, key)?;
        prove(&proof, "the copy under the new key")?;
        // No log beside it: only the file itself is renamed.
        sql::leave_log(&proof)?;
        drop(proof);
        Ok(Ready { original, from, to })
    }
}

/// Checks that every page opens under the key of this connection, and that SQLite finds nothing wrong with them.
///
/// # Errors
/// With the first thing that is.
pub(super) fn prove(db: &Connection, what: &str) -> Result<(), Error> {
    match sql::first_fault(db)? {
        Some(wrong) => Err(Error::Stored(format!("{what} is not whole: {wrong}"))),
        None => Ok(()),
    }
}

/// A copy that was proven.
pub struct Ready {
    original: Connection,
    from: PathBuf,
    to: PathBuf,
}

impl Ready {
    /// Puts the copy into the place of the original, in one step that outlives a power cut.
    ///
    /// # Errors
    /// When the system does not; then the original is still there. A name that may not outlive a power cut is logged and kept.
    pub fn take_over(self) -> std::io::Result<()> {
        let sync = |path: &Path| std::fs::File::open(path)?.sync_all();
        sync(&self.to)?;
        std::fs::rename(&self.to, &self.from)?;
        // From here on only the new key opens the file under this name, and a caller that is told of an error would throw that
        // key away.
        if let Err(error) = self.from.parent().map_or(Ok(()), sync) {
            let path = self.from.display();
            tracing::error!(%error, "{path} is under the new key, and after a power cut it may be under the old one again");
        }
        // Only now may others open the file under this name. Its journal was in memory, so nothing of it is left under the name.
        drop(self.original);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_to_look;
    use nix::unistd::{Uid, geteuid, setfsuid};
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn copy_takes_over_even_if_its_directory_cannot_be_synced() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (from, to) = (directory.path().join("state.db"), directory.path().join("state.db.next"));
        let (old, new) = (SessionKey::new([1; 32]), SessionKey::new([2; 32]));
        // In a thread of its own, as a user without root's rights: they are for each thread by itself.
        let take_over = || {
            if geteuid().is_root() {
                let nobody = Uid::from_raw(65534);
                chown(directory.path(), Some(nobody.as_raw()), None).expect("given");
                setfsuid(nobody);
            }
            create(&from).expect("made");
            migrations::run(&connect(&from, &old).expect("opened"), &from, &old).expect("a schema");
            let ready = Copy::of(&from, &old, &to).expect("a copy").rekey(&new).expect("re-encrypted");
            let may = |mode| std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(mode)).expect("set");
            // Names can be changed in it, and it cannot be opened.
            may(0o300);
            assert!(std::fs::File::open(directory.path()).is_err(), "the sync has to fail");
            let taken = ready.take_over();
            may(0o700);
            taken
        };
        std::thread::scope(|scope| scope.spawn(take_over).join()).expect("no panic").expect("it took over");
        assert!(matches!(open_to_look(&from, &old), Err(Error::WrongKey(_))));
        open_to_look(&from, &new).expect("it is under the new key");
        for name in ["state.db.next", "state.db.next-wal", "state.db-wal"] {
            assert!(!directory.path().join(name).exists(), "{name} is left");
        }
    }
}
