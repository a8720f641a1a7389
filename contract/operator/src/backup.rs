//! Backups of a home: the reports of their creation, verification and restore.
//!
//! Plain data. `host/src/upkeep/backup` writes and reads the files; `docs/decisions/0049-backups-are-one-encrypted-stream.md` has their format.

use super::audit::LedgerWhole;
use serde::{Deserialize, Serialize};

/// Trailer of the answer of `POST /v1/backup`: a [`Backup`] as JSON. Its absence means that the answer is incomplete.
pub const BACKUP_TRAILER: &str = "ironclaw-backup";

/// A backup, as its creator reports it and its reader finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Backup {
    /// Id of the backup, 32 hex characters.
    pub id: String,
    /// The time of the creation, RFC 3339.
    pub created_at: String,
    /// Fingerprint of the master key that opens the backup.
    pub key: String,
    /// Generation of the record.
    pub generation: u64,
    /// Version of the schema of the record.
    pub schema: u32,
    /// Number of entries in the ledger.
    pub entries: u64,
    /// Number of files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Number of files that changed while they were read. Each has the size that it had at first; a missing end is zeros.
    pub changed: u64,
    /// Number of files and directories of workspaces that are not in the backup: special files, unreadable files, and files over the
    /// quota of the workspace.
    pub skipped: u64,
}

/// The result of a verification, which restores the backup to a temporary directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupVerified {
    /// The backup.
    pub backup: Backup,
    /// Its ledger.
    pub ledger: LedgerWhole,
}

/// The answer of `POST /v1/backups/{id}/verified`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NotedBackup {
    /// The id of the backup that an owner verified.
    pub backup: String,
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRestored {
    /// The home.
    pub home: String,
    /// The backup.
    pub backup: Backup,
    /// The directory with the former content of the home; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<String>,
    /// Number of heads that were put into the directory of heads.
    pub heads: u64,
    /// Steps for the operator.
    pub todo: Vec<String>,
}
