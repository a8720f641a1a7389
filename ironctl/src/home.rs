//! State of an installation, and the parts that the CLI may read: the run file, and the owner's token.
//!
//! Never opens a database, and writes nothing but the file that a detached host's stderr goes to, and the one that asks for a
//! stop. [`crate::client`] talks to the host that the run file names.

use crate::failure::Error;
use directories::BaseDirs;
use ironclaw_contract::operator::{
    LOCK_FILE, LOG_FILE, OWNER_TOKEN_FILE, PANIC_FILE, PANIC_RESERVE_FILE, RUN_FILE, Run,
};
use nix::fcntl::{Flock, FlockArg, OFlag};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// More than this in the run file or the token is not ours.
const SMALL_FILE_BYTES_MAX: u64 = 64 * 1024;

/// A stderr file of this size is set aside at the next start; one older file is kept.
const STDERR_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Remedy for an owner's token that cannot be used.
pub const RENEW_TOKEN: &str = "`ironctl init` makes a new token of the owner in its place";

/// The directory that holds everything of one installation; absolute.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// Resolves the named directory, else `$XDG_STATE_HOME/ironclaw`, else `~/.local/state/ironclaw`.
    ///
    /// Fails when no directory is named and the user has no home directory.
    pub fn resolve(named: Option<PathBuf>) -> Result<Self, Error> {
        let path = match named {
            Some(path) => path,
            None => BaseDirs::new().and_then(|base| Some(base.state_dir()?.join("ironclaw"))).ok_or_else(|| {
                Error::failed("home_unknown", "cannot tell where the home is: $HOME is not set")
                    .hinting("name it with --home DIR")
            })?,
        };
        std::path::absolute(&path)
            .map(Self)
            .map_err(|cause| Error::failed("home_unknown", format!("cannot resolve {}", path.display())).because(cause))
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns whether there is anything of an installation here, however damaged.
    pub fn is_there(&self) -> bool {
        let of_a_home =
            ["state.db", "master.key", "sessions", OWNER_TOKEN_FILE, LOCK_FILE, RUN_FILE, PANIC_RESERVE_FILE];
        of_a_home.iter().any(|name| self.0.join(name).symlink_metadata().is_ok())
    }

    /// Returns whether a host can have the lock of this home; `None` where nothing can be locked, so that nothing shows it.
    pub fn is_held(&self) -> Option<bool> {
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

    /// Returns whether `ironclaw-host init` has been here.
    pub fn is_initialised(&self) -> bool {
        // An empty record is none, and the host's own program says what to do about it.
        let has_record = fs::metadata(self.0.join("state.db")).is_ok_and(|found| found.len() > 0);
        has_record && self.0.join(OWNER_TOKEN_FILE).exists()
    }

    /// Returns the host that runs here according to the run file; `None` when there is no such file, or none that a host wrote.
    ///
    /// The file may be stale: only an answer shows that a host is there.
    pub fn run(&self) -> Result<Option<Run>, Error> {
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

    /// Returns the owner's token, without surrounding white space.
    pub fn token(&self) -> Result<String, Error> {
        let path = self.0.join(OWNER_TOKEN_FILE);
        let hint = || match path.is_dir() {
            true => format!("remove {}; `ironctl init` then makes a new token", path.display()),
            false => RENEW_TOKEN.to_owned(),
        };
        let text =
            read_small(&path).map_err(|cause| unreadable("token_unreadable", &path).because(cause).hinting(hint()))?;
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!("{} holds no token", path.display());
            return Err(Error::failed("token_unreadable", message).hinting(hint()));
        }
        Ok(token.to_owned())
    }

    /// Makes the file that asks a host to stop everything, at its next start at the latest; it is on disk when this returns.
    ///
    /// Where no file can be made, the one that is kept in reserve takes its name.
    pub fn ask_for_panic(&self) -> Result<(), Error> {
        self.ask_for_panic_by(|path| {
            OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?.sync_all()?;
            open(&self.0)?.sync_all()
        })
    }

    fn ask_for_panic_by(&self, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
        let path = self.0.join(PANIC_FILE);
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let made = make(&path).or_else(|cause| {
            fs::rename(self.0.join(PANIC_RESERVE_FILE), &path)
                .and_then(|()| open(&self.0)?.sync_all())
                .map_err(|_| cause)
        });
        made.map_err(|cause| {
            Error::failed("home_unwritable", format!("cannot write {}", path.display())).because(cause)
        })
    }

    /// Returns the path of the owner's token.
    pub fn token_file(&self) -> PathBuf {
        self.0.join(OWNER_TOKEN_FILE)
    }

    /// Returns the path of the file that the host logs to.
    pub fn log_file(&self) -> PathBuf {
        self.0.join(LOG_FILE)
    }

    /// Returns the path of the file that a detached host's stdout and stderr go to.
    pub fn stderr_file(&self) -> PathBuf {
        self.0.join("logs/host.stderr")
    }

    /// Opens [`Home::stderr_file`] for appending, 0600 in a directory of 0700, making both when missing. A large one is set aside.
    pub fn open_stderr_file(&self) -> Result<File, Error> {
        let path = self.stderr_file();
        let directory = path.parent().expect("stderr_file has a directory part");
        if path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > STDERR_BYTES_MAX) {
            // If that fails, the old one goes on.
            let _ = fs::rename(&path, path.with_extension("stderr.1"));
        }
        let opened = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            // Without waiting: a pipe of that name has no other end.
            .and_then(|()| {
                let mut options = OpenOptions::new();
                options.create(true).append(true).mode(0o600).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path)
            });
        let opened = opened.and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is no file")),
        });
        let hint = format!("remove it, or see to it that you can write to {}", directory.display());
        opened.map_err(|cause| {
            Error::failed("home_unwritable", format!("cannot open {}", path.display())).because(cause).hinting(hint)
        })
    }
}

fn unreadable(code: &'static str, path: &Path) -> Error {
    Error::failed(code, format!("cannot read {}", path.display()))
}

/// Opens what is there without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

/// Opens a regular file; anything else of that name is an error at once.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_file(path)?.take(SMALL_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_without_a_run_file_has_no_host() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
        assert_eq!(home.run().expect("a missing file is no error"), None);
        assert!(!home.is_initialised());
    }

    /// Damages a file of the home in one of the possible ways.
    fn damaged(path: &Path, way: usize) {
        match way {
            0 => fs::write(path, "").expect("written"),
            1 => fs::write(path, [0xff, 0x00, b'{']).expect("written"),
            2 => fs::write(path, "{ two words").expect("written"),
            3 => fs::create_dir(path).expect("made"),
            _ => nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR).expect("made"),
        }
    }

    #[test]
    fn a_damaged_run_file_is_as_good_as_none() {
        for way in 0..5 {
            let directory = tempfile::tempdir().expect("a temporary directory");
            damaged(&directory.path().join(RUN_FILE), way);
            let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
            assert_eq!(home.run().expect("no error"), None, "{way}");
            assert!(home.is_there(), "{way}");
        }
    }

    #[test]
    fn a_damaged_token_is_named_with_the_remedy() {
        for way in 0..5 {
            let directory = tempfile::tempdir().expect("a temporary directory");
            damaged(&directory.path().join(OWNER_TOKEN_FILE), way);
            let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
            let told = home.token().expect_err("no token").told().expect("told").error;
            assert_eq!(told.code, "token_unreadable", "{way}");
            assert!(told.message.contains(OWNER_TOKEN_FILE) && told.hint.contains("ironctl init"), "{told:?}");
        }
    }

    #[test]
    fn a_lock_shows_on_the_file_and_on_the_home() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
        assert_eq!(home.is_held(), Some(false));
        fs::write(directory.path().join(LOCK_FILE), "").expect("written");
        for path in [directory.path().to_owned(), directory.path().join(LOCK_FILE)] {
            let held = Flock::lock(File::open(&path).expect("there"), FlockArg::LockExclusiveNonblock).expect("free");
            assert_eq!(home.is_held(), Some(true), "{}", path.display());
            drop(held);
            assert_eq!(home.is_held(), Some(false), "{}", path.display());
        }
    }

    #[test]
    fn a_panic_is_asked_for_once_by_anything_of_that_name() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
        home.ask_for_panic().expect("a file can be made");
        home.ask_for_panic().expect("it is there already");
        assert!(directory.path().join(PANIC_FILE).is_file());
        fs::remove_file(directory.path().join(PANIC_FILE)).expect("removed");
        fs::create_dir(directory.path().join(PANIC_FILE)).expect("made");
        home.ask_for_panic().expect("a directory of that name asks as well");
    }

    #[test]
    fn the_reserve_asks_for_a_stop_where_no_file_can_be_made() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
        let full = |_: &Path| Err(io::Error::from(nix::Error::ENOSPC));
        let refused = home.ask_for_panic_by(full).expect_err("no file and no reserve").told().expect("told");
        assert_eq!(refused.error.code, "home_unwritable");
        let (asks, reserve) = (directory.path().join(PANIC_FILE), directory.path().join(PANIC_RESERVE_FILE));
        fs::write(&reserve, "reserve").expect("written");
        home.ask_for_panic_by(full).expect("the reserve takes the name");
        assert_eq!(fs::read_to_string(&asks).expect("there"), "reserve");
        assert!(!reserve.exists(), "it is the same file");
    }

    #[test]
    fn a_large_stderr_file_is_set_aside_and_one_is_kept() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
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
    fn a_relative_home_becomes_absolute() {
        let home = Home::resolve(Some("somewhere".into())).expect("resolved");
        assert!(home.path().is_absolute());
    }
}
