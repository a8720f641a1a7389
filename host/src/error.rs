//! The failures of the host in one type. A deliberate refusal is a [`crate::refusal::Refusal`].

use crate::gateway::decide;
use crate::inbound::inbox;
use crate::refusal::Denied;
use crate::turns::items::BodyError;

/// The reason that a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A message could not be recorded.
    #[error(transparent)]
    Record(#[from] inbox::Error),
    /// The record could not be read or written.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// A body could not be read, or its key does not open.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// A model endpoint cannot be opened.
    #[error(transparent)]
    Model(#[from] ironclaw_model::Error),
    /// A file of the home.
    #[error(transparent)]
    Home(#[from] ironclaw_state::home::Error),
    /// The actor of the session is gone, because the host is stopping.
    #[error("the host is stopping")]
    Stopping,
}

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Denied> for Denied<Error> {
    fn from(denied: Denied) -> Self {
        denied.widen()
    }
}

impl From<Denied<inbox::Error>> for Denied<Error> {
    fn from(denied: Denied<inbox::Error>) -> Self {
        denied.widen()
    }
}

impl From<Denied<decide::Error>> for Denied<Error> {
    fn from(denied: Denied<decide::Error>) -> Self {
        denied.widen()
    }
}
