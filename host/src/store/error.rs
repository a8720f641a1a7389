//! The failures of the host in one type. A deliberate refusal is a [`crate::store::refusal::Refusal`].

use crate::store::refusal::Denied;
use ironclaw_state::keys;

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

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<keys::Error> for Denied<Error> {
    fn from(error: keys::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Denied> for Denied<Error> {
    fn from(denied: Denied) -> Self {
        denied.widen()
    }
}
