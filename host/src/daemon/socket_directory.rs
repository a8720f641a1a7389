//! The private directory for the sockets of a host.
//!
//! Its name cannot be taken by another user before: it is below a directory of our own, or it is random. See [`crate::daemon`].

use super::error::Error;
use super::file_system;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::Run;
use ironclaw_state::home::{self, Home, Own};
use nix::unistd::geteuid;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of a socket's path that the system accepts, less room for the name of a session's socket.
const SOCKET_PATH_BYTES_MAX: usize = 80;

/// The parent of the directory if no other place fits.
const TEMPORARY: &str = "/tmp";

/// Returns a private directory with a short path: in the user's runtime directory, else in the home, else under a random name.
pub(super) fn directory(home: &Home) -> Result<PathBuf, Error> {
    let fixed = [for_login(home), Some(home.own(Own::Run))];
    for path in fixed.into_iter().flatten().filter(|path| path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX) {
        if !file_system::holds_sockets(&path) {
            tracing::warn!(path = %path.display(), "its file system cannot hold sockets");
            continue;
        }
        match private(&path) {
            Ok(()) => return Ok(path),
            Err(why) => tracing::warn!(path = %path.display(), why, "cannot be used for sockets"),
        }
    }
    let path = random()?;
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .map_err(|error| Error::Runtime { path: path.clone(), why: error.to_string() })?;
    Ok(path)
}

/// Returns the directory below the user's runtime directory, if the user has one.
pub(super) fn for_login(home: &Home) -> Option<PathBuf> {
    let name = &Digest::of(home.path().as_os_str().as_encoded_bytes()).to_string()[..12];
    let login = std::env::var_os("XDG_RUNTIME_DIR").and_then(|path| Path::new(&path).canonicalize().ok());
    login.filter(|path| is_own(path)).map(|login| login.join(format!("ironclaw-{name}")))
}

/// Removes the randomly named directory of a host that was killed.
pub(super) fn remove_left(home: &Home) {
    let run = home::read_small(&home.run_file()).ok();
    let run = run.and_then(|text| serde_json::from_str::<Run>(&text).ok());
    let left = run.and_then(|run| Some(Path::new(&run.socket).parent()?.to_owned()));
    let is_random = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.parent() == Some(Path::new(TEMPORARY)) && name.starts_with(&prefix())
    };
    if let Some(left) = left.filter(is_random).filter(|path| is_own(path))
        && let Err(error) = home::remove_tree(&left)
    {
        tracing::warn!(%error, path = %left.display(), "cannot remove the socket directory of an earlier host");
    }
}

fn random() -> Result<PathBuf, Error> {
    let mut bytes = [0; 8];
    let path = Path::new(TEMPORARY);
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Runtime { path: path.to_owned(), why: io::Error::other(error).to_string() })?;
    Ok(path.join(format!("{}{:016x}", prefix(), u64::from_ne_bytes(bytes))))
}

fn prefix() -> String {
    format!("ironclaw-{}-", geteuid())
}

/// Returns true for a directory of ours in which no other user can create a file.
fn is_own(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0)
}

/// Creates the directory, or accepts an existing one that is private.
fn private(path: &Path) -> Result<(), String> {
    home::make_private(path).map_err(|error| error.to_string())?;
    let found = path.symlink_metadata().map_err(|error| error.to_string())?;
    match found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(format!("it belongs to uid {} with mode {:04o}", found.uid(), found.mode() & 0o7777)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_directory_that_others_can_enter_is_not_used_for_sockets() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::create(&directory.path().join("h")).expect("made");
        let used = super::directory(&home).expect("the home is short enough");
        assert_eq!(used, home.path().join("run"));
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&used, PermissionsExt::from_mode(0o755)).expect("set");
        let other = super::directory(&home).expect("another place");
        assert!(other.starts_with(TEMPORARY) && is_own(&other), "{}", other.display());
        fs::remove_dir(other).expect("empty");
    }

    #[test]
    fn a_random_directory_that_was_left_is_removed_and_no_other() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::create(&directory.path().join("h")).expect("made");
        let left = random().expect("a name");
        fs::create_dir(&left).expect("made");
        let kept = directory.path().join("kept");
        fs::create_dir(&kept).expect("made");
        for (path, stays) in [(&kept, true), (&left, false)] {
            let run = Run {
                pid: 1,
                socket: path.join("api.sock").display().to_string(),
                version: String::new(),
                listen: None,
            };
            fs::write(home.run_file(), serde_json::to_vec(&run).expect("plain")).expect("written");
            remove_left(&home);
            assert_eq!(path.exists(), stays, "{}", path.display());
        }
    }
}
