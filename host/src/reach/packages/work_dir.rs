//! The inputs of a fetch, and the directory in which the clients of one change work.

use super::error::Error;
use crate::registry::live_settings::packages::Config;
use ironclaw_contract::ids::ChangeId;
use ironclaw_jail::Identity;
use ironclaw_jail::launcher::Launcher;
use ironclaw_state::home::{Home, LayerOwner, make_private, remove_tree};
use std::path::{Path, PathBuf};
use tokio::time::Instant;

/// Inputs of a fetch.
#[derive(Debug, Clone)]
pub struct FetchContext {
    /// Makes the jails of the clients.
    pub launcher: Launcher,
    /// Home with the layers.
    pub home: Home,
    pub config: Config,
    /// User of the clients as the host's files see it. As root, a uid that no session has.
    pub identity: Identity,
}

/// The directory of one change while its packages are fetched.
pub(super) struct WorkDir {
    pub(super) path: PathBuf,
    /// The deadline of all clients.
    pub(super) until: Instant,
}

impl WorkDir {
    /// Creates it empty.
    pub(super) fn clear(context: &FetchContext, owner: &LayerOwner, change: ChangeId) -> Result<Self, Error> {
        let own = context.home.layers_of(owner);
        make_private(own.parent().expect("it is in the home"))?;
        make_private(&own)?;
        let all = own.join("fetching");
        make_private(&all)?;
        let path = all.join(change.to_string());
        discard(&path)?;
        make_private(&path)?;
        let work_dir = Self { path, until: Instant::now() + context.config.fetch_time_max() };
        make_private(&work_dir.etc())?;
        // The client's uid reads it, inside a directory that only the host can enter.
        set_mode(&work_dir.etc(), 0o755)?;
        Ok(work_dir)
    }

    /// Returns the directory that the clients read besides the machine's settings.
    pub(super) fn etc(&self) -> PathBuf {
        self.path.join("etc")
    }

    /// Returns the directory that the clients write to.
    pub(super) fn work(&self) -> PathBuf {
        self.path.join("work")
    }
}

/// Removes a directory tree, also if its directories are read-only or deeper than a path may be. A missing one is no error.
pub(super) fn discard(path: &Path) -> Result<(), Error> {
    remove_tree(path).map_err(Error::io(path))
}

pub(super) fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetched_files_are_removed_at_any_depth() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let top = directory.path().join("agents/agt_x/fetching/chg_x");
        std::fs::create_dir_all(&top).expect("made");
        // Deeper than any path may be long: created from within, as an unpacker does.
        let made = std::process::Command::new("sh")
            .args([
                "-c",
                "for i in $(seq 1 1000); do mkdir abcdefgh && cd -P abcdefgh || exit 1; done; mkdir -m 500 shut",
            ])
            .current_dir(&top)
            .status();
        assert!(made.is_ok_and(|made| made.success()));
        discard(&top).expect("removed");
        assert!(!top.exists() && directory.path().join("agents").exists());
        discard(&top).expect("a second time is nothing");
    }
}
