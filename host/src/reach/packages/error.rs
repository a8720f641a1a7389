//! The reason that a layer of software was not built, for the person who asked.

use ironclaw_jail::launcher;
use ironclaw_operator::DenialCode;
use ironclaw_state::home;
use ironclaw_store::refusal::Refusal;
use std::io;
use std::path::{Path, PathBuf};

/// The reason that a layer was not built. The former layer of the agent is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A deliberate refusal: a bad name, a missing or failed client, or a package with content that no layer may hold.
    #[error("{0}")]
    Refused(Refusal),
    /// The client's jail could not be made.
    #[error(transparent)]
    Launch(#[from] launcher::Error),
    /// The directories of the agent cannot be used.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The system reports an error.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Error {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Converts it into a refusal for the person who asked: a breakdown is the host's fault. It names no path of the home.
    pub fn refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Launch(error) => {
                let remedy = error.remedy();
                tracing::error!(%error, "the jail of a package client could not be made");
                let message = "the jail of a package client could not be made; the host's log has the reason";
                Refusal::new(DenialCode::PackagesJail, message).hint(remedy)
            }
            Self::Home(error) => {
                let cause = match &error {
                    home::Error::Io { source, .. } => source.to_string(),
                    _ => "the directories of the agent cannot be used".to_owned(),
                };
                failed(&error, &cause)
            }
            Self::Io { ref source, .. } => failed(&self, &source.to_string()),
        }
    }
}

/// Logs a failure completely, and returns it for the person who asked, without a path.
fn failed(error: &dyn std::error::Error, cause: &str) -> Refusal {
    tracing::error!(%error, "packages could not be fetched or stored");
    let message = format!("packages could not be fetched or stored: {cause}");
    Refusal::new(DenialCode::PackagesFailed, message).hint("the host's log names the file")
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Returns the refusal of a package with content that no layer may hold.
pub(super) fn unfit(message: String) -> Error {
    Refusal::new(DenialCode::PackagesUnfit, message).hint("ask for another package").into()
}
