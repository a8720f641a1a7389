//! The home of a host, and its files that `ironctl` may read: the run file and the token of the owner.
//!
//! Never opens a database. Writes only two files: the stderr of a detached host, and the panic file. See [`crate::client`], which
//! connects to the host in the run file.

use crate::failure::Error;
use directories::BaseDirs;
use ironclaw_operator::{LOCK_FILE, LOG_FILE, OWNER_TOKEN_FILE, PANIC_FILE, PANIC_RESERVE_FILE, RUN_FILE, Run};
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the run file or the token.
const SMALL_FILE_BYTES_MAX: u64 = 64 * 1024;

/// A larger stderr file is renamed at the next start; one older file is kept.
const STDERR_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The hint for an unusable token of the owner.
pub const RENEW_TOKEN: &str = "`ironctl init` replaces the token of the owner";

/// The home of a host: an absolute directory.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// Resolves the named directory, else `$XDG_STATE_HOME/ironclaw`, else `~/.local/state/ironclaw`.
    ///
    /// Fails if no directory is named and the user has no home directory.
    pub fn resolve(named: Option<PathBuf>) -> Result<Self, Error> {
        let path = match named {
            Some(path) => path,
            None => BaseDirs::new().and_then(|base| Some(base.state_dir()?.join("ironclaw"))).ok_or_else(|| {
                Error::failed("home_unknown", "cannot find the home: $HOME is not set")
                    .hinting("name it with --home DIR")
            })?,
        };
        std::path::absolute(&path)
            .map(Self)
            .map_err(|cause| Error::failed("home_unknown", format!("cannot resolve {}", path.display())).because(cause))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns whether the directory has a file of a home, also a damaged one.
    pub fn exists(&self) -> bool {
        let home_files =
            ["state.db", "master.key", "sessions", OWNER_TOKEN_FILE, LOCK_FILE, RUN_FILE, PANIC_RESERVE_FILE];
        home_files.iter().any(|name| self.0.join(name).symlink_metadata().is_ok())
    }

    /// Returns whether another process has the lock of this home; `None` if no file can be locked, so that this is unknown.
    pub fn is_locked(&self) -> Option<bool> {
        let locked = |path: &Path| {
            let file =
                open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file() || found.is_dir()))?;
            match Flock::lock(file, FlockArg::LockSharedNonblock) {
                Ok(_) => Some(false),
                Err((_, nix::Error::EWOULDBLOCK)) => Some(true),
                Err(_) => None,
            }
        };
        let found = [locked(&self.0), locked(&self.0.join(LOCK_FILE))];
        found.into_iter().flatten().reduce(|one, other| one || other)
    }

    /// Returns whether `ironclaw-host init` has created the home.
    pub fn is_initialised(&self) -> bool {
        self.has_record() && self.0.join(OWNER_TOKEN_FILE).exists()
    }

    /// Returns whether the home has a record. An empty one does not count: `ironclaw-host init` prints the remedy for it.
    pub fn has_record(&self) -> bool {
        fs::metadata(self.0.join("state.db")).is_ok_and(|found| found.len() > 0)
    }

    /// Returns the run file of the host; `None` if it is missing or no host wrote it.
    ///
    /// The file may be stale: only an answer shows that the host runs.
    pub fn run_file(&self) -> Result<Option<Run>, Error> {
        let path = self.0.join(RUN_FILE);
        match read_small(&path) {
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                let hint = format!("chmod 600 {}, or run this as the user of the host", path.display());
                Err(unreadable("run_file_unreadable", &path).because(cause).hinting(hint))
            }
            Err(_) => Ok(None),
        }
    }

    /// Returns the token of the owner, without surrounding white space.
    pub fn token(&self) -> Result<String, Error> {
        let path = self.0.join(OWNER_TOKEN_FILE);
        let hint = || match path.is_dir() {
            true => format!("remove {}; `ironctl init` then creates a new token", path.display()),
            false => RENEW_TOKEN.to_owned(),
        };
        let text =
            read_small(&path).map_err(|cause| unreadable("token_unreadable", &path).because(cause).hinting(hint()))?;
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!("{} contains no token", path.display());
            return Err(Error::failed("token_unreadable", message).hinting(hint()));
        }
        Ok(token.to_owned())
    }

    /// Creates the panic file, which stops a running host, or a host at its next start. Returns once the file is on disk.
    ///
    /// If no file can be created, the reserve file is renamed instead.
    pub fn create_panic_file(&self) -> Result<(), Error> {
        self.create_panic_file_by(|path| {
            OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?.sync_all()?;
            open(&self.0)?.sync_all()
        })
    }

    fn create_panic_file_by(&self, create: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
        let path = self.0.join(PANIC_FILE);
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let created = create(&path).or_else(|cause| {
            fs::rename(self.0.join(PANIC_RESERVE_FILE), &path)
                .and_then(|()| open(&self.0)?.sync_all())
                .map_err(|_| cause)
        });
        created.map_err(|cause| {
            Error::failed("home_unwritable", format!("cannot write {}", path.display())).because(cause)
        })
    }

    /// Returns the path of the token of the owner.
    pub fn token_file(&self) -> PathBuf {
        self.0.join(OWNER_TOKEN_FILE)
    }

    /// Returns the path of the host's log.
    pub fn log_file(&self) -> PathBuf {
        self.0.join(LOG_FILE)
    }

    /// Returns the path of the file for the stdout and stderr of a detached host.
    pub fn stderr_file(&self) -> PathBuf {
        self.0.join("logs/host.stderr")
    }

    /// Opens [`Home::stderr_file`] for appending. Creates it with mode 0600 in a directory of mode 0700. Renames a large one first.
    pub fn open_stderr_file(&self) -> Result<File, Error> {
        let path = self.stderr_file();
        let directory = path.parent().expect("stderr_file has a directory part");
        if path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > STDERR_BYTES_MAX) {
            // If that fails, the large file is used further.
            let _ = fs::rename(&path, path.with_extension("stderr.1"));
        }
        let opened = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            // Does not wait for the other end of a pipe of that name.
            .and_then(|()| {
                let mut options = OpenOptions::new();
                options.create(true).append(true).mode(0o600).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path)
            });
        let opened = opened.and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is not a regular file")),
        });
        let hint = format!("remove it, or make {} writable", directory.display());
        opened.map_err(|cause| {
            Error::failed("home_unwritable", format!("cannot open {}", path.display())).because(cause).hinting(hint)
        })
    }
}

fn unreadable(code: &'static str, path: &Path) -> Error {
    Error::failed(code, format!("cannot read {}", path.display()))
}

/// Opens a path without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

/// Opens a regular file; any other kind of file is an error at once.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_file(path)?.take(SMALL_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
        (directory, home)
    }

    #[test]
    fn home_without_a_run_file_has_no_host() {
        let (_directory, home) = home();
        assert_eq!(home.run_file().expect("a missing file is not an error"), None);
        assert!(!home.is_initialised());
    }

    /// Writes a damaged file of the home, of one of five kinds of damage.
    fn write_damaged(path: &Path, damage: usize) {
        match damage {
            0 => fs::write(path, "").expect("written"),
            1 => fs::write(path, [0xff, 0x00, b'{']).expect("written"),
            2 => fs::write(path, "{ two words").expect("written"),
            3 => fs::create_dir(path).expect("made"),
            _ => nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR).expect("made"),
        }
    }

    #[test]
    fn damaged_run_file_counts_as_missing() {
        for damage in 0..5 {
            let (directory, home) = home();
            write_damaged(&directory.path().join(RUN_FILE), damage);
            assert_eq!(home.run_file().expect("no error"), None, "{damage}");
            assert!(home.exists(), "{damage}");
        }
    }

    #[test]
    fn damaged_token_is_reported_with_the_remedy() {
        for damage in 0..5 {
            let (directory, home) = home();
            write_damaged(&directory.path().join(OWNER_TOKEN_FILE), damage);
            let report = home.token().expect_err("no token").report().expect("reported").error;
            assert_eq!(report.code, "token_unreadable", "{damage}");
            assert!(report.message.contains(OWNER_TOKEN_FILE) && report.hint.contains("ironctl init"), "{report:?}");
        }
    }

    #[test]
    fn lock_is_seen_on_the_file_and_on_the_home() {
        let (directory, home) = home();
        assert_eq!(home.is_locked(), Some(false));
        fs::write(directory.path().join(LOCK_FILE), "").expect("written");
        for path in [directory.path().to_owned(), directory.path().join(LOCK_FILE)] {
            let held = Flock::lock(File::open(&path).expect("there"), FlockArg::LockExclusiveNonblock).expect("free");
            assert_eq!(home.is_locked(), Some(true), "{}", path.display());
            drop(held);
            assert_eq!(home.is_locked(), Some(false), "{}", path.display());
        }
    }

    #[test]
    fn any_file_of_that_name_is_a_panic_file() {
        let (directory, home) = home();
        home.create_panic_file().expect("a file can be created");
        home.create_panic_file().expect("it already exists");
        assert!(directory.path().join(PANIC_FILE).is_file());
        fs::remove_file(directory.path().join(PANIC_FILE)).expect("removed");
        fs::create_dir(directory.path().join(PANIC_FILE)).expect("made");
        home.create_panic_file().expect("a directory of that name counts too");
    }

    #[test]
    fn reserve_file_becomes_the_panic_file_on_a_full_disk() {
        let (directory, home) = home();
        let full = |_: &Path| Err(io::Error::from(nix::Error::ENOSPC));
        let refused = home.create_panic_file_by(full).expect_err("no file and no reserve").report().expect("reported");
        assert_eq!(refused.error.code, "home_unwritable");
        let (panic, reserve) = (directory.path().join(PANIC_FILE), directory.path().join(PANIC_RESERVE_FILE));
        fs::write(&reserve, "reserve").expect("written");
        home.create_panic_file_by(full).expect("the reserve file is renamed");
        assert_eq!(fs::read_to_string(&panic).expect("there"), "reserve");
        assert!(!reserve.exists(), "it is the same file");
    }

    #[test]
    fn large_stderr_file_is_renamed_and_one_is_kept() {
        let (directory, home) = home();
        let length = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        let aside = directory.path().join("logs/host.stderr.1");
        for excess in [0, 1, 2] {
            home.open_stderr_file().expect("opened").set_len(STDERR_BYTES_MAX + excess).expect("written");
            let kept = home.open_stderr_file().expect("opened").metadata().expect("there").len();
            match excess {
                0 => assert_eq!((kept, aside.exists()), (STDERR_BYTES_MAX, false), "it is not too large"),
                _ => assert_eq!((kept, length(&aside)), (0, STDERR_BYTES_MAX + excess)),
            }
        }
        assert_eq!(fs::read_dir(directory.path().join("logs")).expect("there").count(), 2);
    }

    #[test]
    fn relative_home_becomes_absolute() {
        let home = Home::resolve(Some("somewhere".into())).expect("resolved");
        assert!(home.path().is_absolute());
    }
}
