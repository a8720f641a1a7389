//! The reason that a decision was not recorded, and its conversions.
//!
//! Decides nothing. See [`super`].

use super::super::store::Row;
use ironclaw_state::keys;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};

/// The reason that the decision of a person was not recorded.
#[derive(Debug)]
pub enum Undecided {
    /// Refused; the change is unchanged.
    Refused(Refusal),
    /// Refused, and the refusal ended the change. The caller notifies its requester.
    Ended(Refusal, Box<Row>),
    Failed(Error),
}

impl Undecided {
    /// Notifies the requester with `notify` if the change ended.
    pub fn notifying<E: From<Error>>(self, notify: impl FnOnce(&Row) -> Result<(), E>) -> Denied<E> {
        match self {
            Self::Refused(refusal) => Denied::Refused(refusal),
            Self::Ended(refusal, row) => Denied::Refused(refusal).noted(|_| notify(&row)),
            Self::Failed(error) => Denied::Failed(error.into()),
        }
    }
}

impl<E: Into<Error>> From<Denied<E>> for Undecided {
    fn from(denied: Denied<E>) -> Self {
        match denied {
            Denied::Refused(refusal) => Self::Refused(refusal),
            Denied::Failed(error) => Self::Failed(error.into()),
        }
    }
}

impl From<Refusal> for Undecided {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Undecided {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ironclaw_state::Error> for Undecided {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<keys::Error> for Undecided {
    fn from(error: keys::Error) -> Self {
        Self::Failed(error.into())
    }
}
