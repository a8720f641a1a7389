//! Errors of the daemon and of the commands on a home that it does not serve.

use super::file_system::Unfit;
use super::mount_policy::Exposed;
use crate::upkeep::key_rotation;
use ironclaw_ledger::{archive, head};
use ironclaw_state::home;
use ironclaw_state::keys;
use ironclaw_state::seal;
use ironclaw_store::toml_file;
use std::path::PathBuf;

/// The reason that the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The settings or the policy.
    #[error(transparent)]
    Settings(#[from] toml_file::Error),
    #[error(transparent)]
    Key(#[from] keys::Error),
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    #[error(transparent)]
    Model(#[from] ironclaw_model::Error),
    /// The secret of the seals.
    #[error(transparent)]
    Seal(#[from] seal::Error),
    #[error(transparent)]
    Pipeline(#[from] ironclaw_store::error::Error),
    /// The signing key of the ledger.
    #[error(transparent)]
    Head(#[from] head::Error),
    /// A rotation of the ledger without a running host.
    #[error(transparent)]
    Rotate(#[from] archive::Error),
    /// The master key does not open the record.
    #[error(transparent)]
    Rotation(#[from] key_rotation::Error),
    #[error(transparent)]
    Backup(#[from] crate::upkeep::backup::Error),
    /// The set-up of the home did not finish.
    #[error("the record of {0} is empty: it has no genesis")]
    NoGenesis(PathBuf),
    /// The sandbox's program is missing.
    #[error("cannot find ironclaw-sandbox beside {0}: install both from one build")]
    NoSandbox(PathBuf),
    #[error("cannot use {path} for sockets: {why}")]
    Runtime {
        /// Path of the file.
        path: PathBuf,
        why: String,
    },
    /// The certificates of the gateways of commands.
    #[error(transparent)]
    Trust(#[from] crate::reach::jail_network::trust::Error),
    /// A file or directory of the host that jails would show.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// A file system that cannot hold the home.
    #[error(transparent)]
    FileSystem(#[from] Unfit),
    /// A home that also has files of other programs.
    #[error("{} has {count} files that are not of a home, such as {}; nothing was removed", .home.display(), .first.display())]
    Foreign {
        home: PathBuf,
        /// The name of the first such file.
        first: PathBuf,
        /// Their number.
        count: usize,
    },
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that `api.listen` or `webhook.listen` names.
        address: String,
        source: std::io::Error,
    },
    /// The worker that sends deliveries exited; no delivery would go out.
    #[error("delivery worker exited unexpectedly")]
    DispatchEnded,
    /// The launcher died; nothing can be launched.
    #[error("the launcher (process {0}) died")]
    LauncherDied(u32),
    #[error("{what}: {source}")]
    Io {
        /// The operation that was tried.
        what: &'static str,
        source: std::io::Error,
    },
}

pub(super) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { what, source }
}
