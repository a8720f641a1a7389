//! The home directory of a host, its files, and its permissions.
//!
//! Never blocks on a special file such as a pipe, never uses a home that other users can enter, and never makes a directory with a
//! mode wider than 0700. See [`crate::keys`].

mod remains;

use ironclaw_contract::ids::{AgentId, SessionId};
use ironclaw_operator as operator;
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

mod check;
mod layers;
mod names;
mod tree;

pub use check::REMOUNT;
pub use layers::LayerOwner;
pub use names::{ASIDE, Own, is_own, is_set_aside};
pub use tree::remove_tree;

/// Bytes of a token, a run file or the fingerprints of keys.
const SMALL_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Attempts to take the lock of a home. A process that only checks the lock holds it for a moment.
const HOLD_TRIES: u32 = 5;

/// Pause between two attempts.
const HOLD_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// Length of the file that tests whether the home is writable: one page, so that it needs a block.
const PROBE_BYTES: usize = 4096;

/// Free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    /// Inodes that this user may still use; `None` where the file system has no fixed number.
    pub free_inodes: Option<u64>,
    /// The file system is mounted read-only.
    pub is_read_only: bool,
}

/// The state directory of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

/// The reason that a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is not the home of a host.
    #[error("{0} is not an IronClaw home")]
    NotInitialised(PathBuf),
    /// Other users could read or write the home.
    #[error("{path} has mode {mode:04o}, owner {uid}: it must be 0700 and your own (uid {me})")]
    Permissions {
        path: PathBuf,
        mode: u32,
        uid: u32,
        /// The user of this process.
        me: u32,
    },
    /// Another host holds this home.
    #[error("another host runs on {0}")]
    Running(PathBuf),
    /// A file or directory of the home cannot be used.
    #[error("{path} {what}")]
    Damaged {
        /// The file or directory.
        path: PathBuf,
        what: String,
        /// Instruction for the operator.
        remedy: &'static str,
    },
    /// The disk is too full to start on.
    #[error(
        "no room to start at {path}: {free_bytes} bytes and {free_files} files are free, and a start needs {} bytes and {} files",
        check::START_ROOM_BYTES_MIN,
        check::START_ROOM_FILES_MIN
    )]
    NoRoom {
        path: PathBuf,
        /// Bytes that this user may still write.
        free_bytes: u64,
        /// Inodes that this user may still use.
        free_files: u64,
    },
    /// The record is missing, and another file shows that there was one.
    #[error("{home} has no record: state.db is {how}, and {found} shows that there was one")]
    RecordMissing {
        home: PathBuf,
        /// `missing` or `empty`.
        how: &'static str,
        /// The file that shows it.
        found: PathBuf,
    },
    /// An error of the operating system.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Home {
    /// Opens the home at `path`, and makes it if it is missing. It resolves links in the path once.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let fault = |source| Error::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fault)?;
        let home = Self(path.canonicalize().map_err(fault)?);
        home.check_permissions()?;
        home.make_directories()?;
        Ok(home)
    }

    /// Opens the home at `path`, which must have been set up.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let home = path.canonicalize().map(Self).map_err(|_| Error::NotInitialised(path.to_owned()))?;
        home.check_permissions()?;
        if !home.has_record() {
            home.check_for_lost_record()?;
            return Err(Error::NotInitialised(home.0));
        }
        home.check_files()?;
        Ok(home)
    }

    /// Returns the home at `path`, also without a record. It checks only owner and mode of the directory.
    pub fn at(path: &Path) -> Result<Self, Error> {
        let fault = |source| Error::Io { path: path.to_owned(), source };
        let home = Self(path.canonicalize().map_err(fault)?);
        home.check_permissions()?;
        Ok(home)
    }

    fn check_permissions(&self) -> Result<(), Error> {
        let metadata = fs::metadata(&self.0).map_err(|source| Error::Io { path: self.0.clone(), source })?;
        let me = nix::unistd::geteuid().as_raw();
        let mode = metadata.mode() & 0o7777;
        if mode & 0o077 != 0 || metadata.uid() != me {
            return Err(Error::Permissions { path: self.0.clone(), mode, uid: metadata.uid(), me });
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file or directory in the root of the home.
    pub fn own(&self, name: Own) -> PathBuf {
        self.0.join(name.name())
    }

    /// Returns the directory of the sessions.
    pub fn sessions(&self) -> PathBuf {
        self.own(Own::Sessions)
    }

    /// Returns the directory of the agents.
    pub fn agents(&self) -> PathBuf {
        self.own(Own::Agents)
    }

    /// Returns the path of the policy: the roles that decide on changes.
    pub fn policy(&self) -> PathBuf {
        self.own(Own::Policy)
    }

    /// Returns the path of the operator's settings.
    pub fn config(&self) -> PathBuf {
        self.own(Own::Config)
    }

    /// Returns the path of the master key.
    pub fn master_key(&self) -> PathBuf {
        self.own(Own::MasterKey)
    }

    /// Returns the path of the record.
    pub fn state_db(&self) -> PathBuf {
        self.own(Own::StateDb)
    }

    /// Returns the path of the lock file, which the running host holds.
    pub fn lock(&self) -> PathBuf {
        self.own(Own::Lock)
    }

    /// Locks the home for this process, until the returned value is dropped.
    ///
    /// # Errors
    /// [`Error::Running`] while another process holds the lock.
    pub fn hold(&self) -> Result<Held, Error> {
        let path = self.lock();
        if let Ok(found) = path.symlink_metadata()
            && !found.is_file()
        {
            return Err(check::not_a_file(&path, check::MADE_ANEW));
        }
        let file = fs::File::options().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        let file = file.map_err(|source| check::unusable(&path, &source, check::MADE_ANEW))?;
        let directory = fs::File::open(&self.0).map_err(|source| Error::Io { path: self.0.clone(), source })?;
        // The directory is locked as well: otherwise a second host could start after the lock file was removed or replaced.
        let refused = |_| Error::Running(self.0.clone());
        let held = Held {
            _file: lock(file).map_err(refused)?,
            _home: match lock(directory) {
                Err(nix::Error::EWOULDBLOCK) => return Err(refused(nix::Error::EWOULDBLOCK)),
                // Not every file system locks directories.
                locked => locked.ok(),
            },
        };
        Ok(held)
    }

    /// Returns the path of the owner's token.
    pub fn owner_token(&self) -> PathBuf {
        self.own(Own::OwnerToken)
    }

    /// Returns the path of the owner's next token, which exists until the old one ends.
    pub fn owner_token_next(&self) -> PathBuf {
        self.0.join("owner.token.next")
    }

    /// Replaces the owner's token with the next one.
    pub fn adopt_owner_token(&self) -> Result<(), Error> {
        replace(&self.owner_token_next(), &self.owner_token())
    }

    /// Returns the path of the next master key, which exists during a key rotation.
    pub fn master_key_next(&self) -> PathBuf {
        self.0.join("master.key.next")
    }

    /// Returns the path of the record under the next master key.
    pub fn state_db_next(&self) -> PathBuf {
        self.0.join("state.db.next")
    }

    /// Returns the path of the fingerprints of the master keys of the record. They are only for clear error messages.
    pub fn keys_file(&self) -> PathBuf {
        self.own(Own::Keys)
    }

    /// Returns the path of the file with the addresses of a running host.
    pub fn run_file(&self) -> PathBuf {
        self.own(Own::RunFile)
    }

    pub fn log(&self) -> PathBuf {
        self.0.join(operator::LOG_FILE)
    }

    /// Returns the directory of the archives of the ledger.
    pub fn ledger(&self) -> PathBuf {
        self.own(Own::Ledger)
    }

    /// Returns the free space for this user on the file system of the home, if the system reports it.
    pub fn free_space(&self) -> Option<FreeSpace> {
        let found = nix::sys::statvfs::statvfs(&self.0).ok()?;
        Some(FreeSpace {
            free_bytes: found.blocks_available().saturating_mul(found.fragment_size()),
            // A file system that allocates inodes on demand reports 0 in total.
            free_inodes: (found.files() > 0).then(|| found.files_available()),
            is_read_only: found.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY),
        })
    }

    /// Writes a small file in the home and removes it, to test whether the home is writable.
    pub fn probe_write(&self) -> io::Result<()> {
        let path = temporary_beside(&self.own(Own::Try))?;
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let written = file.write_all(&[0; PROBE_BYTES]);
        fs::remove_file(&path)?;
        written
    }

    /// Returns the directory of an agent, which holds its layers.
    pub fn agent(&self, id: AgentId) -> PathBuf {
        self.agents().join(id.to_string())
    }

    pub fn session(&self, id: SessionId) -> SessionDirectories {
        SessionDirectories(self.sessions().join(id.to_string()))
    }
}

/// The lock of a home, held until the value is dropped.
#[derive(Debug)]
pub struct Held {
    _file: Flock<fs::File>,
    _home: Option<Flock<fs::File>>,
}

fn lock(mut file: fs::File) -> Result<Flock<fs::File>, nix::Error> {
    for _ in 1..HOLD_TRIES {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Ok(held),
            Err((file, _)) => file,
        };
        std::thread::sleep(HOLD_PAUSE);
    }
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)
}

#[derive(Debug, Clone)]
pub struct SessionDirectories(PathBuf);

impl SessionDirectories {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory of `inbound.db` and its journal; it has no other file.
    pub fn inbound(&self) -> PathBuf {
        self.0.join("in")
    }

    /// Returns the directory of `outbound.db`; it has no other file. Only the sandbox and the jailed reader read it.
    pub fn outbound(&self) -> PathBuf {
        self.0.join("out")
    }

    /// Returns the directory of the agent's files.
    pub fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// Returns the directory of the kept versions of the agent's files. No jail has it.
    pub fn versions(&self) -> PathBuf {
        self.0.join("versions")
    }

    /// Returns the path of the inbound queue.
    pub fn inbound_db(&self) -> PathBuf {
        self.inbound().join(ironclaw_contract::seam::link::path::INBOUND_DB)
    }

    /// Makes the missing directories. With `owner`, that user owns `out` and `workspace`, and its group may read `in`. Returns whether
    /// it made the workspace.
    pub fn prepare(&self, owner: Option<u32>) -> Result<bool, Error> {
        let has_workspace = self.workspace().exists();
        make_private(&self.0)?;
        for directory in [self.inbound(), self.outbound(), self.workspace()] {
            make_private(&directory)?;
        }
        if let Some(uid) = owner {
            let give = |path: &Path, user: Option<u32>, mode: u32| {
                let change = || -> io::Result<()> {
                    std::os::unix::fs::lchown(path, user, Some(uid))?;
                    fs::set_permissions(path, fs::Permissions::from_mode(mode))
                };
                change().map_err(|source| Error::Io { path: path.to_owned(), source })
            };
            give(&self.inbound(), None, 0o750)?;
            give(&self.outbound(), Some(uid), 0o700)?;
            give(&self.workspace(), Some(uid), 0o700)?;
        }
        Ok(!has_workspace)
    }
}

/// Makes a directory of mode 0700, unless there is one already.
pub fn make_private(path: &Path) -> Result<(), Error> {
    let fault = |source| Error::Io { path: path.to_owned(), source };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(path).map_err(fault)?;
            if metadata.is_dir() { Ok(()) } else { Err(fault(io::Error::other("is not a directory"))) }
        }
        made => made.map_err(fault),
    }
}

/// Opens a regular file for reading. Any other kind of file is an error at once, also a pipe without a writer.
pub fn open_file(path: &Path) -> io::Result<fs::File> {
    let file = fs::File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Reads the text of a regular file of at most 64 KiB.
pub fn read_small(path: &Path) -> io::Result<String> {
    read_text(path, SMALL_FILE_BYTES_MAX)
}

/// Reads the text of a regular file of at most `bytes_max` bytes.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    open_file(path)?.take(bytes_max.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        Err(io::Error::other(format!("it has more than {bytes_max} bytes")))
    } else {
        Ok(text)
    }
}

/// Writes a file of mode 0600 atomically. An incomplete file has a hidden, unique name, so no other file is touched.
pub fn write_private(path: &Path, contents: &[u8]) -> Result<(), Error> {
    let fault = |source| Error::Io { path: path.to_owned(), source };
    let write = || -> io::Result<()> {
        let temporary = temporary_beside(path)?;
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written =
            file.write_all(contents).and_then(|()| file.sync_all()).and_then(|()| rename_durably(&temporary, path));
        // The file is from this process: no other program makes a file of that name.
        written.inspect_err(|_| drop(fs::remove_file(&temporary)))
    };
    write().map_err(fault)
}

/// Returns a hidden, unused name in the same directory.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    Ok(directory_of(path).join(format!(".{name}.{:016x}.new", u64::from_ne_bytes(random))))
}

/// Returns the directory of a file; `.` for a bare name.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Renames a file over another one, atomically and durably.
pub fn replace(from: &Path, to: &Path) -> Result<(), Error> {
    rename_durably(from, to).map_err(|source| Error::Io { path: from.to_owned(), source })
}

/// Renames a file over another one, atomically and durably, as [`replace`] does.
pub fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    // The name must survive a power cut too.
    fs::File::open(directory_of(to))?.sync_all()
}

/// Removes a file, if it is there.
pub fn remove(path: &Path) -> Result<(), Error> {
    discard(path).map_err(|source| match source.kind() {
        io::ErrorKind::IsADirectory => check::not_a_file(path, check::NOT_NEEDED),
        _ => Error::Io { path: path.to_owned(), source },
    })
}

/// Removes a file, if it is there, as [`remove`] does.
pub fn discard(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_file_touches_no_file_beside_it() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let names = || {
            let entries = fs::read_dir(directory.path()).expect("a directory").flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
            names.sort();
            names
        };
        let foreign = directory.path().join("master.new");
        fs::write(&foreign, "the master key in use").expect("written");
        for name in ["master.key", "master.old", "master"] {
            write_private(&directory.path().join(name), b"another").expect("written");
        }
        assert_eq!(fs::read_to_string(&foreign).expect("it is still there"), "the master key in use");
        // A file that cannot be renamed into place leaves no temporary file.
        fs::create_dir_all(directory.path().join("taken/by-a-directory")).expect("made");
        write_private(&directory.path().join("taken"), b"another").expect_err("a directory is there");
        assert_eq!(names(), ["master", "master.key", "master.new", "master.old", "taken"]);
    }

    #[test]
    fn a_home_that_others_can_enter_is_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("home");
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        assert!(matches!(Home::create(&path), Err(Error::Permissions { mode: 0o755, .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("set");
        Home::create(&path).expect("private");
        assert!(matches!(Home::open(&path), Err(Error::NotInitialised(_))));
    }
}
