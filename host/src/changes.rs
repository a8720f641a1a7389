//! Changes from the asking to the telling: what a sandbox or a person asks for is checked and written down, people decide, what is
//! approved is applied, the sessions that it concerns begin anew, and whoever asked hears of it.
//!
//! Holds no rule of its own; a restart finds everything in the record. Next: `gateway`.

pub(crate) mod at_once;
mod worker;

pub use worker::ChangeWorker;

use crate::error::Error;
use crate::gateway::decide::{self, DecisionContext, Said};
use crate::gateway::policy::Policy;
use crate::gateway::proposals::{Proposals, notify};
use crate::gateway::store::{self, Row, Submitted};
use crate::gateway::{Proposed, Requester};
use crate::inbound::inbox;
use crate::record::Record;
use crate::refusal::{Decide, Denied, Refusal};
use crate::registry::{self, Person};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_state::failpoint;
use ironclaw_state::keys::ApprovalRoot;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Notify;

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

/// The changes of this host: asked for, shown, decided.
pub struct Changes {
    /// Checks what is asked for.
    pub proposals: Arc<Proposals>,
    /// Source of the keys of approvals.
    root: ApprovalRoot,
    /// Wakes the worker.
    bell: Notify,
}

impl Changes {
    /// The changes of a host with these rules.
    pub fn new(proposals: Arc<Proposals>, root: ApprovalRoot) -> Self {
        Self { proposals, root, bell: Notify::new() }
    }

    /// Returns who may decide about what.
    pub fn policy(&self) -> &Policy {
        &self.proposals.policy
    }

    /// Has the worker look at the record.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    pub(super) fn record(&self) -> &Arc<Record> {
        &self.proposals.record
    }

    pub(super) fn bench(&self) -> DecisionContext<'_> {
        let Proposals { policy, grounds, .. } = &*self.proposals;
        DecisionContext { policy, grounds, root: &self.root }
    }

    /// Returns how many people have to say yes to this change.
    pub fn approvals_needed(&self, row: &Row) -> u32 {
        row.rule(self.policy()).approvals
    }

    /// A person asks for a change.
    ///
    /// # Errors
    /// Refuses a person who has no role for it, a payload that is not of its kind, and what does not pass a check.
    pub async fn submit(
        self: &Arc<Self>,
        by: &Person,
        kind: ChangeKind,
        agent: Option<String>,
        payload: Payload,
        reason: String,
    ) -> Result<Submitted, Denied<Error>> {
        use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
        if reason.len() > REASON_BYTES_MAX {
            let message = format!("a reason has at most {REASON_BYTES_MAX} bytes");
            return Err(Refusal::new(DenialCode::ReasonTooLong, message).into());
        }
        let change = Change::parse(kind, &payload)
            .map_err(|error| Refusal::new(DenialCode::PayloadMalformed, error.to_string()))?;
        let (changes, by) = (Arc::clone(self), by.clone());
        self.record()
            .state
            .decide(move |tx| {
                let agent = agent.map(|name| registry::named_agent(tx, &name)).transpose()?;
                // As it stands now: a role may have been taken while the request was on its way.
                let Some(by) = registry::person_by_id(tx, by.id)? else {
                    return Err(Refusal::new(DenialCode::PersonUnknown, "the person who asks no longer exists").into());
                };
                let agent = agent.map(|agent| agent.id);
                let role = decide::standing(tx, &by, kind, agent)?;
                if !role.covers(registry::Role::Admin) {
                    let message = format!("a change of kind {kind} is not {}'s to ask for", by.name);
                    let refusal = Refusal::new(DenialCode::RoleTooLow, message);
                    return Err(refusal.hint("ask the agent for it, or an admin").into());
                }
                let requester = Requester::Person(by.id);
                let proposed = Proposed { change, agent, requester, reason, labels: Vec::new() };
                changes.proposals.submit(tx, proposed).map_err(Denied::widen)
            })
            .await
    }

    /// Returns a change as this person is shown it.
    ///
    /// # Errors
    /// Refuses an id that no change has, and a change that is not theirs to see.
    pub async fn show(self: &Arc<Self>, by: &Person, id: ChangeId) -> Result<Shown, Denied<Error>> {
        let (changes, by) = (Arc::clone(self), by.clone());
        self.record()
            .state
            .read(move |tx| {
                let row = store::known(tx, id)?;
                let whole =
                    by.role.covers(registry::Role::Admin) || decide::may_decide(tx, changes.policy(), &by, &row)?;
                if !whole && row.principal() != by.id {
                    let message = format!("{id} is not {}'s to see", by.name);
                    return Err(Refusal::new(DenialCode::NotYoursToDecide, message).into());
                }
                if whole {
                    let (text, digest) = decide::show(tx, changes.policy(), &row)?;
                    return Ok(Shown { row, text, digest });
                }
                // On whose behalf it was asked for hears how it stands; what its names mean is for whoever decides.
                let text = format!(
                    "{} ({}) is {}. Somebody else decides about it, and is shown what it would do.\n",
                    row.id,
                    row.kind,
                    row.status.name()
                );
                let digest = Digest::of(text.as_bytes());
                Ok(Shown { row: Row { before: Value::Null, facts: Value::Null, ..row }, text, digest })
            })
            .await
    }

    /// Records that a person says yes to the text of this digest. `proof` names the token that they came with.
    ///
    /// # Errors
    /// Refuses as [`decide::approve`] does.
    pub async fn approve(
        self: &Arc<Self>,
        by: &Person,
        proof: String,
        id: ChangeId,
        shown: Digest,
    ) -> Result<(), Denied<Error>> {
        let (changes, by) = (Arc::clone(self), by.clone());
        let approve = self.record().state.decide(move |tx| {
            let said = decide::approve(tx, &changes.bench(), &by, &proof, id, &shown);
            said.map_err(|undecided| undecided.told(|row| Ok::<_, Error>(notify(tx, changes.record(), row)?)))
        });
        if approve.await? == Said::Approved {
            failpoint::reach("change_approved");
            self.ring();
        }
        Ok(())
    }

    /// Records that a person says no.
    ///
    /// # Errors
    /// Refuses as [`decide::reject`] does.
    pub async fn reject(self: &Arc<Self>, by: &Person, id: ChangeId, reason: String) -> Result<(), Denied<Error>> {
        let (changes, by) = (Arc::clone(self), by.clone());
        let reject =
            self.record().state.decide(move |tx| match decide::reject(tx, &changes.bench(), &by, id, &reason) {
                Ok(row) => Ok(notify(tx, changes.record(), &row)?),
                Err(undecided) => Err(undecided.told(|row| Ok::<_, Error>(notify(tx, changes.record(), row)?))),
            });
        reject.await?;
        failpoint::reach("change_rejected");
        Ok(())
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
