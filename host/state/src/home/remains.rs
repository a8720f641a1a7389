//! The check for files that show that a home had a record. A host never makes a new record beside them.
//!
//! Opens none of these files. See `daemon` of the host.

use super::{Error, Home, Own};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

impl Home {
    /// Returns the home at `path` for its removal, also a damaged one. It must belong to this user and have a file of a home.
    ///
    /// # Errors
    /// [`Error::NotInitialised`] for another directory.
    pub fn for_removal(path: &Path) -> Result<Self, Error> {
        let home = path.canonicalize().map(Self).map_err(|_| Error::NotInitialised(path.to_owned()))?;
        let found = fs::metadata(&home.0).map_err(|source| Error::Io { path: home.0.clone(), source })?;
        let me = nix::unistd::geteuid().as_raw();
        if found.uid() != me {
            return Err(Error::Permissions { path: home.0, mode: found.mode() & 0o7777, uid: found.uid(), me });
        }
        let is_home = || {
            home.has_record() || home.setup_file().exists() || home.remains().is_some() || home.key_or_log().is_some()
        };
        match found.is_dir() && is_home() {
            true => Ok(home),
            false => Err(Error::NotInitialised(home.0)),
        }
    }

    /// Returns whether the file of the record exists and is not empty. A special file counts too: another check refuses it.
    pub fn has_record(&self) -> bool {
        fs::metadata(self.state_db()).is_ok_and(|found| !found.is_file() || found.len() > 0)
    }

    /// Refuses a home that had a record and has none now.
    ///
    /// # Errors
    /// [`Error::RecordMissing`] with the file that shows that there was a record.
    pub fn check_for_lost_record(&self) -> Result<(), Error> {
        if self.has_record() || self.setup_file().exists() {
            return Ok(());
        }
        let how = if self.state_db().exists() { "empty" } else { "missing" };
        match self.remains().or_else(|| self.key_or_log()) {
            Some(found) => Err(Error::RecordMissing { home: self.0.clone(), how, found }),
            None => Ok(()),
        }
    }

    /// Returns a file that exists only after the setup of a host. `None` while a setup is unfinished.
    pub fn remains(&self) -> Option<PathBuf> {
        if self.setup_file().exists() {
            return None;
        }
        let file = [self.owner_token(), self.keys_file()].into_iter().find(|path| path.exists());
        let filled =
            [Own::Sessions, Own::Ledger, Own::Agents].map(|name| self.own(name)).into_iter().find(|directory| {
                // An unreadable directory may have entries.
                fs::read_dir(directory).map_or_else(
                    |error| error.kind() != std::io::ErrorKind::NotFound,
                    |mut entries| entries.next().is_some(),
                )
            });
        file.or(filled).or_else(|| self.snapshot())
    }

    /// Returns a write-ahead log or a master key, which belong to a record.
    fn key_or_log(&self) -> Option<PathBuf> {
        let log = self.own(Own::StateDbLog);
        let has_log = fs::metadata(&log).is_ok_and(|found| found.len() > 0);
        let key = Some(self.master_key()).filter(|key| key.exists());
        if has_log { Some(log) } else { key }
    }

    /// Returns a snapshot, or the copy of the record from an unfinished key rotation.
    fn snapshot(&self) -> Option<PathBuf> {
        let names = fs::read_dir(&self.0).ok()?.flatten().map(|entry| entry.file_name());
        let is_copy = |name: &str| name.starts_with("state.db.before-v") || name == "state.db.next";
        names.filter(|name| name.to_str().is_some_and(is_copy)).map(|name| self.0.join(name)).min()
    }

    /// Marks the setup of this home as unfinished, until [`Home::end_setup`].
    pub fn begin_setup(&self) -> Result<(), Error> {
        super::write_private(&self.setup_file(), b"")
    }

    /// Marks the setup of this home as finished.
    pub fn end_setup(&self) -> Result<(), Error> {
        super::remove(&self.setup_file())
    }

    /// Returns the path of the file that exists during the setup of a home.
    fn setup_file(&self) -> PathBuf {
        self.own(Own::SetupUnfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trace_of_an_earlier_record_refuses_a_new_one() {
        let made = || {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let home = Home::create(&directory.path().join("home")).expect("made");
            (directory, home)
        };
        let (_kept, fresh) = made();
        fresh.check_for_lost_record().expect("an empty home is a new one");
        for (name, is_directory) in [
            ("owner.token", false),
            ("keys.json", false),
            ("master.key", false),
            ("state.db-wal", false),
            ("state.db.before-v8", false),
            ("state.db.next", false),
            ("sessions/ses_1", true),
            ("agents/agt_1", true),
            ("ledger/chain-000000000000.ndjson", false),
        ] {
            let (_kept, home) = made();
            let path = home.path().join(name);
            if is_directory { fs::create_dir(&path) } else { fs::write(&path, "x") }.expect("made");
            for (empty, expected) in [(false, "missing"), (true, "empty")] {
                if empty {
                    fs::write(home.state_db(), "").expect("written");
                }
                let refused = home.check_for_lost_record();
                assert!(
                    matches!(&refused, Err(Error::RecordMissing { how, .. }) if *how == expected),
                    "{name}: {refused:?}"
                );
                let opened = Home::open(home.path());
                assert!(matches!(opened, Err(Error::RecordMissing { .. })), "{name}: {opened:?}");
            }
            // An interrupted setup continues.
            home.begin_setup().expect("written");
            home.check_for_lost_record().expect("it is not finished");
            home.end_setup().expect("removed");
            home.check_for_lost_record().expect_err("it is finished");
            fs::write(home.state_db(), "x").expect("written");
            home.check_for_lost_record().expect("there is a record");
        }
    }
}
