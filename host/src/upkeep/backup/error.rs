//! The reasons that a backup was not made, or is not restored.

use ironclaw_state::keys::{self, BackupKey, spelled};
use ironclaw_state::{backup, home};
use std::io;
use std::path::PathBuf;

/// The reason that a backup was not made, or is not restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is something else.
    #[error("{0} is not a backup of a home")]
    Foreign(PathBuf),
    /// The format of the file is unknown.
    #[error("{path} has format {found}, and this version knows up to {known}")]
    Newer {
        path: PathBuf,
        found: u16,
        /// The newest known format.
        known: u16,
    },
    /// The schema of the record is unknown.
    #[error("the record in {path} has schema {found}, and this version knows up to {known}")]
    NewerSchema {
        path: PathBuf,
        /// The schema of its record.
        found: u32,
        /// The newest known schema.
        known: u32,
    },
    #[error("the record in {path} has schema {found}, and this version reads {oldest} and later")]
    OlderSchema { path: PathBuf, found: u32, oldest: u32 },
    /// The file is under another master key.
    #[error("{path} opens with the master key {}, and this key is {}", spelled(*wanted), spelled(*found))]
    OtherKey {
        path: PathBuf,
        /// Fingerprint of its key.
        wanted: [u8; BackupKey::NAME_BYTES],
        /// Fingerprint of the present key.
        found: [u8; BackupKey::NAME_BYTES],
    },
    /// The end of the file is missing.
    #[error("{0} is truncated: its end is missing")]
    Truncated(PathBuf),
    /// A byte of the file differs.
    #[error("{path} was changed or damaged at byte {at} or later")]
    Changed {
        path: PathBuf,
        /// First byte of the damaged part.
        at: u64,
    },
    /// The content is authentic, and no version of this program writes it.
    #[error("{path} cannot be restored: {why}")]
    Unfit { path: PathBuf, why: String },
    /// The ledger of the backup is not whole.
    #[error("the ledger in {path} is not whole: {why}")]
    Ledger { path: PathBuf, why: String },
    /// The home is not empty.
    #[error("{0} is not empty")]
    NotEmpty(PathBuf),
    /// There is no master key to open the file with.
    #[error("no master key was found for {0}")]
    NoKey(PathBuf),
    /// The former content of a home remains where it is.
    #[error("cannot put the restored home in the place of {path}: {source}")]
    Swap { path: PathBuf, source: io::Error },
    /// Another backup is being made.
    #[error("another backup of this home is being made")]
    Running,
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot write the backup: {0}")]
    Output(io::Error),
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    #[error(transparent)]
    Key(#[from] keys::Error),
    #[error(transparent)]
    Home(#[from] home::Error),
}

impl Error {
    /// Returns the stable code, for scripts.
    pub fn code(&self) -> &'static str {
        use ironclaw_operator::DenialCode;
        match self {
            Self::Foreign(_) => "backup_foreign",
            Self::Newer { .. } | Self::NewerSchema { .. } => "backup_newer",
            Self::OlderSchema { .. } => "backup_older",
            Self::OtherKey { .. } => "backup_other_key",
            Self::Truncated(_) => "backup_truncated",
            Self::Changed { .. } => "backup_changed",
            Self::Unfit { .. } => "backup_unfit",
            Self::Ledger { .. } => "backup_ledger",
            Self::NotEmpty(_) => "home_not_empty",
            Self::NoKey(_) => "key_missing",
            Self::Swap { .. } => "home_not_replaced",
            Self::Running => DenialCode::BackupRunning.name(),
            Self::Home(home::Error::Running(_)) => "host_running",
            _ if self.is_disk_full() => DenialCode::DiskFull.name(),
            Self::Io { .. } | Self::Output(_) | Self::State(_) | Self::Key(_) | Self::Home(_) => {
                DenialCode::BackupFailed.name()
            }
        }
    }

    /// Returns advice to the operator; may be empty.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Foreign(_) => "name a file that `ironctl backup create` wrote",
            Self::Newer { .. } | Self::NewerSchema { .. } => {
                "restore it with the version of IronClaw that made it, or a later one"
            }
            Self::OlderSchema { .. } => {
                "restore it with an earlier build of IronClaw, start its host once, and make another backup"
            }
            Self::OtherKey { .. } => "name the master key of that time with --key-file",
            Self::Ledger { .. } => "`ironctl audit verify` says whether the ledger of the home has the same fault",
            Self::Truncated(_) | Self::Changed { .. } => "use another copy of this backup, or an earlier backup",
            Self::NotEmpty(_) => "name an empty directory with --home, or replace this home with --replace",
            Self::NoKey(_) => "name your copy of the master key with --key-file",
            Self::Swap { .. } => {
                "if the home has no state.db, put its former content back; restore to another directory with --home"
            }
            Self::Running => "wait for its end, then try again",
            Self::Home(home::Error::Running(_)) => "stop it first: `ironctl down`",
            _ if self.is_disk_full() => {
                "free space there and try again; for `backup verify`, TMPDIR may name another directory"
            }
            Self::Unfit { .. } | Self::Io { .. } | Self::Output(_) | Self::State(_) | Self::Key(_) | Self::Home(_) => {
                ""
            }
        }
    }

    /// Returns whether a full disk is the reason.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } | Self::Output(source) => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::State(error) => backup::is_disk_full(error),
            _ => false,
        }
    }
}
