//! The copy of the state under another key: copied, changed, re-encrypted, checked, and then renamed over the original.
//!
//! Never writes to the original except to close its log, and never leaves a journal that SQLite could apply to the new file. See
//! `key_rotation` of the host.

use super::{Error, ReadTx, WriteTx, connect, create, log, migrations, sql, wall_clock};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pages that one step of the copy copies.
const PAGES_AT_ONCE: i32 = 1024;

/// An unfinished copy. While it exists, no other process can open the original.
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
    /// [`Error::WrongKey`], [`Error::Newer`], [`Error::Older`], and [`Error::InUse`] while another process has the state open.
    pub fn create(path: &Path, key: &SessionKey, to: &Path) -> Result<Self, Error> {
        let left = log::inspect(path)?;
        let original = connect(path, key)?;
        migrations::run(&original, path, key)?;
        // This takes in the changes in the log of a crash and records lost ones. Afterwards neither file needs a log. An error before
        // that leaves the log in place.
        log::mark_open(&original, path, &left)?;
        log::mark_closed(&original)?;
        // No write-ahead log, which a renamed file would leave behind, and no other connection.
        match sql::lock_exclusively(&original) {
            Ok(mode) if mode == "memory" => {}
            Ok(_) => return Err(Error::InUse(path.display().to_string())),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                return Err(Error::InUse(path.display().to_string()));
            }
            Err(error) => return Err(error.into()),
        }
        create(to)?;
        let mut copy = connect(to, key)?;
        sql::disable_wal(&copy)?;
        Backup::new(&original, &mut copy)?.run_to_completion(PAGES_AT_ONCE, Duration::ZERO, None)?;
        Ok(Self { original, copy, from: path.to_owned(), to: to.to_owned() })
    }

    /// Changes the copy, in one transaction.
    ///
    /// # Errors
    /// The errors of `change`, and then the copy is unchanged.
    pub fn change<T, E: From<Error>>(&mut self, change: impl FnOnce(&mut WriteTx<'_>) -> Result<T, E>) -> Result<T, E> {
        let last = sql::newest_entry_at(&self.copy).map_err(Error::from)?;
        let wall = wall_clock();
        sql::begin_to_write(&self.copy).map_err(Error::from)?;
        let now = wall.max(last.unwrap_or(0));
        let mut tx = WriteTx::new(ReadTx { db: &self.copy, now, wall, prune: wall, expiry: wall });
        let changed = change(&mut tx)?;
        sql::commit(&self.copy).map_err(Error::from)?;
        Ok(changed)
    }

    /// Encrypts the copy under the new key and checks it: every page opens, and SQLite finds no damage.
    ///
    /// # Errors
    /// The damage that the check finds. The original is unchanged.
    pub fn rekey(self, key: &SessionKey) -> Result<Ready, Error> {
        let Self { original, copy, from, to } = self;
        sql::rekey(&copy, key)?;
        drop(copy);
        let proof = connect(&to, key)?;
        sql::prove(&proof, "the copy under the new key")?;
        // No log, because only the database file is renamed.
        sql::disable_wal(&proof)?;
        drop(proof);
        Ok(Ready { original, from, to })
    }
}

pub struct Ready {
    original: Connection,
    from: PathBuf,
    to: PathBuf,
}

impl Ready {
    /// Renames the copy over the original, atomically and durably.
    ///
    /// # Errors
    /// The errors of the system; the original is then still there. A failed sync after the rename is only logged.
    pub fn take_over(self) -> std::io::Result<()> {
        let sync = |path: &Path| std::fs::File::open(path)?.sync_all();
        sync(&self.to)?;
        std::fs::rename(&self.to, &self.from)?;
        // From here on only the new key opens the file, and a caller that gets an error would discard that key.
        if let Err(error) = self.from.parent().map_or(Ok(()), sync) {
            let path = self.from.display();
            tracing::error!(%error, "{path} is encrypted under the new key; after a power cut it may be under the old one again");
        }
        // Only now may other processes open the file. The journal of the original was in memory, so no journal file remains.
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
        // A thread of its own runs as an unprivileged user, because file access rights belong to a thread.
        let take_over = || {
            if geteuid().is_root() {
                let unprivileged = Uid::from_raw(65534);
                chown(directory.path(), Some(unprivileged.as_raw()), None).expect("given");
                setfsuid(unprivileged);
            }
            create(&from).expect("made");
            migrations::run(&connect(&from, &old).expect("opened"), &from, &old).expect("a schema");
            let ready = Copy::create(&from, &old, &to).expect("a copy").rekey(&new).expect("re-encrypted");
            let may = |mode| std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(mode)).expect("set");
            // With this mode, files can be renamed in the directory, and it cannot be opened.
            may(0o300);
            assert!(std::fs::File::open(directory.path()).is_err(), "the sync must fail");
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
