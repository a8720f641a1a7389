//! The life of changes: a request of a sandbox or a person is checked and recorded, people decide, an approved change is applied, the
//! sessions that it concerns start again, and the requester gets a notice.
//!
//! Holds no rule of its own, and a restart finds all state in the record. See [`crate::gateway`].

pub(crate) mod at_once;
pub(crate) mod person_removal;
pub(crate) mod skills;

use crate::gateway::decide::{self, DecisionContext, Vote};
use crate::gateway::proposals::{Proposals, notify};
use crate::gateway::store::{self, Row, Submitted};
use crate::gateway::{Proposed, Requester, review_page};
use crate::registry::live_settings::LiveSettings;
use crate::registry::local_network::LookedUp;
use crate::registry::policy::Policy;
use crate::registry::{self, Agent, Person, Role, roles};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{ChangeId, PersonId};
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_judge::provenance::Labels;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::keys::ApprovalRoot;
use ironclaw_state::{ReadTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Notify;

/// A change in the form that a person is shown.
#[derive(Debug, Clone)]
pub struct Shown {
    pub row: Row,
    /// The exact text of the page.
    pub text: String,
    pub digest: Digest,
}

/// The changes of this host: requests, review pages and decisions.
pub struct Changes {
    /// Checks and records requests.
    pub proposals: Arc<Proposals>,
    /// The root of the keys of approvals.
    root: ApprovalRoot,
    bell: Notify,
}

impl Changes {
    /// Makes the changes of a host with these rules.
    pub fn new(proposals: Arc<Proposals>, root: ApprovalRoot) -> Self {
        Self { proposals, root, bell: Notify::new() }
    }

    /// Returns the present rules for decisions, and the other settings that a reload replaces.
    pub fn settings(&self) -> Arc<LiveSettings> {
        self.proposals.settings.now()
    }

    /// Wakes the worker, so that it reads the record.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// Returns the bell of the worker.
    pub fn bell(&self) -> &Notify {
        &self.bell
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.proposals.record
    }

    pub(crate) fn decision_context<'a>(&'a self, settings: &'a LiveSettings) -> DecisionContext<'a> {
        let LiveSettings { policy, host_policy, .. } = settings;
        DecisionContext { policy, host_policy, root: &self.root }
    }

    /// Returns the number of approvals that this change needs.
    pub fn approvals_needed(&self, row: &Row) -> u32 {
        store::rule(row, &self.settings().policy).approvals
    }

    /// Submits a change that a person requests.
    ///
    /// # Errors
    /// Refuses a person without the role for it, a payload that does not fit its kind, and a change that fails a check.
    pub async fn submit(
        self: &Arc<Self>,
        by: &Person,
        kind: ChangeKind,
        agent: Option<String>,
        payload: Payload,
        reason: String,
    ) -> Result<Submitted, Denied<Error>> {
        check_reason(&reason)?;
        if kind == ChangeKind::Skills {
            let message = "a skill is not installed by a change that a request writes out";
            let refusal = Refusal::new(DenialCode::SkillDirect, message);
            return Err(refusal.hint("name it: `ironctl skill add NAME --agent AGENT`").into());
        }
        let change = Change::parse(kind, &payload)
            .map_err(|error| Refusal::new(DenialCode::PayloadMalformed, error.to_string()))?;
        let looked_up = match by.role.covers(Role::Admin) {
            true => LookedUp::look_up(&change, &self.settings().host_policy).await,
            // The host looks up no name for a person who may not request the change.
            false => None,
        };
        let (changes, by) = (Arc::clone(self), by.clone());
        self.record()
            .state
            .decide(move |tx| {
                // Read again: the role may have been revoked while the request was in flight.
                let by = present(tx, by.id)?;
                let agent = agent.map(|name| registry::named_agent(tx, &by, &name)).transpose()?;
                check_requester(tx, &by, kind, agent.as_ref())?;
                let agent = agent.map(|agent| agent.id);
                looked_up.map_or(Ok(()), |found| found.note(tx)).map_err(Error::from)?;
                let requester = Requester::Person(by.id);
                let proposed = Proposed { change, agent, requester, reason, labels: Labels::NONE };
                changes.proposals.submit(tx, proposed)
            })
            .await
    }

    /// Returns whether this person may approve a change, and for a sentence the people who must approve it.
    ///
    /// # Errors
    /// Refuses an unknown id.
    pub async fn approvers(self: &Arc<Self>, by: &Person, id: ChangeId) -> Result<(bool, String), Denied<Error>> {
        let (changes, by) = (Arc::clone(self), by.clone());
        self.record()
            .state
            .read(move |tx| {
                let (row, settings) = (store::known(tx, id)?, changes.settings());
                let rule = store::rule(&row, &settings.policy);
                let is_other = rule.requester_may_approve || by.id != row.principal();
                let may_approve = is_other && decide::may_decide(tx, &settings.policy, &by, &row)?;
                Ok((may_approve, review_page::approvers(&rule, row.kind)))
            })
            .await
    }

    /// Returns a change in the form for this person.
    ///
    /// # Errors
    /// Refuses an unknown id, and in the same words a change that this person may not see.
    pub async fn show(self: &Arc<Self>, by: &Person, id: ChangeId) -> Result<Shown, Denied<Error>> {
        let (changes, by) = (Arc::clone(self), by.clone());
        self.record()
            .state
            .read(move |tx| {
                let (row, settings) = (store::known(tx, id)?, changes.settings());
                let shown = shown_to(tx, &settings.policy, &by, row)?;
                shown.ok_or_else(|| store::unknown(id).into())
            })
            .await
    }

    /// Records the approval of a person for the page with this digest. `proof` is the id of the token that they used.
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
            let settings = changes.settings();
            let said = decide::approve(tx, &changes.decision_context(&settings), &by, &proof, id, &shown);
            said.map_err(|undecided| undecided.notifying(|row| notify(tx, changes.record(), row)))
        });
        if approve.await? == Vote::Approved {
            failpoint::reach("change_approved");
            self.ring();
        }
        Ok(())
    }

    /// Records the rejection by a person.
    ///
    /// # Errors
    /// Refuses as [`decide::reject`] does.
    pub async fn reject(self: &Arc<Self>, by: &Person, id: ChangeId, reason: String) -> Result<(), Denied<Error>> {
        let (changes, by) = (Arc::clone(self), by.clone());
        let reject = self.record().state.decide(move |tx| {
            let settings = changes.settings();
            match decide::reject(tx, &changes.decision_context(&settings), &by, id, &reason) {
                Ok(row) => Ok(notify(tx, changes.record(), &row)?),
                Err(undecided) => Err(undecided.notifying(|row| notify(tx, changes.record(), row))),
            }
        });
        reject.await?;
        failpoint::reach("change_rejected");
        Ok(())
    }
}

/// Returns a change in the form for this person; `None` if they may not see it.
pub(crate) fn shown_to(
    tx: &ReadTx<'_>,
    policy: &Policy,
    by: &Person,
    row: Row,
) -> Result<Option<Shown>, ironclaw_state::Error> {
    if decide::may_read(tx, policy, by, &row)? {
        let (text, digest) = decide::show(tx, policy, &row)?;
        return Ok(Some(Shown { row, text, digest }));
    }
    if row.principal() != by.id {
        return Ok(None);
    }
    // The principal sees the status. Only people who decide see the present setting and the meaning of the names.
    let text = review_page::status_page(&row);
    let digest = Digest::of(text.as_bytes());
    Ok(Some(Shown { row: Row { before: Value::Null, facts: Value::Null, ..row }, text, digest }))
}

/// Refuses a reason that is too long.
fn check_reason(reason: &str) -> Result<(), Refusal> {
    use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
    if reason.len() <= REASON_BYTES_MAX {
        return Ok(());
    }
    let bound = Bound::new("bytes of a reason", REASON_BYTES_MAX, reason.len(), "write a shorter reason");
    Err(Refusal::over(DenialCode::ReasonTooLong, bound))
}

/// Returns a person as the record has them now.
fn present(tx: &ReadTx<'_>, id: PersonId) -> Result<Person, Denied<Error>> {
    let found = registry::person_by_id(tx, id).map_err(Error::from)?;
    found.ok_or_else(|| Refusal::new(DenialCode::PersonUnknown, "the requester no longer exists").into())
}

/// Refuses a person who may not request a change of this kind. Members may request a schedule of an agent to which they may talk: its runs
/// act on their behalf, and other people decide on it.
fn check_requester(tx: &ReadTx<'_>, by: &Person, kind: ChangeKind, agent: Option<&Agent>) -> Result<(), Denied> {
    let may_request = match (kind, agent) {
        (ChangeKind::Schedule, Some(agent)) => roles::role_for(tx, by, agent)?.may_talk(),
        (_, agent) => decide::deciding_role(tx, by, kind, agent.map(|agent| agent.id))?.covers(Role::Admin),
    };
    if may_request {
        return Ok(());
    }
    let message = format!("a change of kind {kind} cannot be requested by {}", by.name);
    Err(Refusal::new(DenialCode::RoleTooLow, message).hint("ask the agent or an admin to request it").into())
}
