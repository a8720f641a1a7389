//! The bounds of the kept versions of a workspace, and the reasons to leave a file out.

use crate::registry::quota;
use ironclaw_operator::FILE_PUT_BYTES_MAX;
use std::time::Duration;

pub use ironclaw_operator::NoCopy as Reason;

/// Bytes of one file. A larger one is left out.
pub const FILE_BYTES_MAX: u64 = FILE_PUT_BYTES_MAX as u64;

/// Bytes of all copies of a session.
pub const SESSION_BYTES_MAX: u64 = 256 << 20;

/// Versions of a session.
pub const VERSIONS_MAX: u64 = 20_000;

/// Versions of one file that the workspace no longer has.
pub const VERSIONS_OF_FILE_MAX: usize = 10;

/// Time of one run. It is a part of the time of a turn.
pub const COPY_TIME_MAX: Duration = Duration::from_secs(3);

/// Files that the directory of the copies has besides them, with the directory itself.
const OWN_FILES: u64 = 8;

/// Bytes of these files in a small workspace.
const OWN_BYTES: u64 = 64 << 10;

/// The part of the free space of a workspace that copies may take, as a divisor: copies never take a session over its quota.
const FREE_SPACE_SHARE: u64 = 2;

/// The bounds of the copies of one session.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub file_bytes: u64,
    /// Bytes of all copies.
    pub session_bytes: u64,
    /// Versions of the session.
    pub versions: u64,
    /// Past versions of one file.
    pub of_file: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: FILE_BYTES_MAX,
            session_bytes: SESSION_BYTES_MAX,
            versions: VERSIONS_MAX,
            of_file: VERSIONS_OF_FILE_MAX,
        }
    }
}

impl Limits {
    /// Returns these bounds for a workspace that takes this many bytes and files of its quota.
    pub fn beside(self, quota: &quota::Config, bytes: u64, files: u64) -> Self {
        let free_bytes = quota.workspace_bytes.saturating_sub(bytes.saturating_add(OWN_BYTES));
        let free_files = quota.workspace_files.saturating_sub(files.saturating_add(OWN_FILES));
        Self {
            session_bytes: self.session_bytes.min(free_bytes / FREE_SPACE_SHARE),
            versions: self.versions.min(free_files / FREE_SPACE_SHARE),
            ..self
        }
    }
}
