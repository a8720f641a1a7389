//! A failure of the host while it does its work: not a refusal, which [`crate::refusal`] has.

use crate::gateway::decide;
use crate::inbound::inbox;
use crate::refusal::Denied;
use crate::turns::items::BodyError;

/// The reason that the host could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Recording.
    #[error(transparent)]
    Record(#[from] inbox::Error),
    /// The state.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// A body or its key.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// A model endpoint cannot be opened.
    #[error(transparent)]
    Model(#[from] ironclaw_model::Error),
    /// A file of the home.
    #[error(transparent)]
    Home(#[from] ironclaw_state::home::Error),
    /// The session's actor is gone; the daemon is stopping.
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
