//! The directory with the kept versions of a session: one file for each content, the index, and the report of the last run.
//!
//! Only the host reaches it: it is beside the workspace, and no jail has it. See [`super::index`].

use super::index::{Index, Version};
use super::limits::Reason;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::TurnId;
use ironclaw_state::home::{self, SessionDirectories, make_private, open_file, write_private};
use nix::fcntl::{Flock, FlockArg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of the list of versions.
const INDEX: &str = "index.json";

/// The name of the report of the last run.
const REPORT: &str = "report.json";

/// The name of the file that a run locks.
const LOCK: &str = "lock";

/// The name of an incomplete copy.
const DRAFT: &str = "copy.new";

/// Files in a report; the others are counted.
pub const LEFT_OUT_SHOWN_MAX: usize = 100;

/// Copies of one run that are written to the disk at once. The first run of a large workspace would take minutes otherwise.
const SYNCED_MAX: usize = 32;

/// A file without a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path, with safe characters.
    pub shown: String,
    pub why: Reason,
}

/// The report of the last run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The time, in milliseconds since the epoch.
    pub at: i64,
    /// The turn of the run.
    pub turn: Option<TurnId>,
    /// Files without a copy, the first [`LEFT_OUT_SHOWN_MAX`].
    pub left_out: Vec<LeftOut>,
    /// The number of all of them.
    pub left_out_total: u64,
    /// The reason that the run failed.
    pub failure: Option<String>,
}

impl Report {
    /// Adds a file without a copy.
    pub fn leave_out(&mut self, shown: String, why: Reason) {
        self.left_out_total += 1;
        if self.left_out.len() < LEFT_OUT_SHOWN_MAX {
            self.left_out.push(LeftOut { shown, why });
        }
    }
}

/// The locked directory of the versions.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    _lock: Flock<File>,
    synced: usize,
    has_new: bool,
}

impl Store {
    /// Opens the directory, and makes it if it is missing. Waits for another run.
    ///
    /// # Errors
    /// Fails if the session has no directory.
    pub fn open(place: &SessionDirectories) -> io::Result<Self> {
        let directory = place.versions();
        make_private(&directory).map_err(cause)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(directory.join(LOCK))?;
        let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
        Ok(Self { directory, _lock: lock, synced: 0, has_new: false })
    }

    /// Reads the list of versions.
    ///
    /// # Errors
    /// Fails if it is damaged.
    pub fn index(&self) -> io::Result<Index> {
        read_index(&self.directory)
    }

    /// Writes the copy of a content, unless there is one.
    pub fn write(&mut self, digest: &Digest, content: &[u8]) -> io::Result<()> {
        let path = self.path_of(digest);
        if path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == content.len() as u64) {
            return Ok(());
        }
        let draft = self.directory.join(DRAFT);
        home::discard(&draft)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(content)?;
        if self.synced < SYNCED_MAX {
            file.sync_data()?;
            self.synced += 1;
        }
        self.has_new = true;
        fs::rename(&draft, &path)
    }

    /// Reads the content of a version; `None` if its copy is missing or damaged.
    pub fn read(&self, version: &Version) -> io::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        match open_file(&self.path_of(&version.digest)) {
            Ok(file) => file.take(version.stamp.bytes + 1).read_to_end(&mut content)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok((Digest::of(&content) == version.digest).then_some(content))
    }

    /// Stores the list if it changed, and then removes copies that it does not name.
    pub fn save(&mut self, index: &mut Index) -> io::Result<()> {
        if !index.has_changed && !self.has_new {
            return Ok(());
        }
        self.write_json(INDEX, index)?;
        index.has_changed = false;
        self.has_new = false;
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let digest = name.to_str().and_then(|name| name.parse::<Digest>().ok());
            if digest.is_some_and(|digest| !index.has_copy(&digest)) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Stores the report of a run.
    pub fn save_report(&self, report: &Report) -> io::Result<()> {
        self.write_json(REPORT, report)
    }

    /// Reads the report of the last run.
    pub fn report(&self) -> io::Result<Report> {
        Ok(read_json(&self.directory.join(REPORT))?.unwrap_or_default())
    }

    fn write_json<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let json = serde_json::to_vec(value)?;
        write_private(&self.directory.join(name), &json).map_err(cause)
    }

    fn path_of(&self, digest: &Digest) -> PathBuf {
        self.directory.join(digest.to_string())
    }
}

/// Reads the list and the report of a session without a lock; both are empty if it never had a run.
pub fn read(place: &SessionDirectories) -> io::Result<(Index, Report)> {
    let directory = place.versions();
    Ok((read_index(&directory)?, read_json(&directory.join(REPORT))?.unwrap_or_default()))
}

/// Returns the error of the system, by which the host recognises a full disk.
fn cause(error: home::Error) -> io::Error {
    match error {
        home::Error::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

fn read_index(directory: &Path) -> io::Result<Index> {
    let mut index: Index = read_json(&directory.join(INDEX))?.unwrap_or_default();
    index.count();
    Ok(index)
}

/// Reads a file of this directory; `None` if it is missing.
fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let mut text = Vec::new();
    match open_file(path) {
        Ok(mut file) => file.read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = |error| io::Error::other(format!("{} is damaged ({error}): remove its directory", path.display()));
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}
