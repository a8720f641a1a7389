//! The failures of the host in one type. A deliberate refusal is a [`crate::refusal::Refusal`].

use crate::refusal::Denied;
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

impl Error {
    /// The hint for a record that cannot be written.
    pub const UNWRITTEN_HINT: &str = "make room in the file system of the home (disk space, inodes, quota), or end the other process \
         that holds the record open; `ironctl logs` has the cause";

    /// Returns whether the host is ending, so that its record takes no more work.
    pub const fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping | Self::State(ironclaw_state::Error::Closed))
    }

    /// Returns whether something in the record cannot be read: a damaged value, or one under another key.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Key(_) | Self::State(ironclaw_state::Error::Stored(_)))
    }

    /// Returns whether a change was rolled back because the record cannot be written now. This is temporary, and no session's failure.
    pub fn is_unwritten(&self) -> bool {
        matches!(self, Self::State(ironclaw_state::Error::Unwritten(_)))
    }
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
