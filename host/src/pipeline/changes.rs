//! Stand-in: what an operator may do with changes.

use super::{Error, Pipeline};
use crate::gateway::store::{Row, Status};
use crate::refusal::Refusal;
use crate::registry::Person;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::seam::change::{ChangeKind, Payload};

/// A change that waits now.
#[derive(Debug)]
pub struct Submitted {
    /// Its id.
    pub id: ChangeId,
    /// Where it stands.
    pub status: Status,
    /// Whether it waited already.
    pub again: bool,
}

/// A change with what is shown of it.
#[derive(Debug)]
pub struct Shown {
    /// The change.
    pub row: Row,
    /// What is shown.
    pub text: String,
    /// Of the text.
    pub digest: Digest,
}

fn none<T>(id: ChangeId) -> Result<Result<T, Refusal>, Error> {
    Ok(Err(Refusal::operator("change_unknown", format!("there is no change {id}"))))
}

impl Pipeline {
    /// How many people have to say yes to a change of this kind.
    pub fn approvals_needed(&self, kind: ChangeKind) -> u32 {
        crate::gateway::policy::Policy::default().rule(kind).approvals
    }

    /// Submits one.
    ///
    /// # Errors
    /// Those of the record.
    pub async fn submit(
        &self,
        _by: &Person,
        _kind: ChangeKind,
        _agent: Option<String>,
        _payload: Payload,
        _reason: String,
    ) -> Result<Result<Submitted, Refusal>, Error> {
        Ok(Err(Refusal::host("not_yet", "changes are not taken yet")))
    }

    /// Shows one.
    ///
    /// # Errors
    /// Those of the record.
    pub async fn show(&self, _by: &Person, id: ChangeId) -> Result<Result<Shown, Refusal>, Error> {
        none(id)
    }

    /// Approves one.
    ///
    /// # Errors
    /// Those of the record.
    pub async fn approve(
        &self,
        _by: &Person,
        _proof: String,
        id: ChangeId,
        _shown: Digest,
    ) -> Result<Result<Row, Refusal>, Error> {
        none(id)
    }

    /// Rejects one.
    ///
    /// # Errors
    /// Those of the record.
    pub async fn reject(&self, _by: &Person, id: ChangeId, _reason: String) -> Result<Result<Row, Refusal>, Error> {
        none(id)
    }
}
