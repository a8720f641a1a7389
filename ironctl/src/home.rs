//! Where an installation keeps its state, and what the CLI may read there: who runs, and the owner's token.
//! Never opens a database, and writes nothing but the file that a detached host's stderr goes to, and the one that asks for a stop.
//! Next: `client` talks to the host that the run file names.

use crate::failure::Error;
use directories::BaseDirs;
use ironclaw_contract::operator::{LOG_FILE, OWNER_TOKEN_FILE, PANIC_FILE, RUN_FILE, Run};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// More than this in the run file or the token is not ours.
const SMALL_FILE_BYTES_MAX: u64 = 64 * 1024;

/// The directory that holds everything of one installation; absolute.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// The named directory, else `$XDG_STATE_HOME/ironclaw`, else `~/.local/state/ironclaw`.
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

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether `ironclaw-host init` has been here.
    pub fn is_initialised(&self) -> bool {
        ["state.db", OWNER_TOKEN_FILE].iter().all(|name| self.0.join(name).exists())
    }

    /// Who runs here according to the run file; `None` when there is no such file.
    ///
    /// The file may be stale: only an answer shows that a host is there.
    pub fn run(&self) -> Result<Option<Run>, Error> {
        let path = self.0.join(RUN_FILE);
        let text = match read_small(&path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(unreadable("run_file_unreadable", &path).because(cause)),
        };
        serde_json::from_str(&text).map(Some).map_err(|cause| {
            unreadable("run_file_unreadable", &path).because(cause).hinting("stop the host and remove the file")
        })
    }

    /// The owner's token, without surrounding white space.
    pub fn token(&self) -> Result<String, Error> {
        let path = self.0.join(OWNER_TOKEN_FILE);
        let text = read_small(&path).map_err(|cause| unreadable("token_unreadable", &path).because(cause))?;
        Ok(text.trim().to_owned())
    }

    /// Makes the file that asks the next start of a host to start stopped; it is on disk when this returns.
    pub fn ask_for_panic(&self) -> Result<(), Error> {
        let path = self.0.join(PANIC_FILE);
        let made = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        made.and_then(|file| file.sync_all()).and_then(|()| File::open(&self.0)?.sync_all()).map_err(|cause| {
            Error::failed("home_unwritable", format!("cannot write {}", path.display())).because(cause)
        })
    }

    /// Takes that file away again.
    pub fn take_panic_back(&self) -> Result<(), Error> {
        let path = self.0.join(PANIC_FILE);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::failed("home_unwritable", format!("cannot remove {}", path.display())).because(cause))
            }
            _ => Ok(()),
        }
    }

    /// Path of the owner's token.
    pub fn token_file(&self) -> PathBuf {
        self.0.join(OWNER_TOKEN_FILE)
    }

    /// Path of the file that the host logs to.
    pub fn log_file(&self) -> PathBuf {
        self.0.join(LOG_FILE)
    }

    /// Path of the file that a detached host's stdout and stderr go to.
    pub fn stderr_file(&self) -> PathBuf {
        self.0.join("logs/host.stderr")
    }

    /// Opens [`Home::stderr_file`] for appending, 0600 in a directory of 0700, making both when missing.
    pub fn open_stderr_file(&self) -> Result<File, Error> {
        let path = self.stderr_file();
        let directory = path.parent().expect("stderr_file has a directory part");
        let opened = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(&path));
        opened
            .map_err(|cause| Error::failed("home_unwritable", format!("cannot open {}", path.display())).because(cause))
    }
}

fn unreadable(code: &'static str, path: &Path) -> Error {
    Error::failed(code, format!("cannot read {}", path.display()))
}

fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(SMALL_FILE_BYTES_MAX).read_to_string(&mut text)?;
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

    #[test]
    fn a_damaged_run_file_is_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join(RUN_FILE), "{").expect("written");
        let home = Home::resolve(Some(directory.path().into())).expect("an absolute path");
        let told = home.run().expect_err("not JSON").told().expect("told");
        assert_eq!(told.error.code, "run_file_unreadable");
        assert!(told.error.message.contains("run.json"), "{}", told.error.message);
    }

    #[test]
    fn a_relative_home_becomes_absolute() {
        let home = Home::resolve(Some("somewhere".into())).expect("resolved");
        assert!(home.path().is_absolute());
    }
}
