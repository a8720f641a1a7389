//! Changes from the asking to the telling: what a sandbox or a person asks for is checked and written down, people decide, what is
//! approved is applied, the sessions that it concerns begin anew, and whoever asked hears of it.
//!
//! Holds no rule of its own; a restart finds everything in the record. Next: `gateway`, `apply`.

pub(super) mod submit;
mod worker;

pub use worker::Changes;

use super::{Error, Pipeline};
use crate::failpoint;
use crate::gateway::decide::{self, Said};
use crate::gateway::store::{self, Row, Submitted};
use crate::gateway::{Judged, Proposed, Requester, settings};
use crate::inbox;
use crate::refusal::Refusal;
use crate::registry::{self, Person};
use crate::state::Denied;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use serde_json::Value;
use std::sync::Arc;
use submit::{submit, tell};

/// A change as a person is shown it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The change.
    pub row: Row,
    /// The exact text.
    pub text: String,
    /// Its digest.
    pub digest: Digest,
}

impl Pipeline {
    /// So many people have to say yes to this change.
    pub fn approvals_needed(&self, row: &Row) -> u32 {
        settings::rule_of(&self.core.policy, row).approvals
    }

    /// A person asks for a change.
    ///
    /// # Errors
    /// The inner error refuses who has no role for it, a payload that is not of its kind, and whatever a check does not pass.
    pub async fn submit(
        &self,
        by: &Person,
        kind: ChangeKind,
        agent: Option<String>,
        payload: Payload,
        reason: String,
    ) -> Result<Judged<Submitted>, Error> {
        use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
        if reason.len() > REASON_BYTES_MAX {
            let message = format!("a reason has at most {REASON_BYTES_MAX} bytes");
            return Ok(Err(Refusal::new(DenialCode::ReasonTooLong, message)));
        }
        let change = match Change::parse(kind, &payload) {
            Ok(change) => change,
            Err(error) => return Ok(Err(Refusal::new(DenialCode::PayloadMalformed, error.to_string()))),
        };
        let (core, by) = (Arc::clone(&self.core), by.clone());
        self.core
            .state
            .write(move |tx| {
                let agent = match agent.map(|name| registry::named_agent(tx, &name)).transpose() {
                    Ok(agent) => agent,
                    Err(Denied::Refused(refusal)) => return Ok::<_, Error>(Err(refusal)),
                    Err(Denied::Failed(error)) => return Err(error.into()),
                };
                // As it stands now: a role may have been taken while the request was on its way.
                let Some(by) = registry::person_by_id(tx, by.id)? else {
                    return Ok(Err(Refusal::new(DenialCode::PersonUnknown, "whoever asks is nobody here any more")));
                };
                let agent = agent.map(|agent| agent.id);
                let role = decide::standing(tx, &by, kind, agent)?;
                if !role.covers(registry::Role::Admin) {
                    let message = format!("a change of kind {kind} is not {}'s to ask for", by.name);
                    let refusal = Refusal::new(DenialCode::RoleTooLow, message);
                    return Ok(Err(refusal.hint("ask the agent for it, or an admin")));
                }
                let requester = Requester::Person(by.id);
                submit(tx, &core, Proposed { change, agent, requester, reason, labels: Vec::new() })
            })
            .await
    }

    /// A change as this person is shown it.
    ///
    /// # Errors
    /// The inner error: there is none, or it is not theirs to see.
    pub async fn show(&self, by: &Person, id: ChangeId) -> Result<Judged<Shown>, Error> {
        let (core, by) = (Arc::clone(&self.core), by.clone());
        self.core
            .state
            .read(move |tx| {
                let row = match store::known(tx, id)? {
                    Ok(row) => row,
                    Err(refusal) => return Ok::<_, Error>(Err(refusal)),
                };
                let whole = by.role.covers(registry::Role::Admin) || decide::may_decide(tx, &core.policy, &by, &row)?;
                if !whole && row.principal() != by.id {
                    let message = format!("{id} is not {}'s to see", by.name);
                    return Ok(Err(Refusal::new(DenialCode::NotYoursToDecide, message)));
                }
                if whole {
                    let (text, digest) = decide::show(tx, &core.policy, &row)?;
                    return Ok(Ok(Shown { row, text, digest }));
                }
                // On whose behalf it was asked for hears how it stands; what its names mean is for whoever decides.
                let text = format!(
                    "{} ({}) is {}. Somebody else decides about it, and is shown what it would do.\n",
                    row.id,
                    row.kind,
                    row.status.name()
                );
                let digest = Digest::of(text.as_bytes());
                Ok(Ok(Shown { row: Row { before: Value::Null, facts: Value::Null, ..row }, text, digest }))
            })
            .await
    }

    /// A person says yes to the text of this digest. `proof` names the token that they came with.
    ///
    /// # Errors
    /// The inner error, see [`decide::approve`].
    pub async fn approve(&self, by: &Person, proof: String, id: ChangeId, shown: Digest) -> Result<Judged<()>, Error> {
        let (core, by) = (Arc::clone(&self.core), by.clone());
        let approved = self
            .core
            .state
            .write(move |tx| {
                let (said, ended) = decide::approve(tx, &core.bench(), &by, &proof, id, &shown)?;
                if let Some(row) = ended {
                    tell(tx, &core, &row)?;
                }
                Ok::<_, Error>(said)
            })
            .await?;
        if approved == Ok(Said::Approved) {
            failpoint::reach("change_approved");
            self.core.changes.ring();
        }
        Ok(approved.map(drop))
    }

    /// A person says no.
    ///
    /// # Errors
    /// The inner error, see [`decide::reject`].
    pub async fn reject(&self, by: &Person, id: ChangeId, reason: String) -> Result<Judged<()>, Error> {
        let (core, by) = (Arc::clone(&self.core), by.clone());
        let rejected = self
            .core
            .state
            .write(move |tx| {
                let (rejected, ended) = decide::reject(tx, &core.bench(), &by, id, &reason)?;
                if let Some(row) = ended {
                    tell(tx, &core, &row)?;
                }
                Ok::<_, Error>(rejected)
            })
            .await?;
        failpoint::reach("change_rejected");
        Ok(rejected)
    }
}

impl From<decide::Error> for Error {
    fn from(error: decide::Error) -> Self {
        match error {
            decide::Error::State(error) => Self::State(error),
            decide::Error::Key(error) => Self::Record(inbox::Error::Key(error)),
        }
    }
}
