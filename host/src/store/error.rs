//! The failures of the host in one type. A deliberate refusal is a [`crate::store::refusal::Refusal`].

use crate::store::refusal::Denied;
use ironclaw_state::keys;

/// The reason that content is not available.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The record failed.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// The key is wrong, the stored bytes are damaged, or there are no random bytes.
    #[error(transparent)]
    Key(#[from] keys::Error),
}

/// The reason that a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The record could not be read or written.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// A key does not open its content, or there are no random bytes.
    #[error(transparent)]
    Key(#[from] keys::Error),
    /// No session could be made, because each uid of the range belongs to one.
    #[error("all uids of sessions are taken: remove sessions, or widen jail.uid_count")]
    SessionsFull,
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

impl From<ContentError> for Error {
    fn from(error: ContentError) -> Self {
        match error {
            ContentError::State(error) => Self::State(error),
            ContentError::Key(error) => Self::Key(error),
        }
    }
}

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ContentError> for Denied<ContentError> {
    fn from(error: ContentError) -> Self {
        Self::Failed(error)
    }
}

impl From<Denied> for Denied<Error> {
    fn from(denied: Denied) -> Self {
        denied.widen()
    }
}

impl From<Denied> for Denied<ContentError> {
    fn from(denied: Denied) -> Self {
        denied.widen()
    }
}

impl From<Denied<ContentError>> for Denied<Error> {
    fn from(denied: Denied<ContentError>) -> Self {
        denied.widen()
    }
}
