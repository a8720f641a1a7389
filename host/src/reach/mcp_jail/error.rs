//! The reason why the server of a jail does not run.

use ironclaw_jail::launcher;
use ironclaw_store::refusal::Refusal;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a server does not run. No process of it is left.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A command, variable or directory that no jail of a server takes.
    #[error("{0}")]
    Refused(Refusal),
    /// The jail could not be made.
    #[error(transparent)]
    Launch(#[from] launcher::Error),
    /// The kernel's report differs from the wanted jail, or the server ended before the report.
    #[error("the jail of {name} is not as wanted: {what}")]
    Walls { name: String, what: String },
    /// The system reports an error.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Error {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
