//! Changes as a kind of what waits: proposed by a sandbox or a person, checked and recorded, decided by people, applied, and the sessions
//! that they concern start again.
//!
//! See [`crate::gateway::checks`] for the checks, [`crate::gateway::decide`] for the rules of a decision, and [`crate::gateway::kinds`] for the
//! kinds of change.

pub(crate) mod at_once;
pub(crate) mod person_removal;
mod propose;
pub(crate) mod skills;
pub(in crate::gateway) mod words;

#[cfg(test)]
pub(super) use propose::PENDING_OF_PERSON_MAX;
pub use propose::Submitted;

use crate::gateway::waiting::decide::{check_reason, present};
use crate::gateway::waiting::{self, Ballot, Ending, Gateway, Kind, Rights, Shown, Sight, Status, Waiting};
use crate::gateway::{Proposed, Requester, decide, kinds, review_page};
use crate::registry::local_network::LookedUp;
use crate::registry::{self, Agent, Person, Role, roles};
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_judge::provenance::Labels;
use ironclaw_operator::{ChangeDetails, DenialCode, Details};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::tables::waiting::changes::{self as table, Own, Row};
use ironclaw_store::times::HOUR_MS;
use ironclaw_text::visible;
use std::sync::Arc;

/// Changes as a kind of what waits.
pub struct Changes;

/// Returns the row of a change that waits.
fn row(tx: &ReadTx<'_>, of: &Waiting) -> Result<Row, ironclaw_state::Error> {
    let found = table::find(tx, of.id)?;
    found.ok_or_else(|| ironclaw_state::Error::Stored(format!("{} is no change", of.id)))
}

impl Kind for Changes {
    fn rights(&self, tx: &ReadTx<'_>, all: &Gateway, by: &Person, of: &Waiting) -> Result<Rights, Error> {
        let decides = decide::may_decide(tx, &all.now().policy, by, &row(tx, of)?)?;
        let is_own = of.principal == by.id;
        let sight = match decides || by.role.covers(Role::Admin) {
            true => Some(Sight::Whole),
            // The person who asked for it sees its status.
            false => is_own.then_some(Sight::Status),
        };
        // A withdrawal permits nothing.
        Ok(Rights { sight, decides, rejects: decides || is_own })
    }

    fn show(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<Shown, Error> {
        let row = row(tx, of)?;
        let text = decide::page(tx, &all.now().policy, &row)?;
        let Own { payload, before, reason, .. } = row.own;
        let details = Details::Change(ChangeDetails { before, after: payload.into(), reason });
        let agent = row.agent.map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten();
        let agent = agent.map_or_else(String::new, |agent| format!(" of agent {}", visible::name(&agent.name)));
        let effect = format!("This host makes a change of kind {}{agent}.", row.kind);
        Ok(Shown::new(text, effect, Some(details)))
    }

    fn why_stale(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<Option<String>, Error> {
        Ok(decide::why_stale(tx, &all.now().host_policy, &row(tx, of)?)?)
    }

    fn is_grave(&self, _: &ReadTx<'_>, _: &Waiting) -> Result<bool, Error> {
        Ok(true)
    }

    fn deciders(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<String, Error> {
        let row = row(tx, of)?;
        Ok(review_page::approvers(&decide::rule(&row, &all.now().policy), row.kind))
    }

    fn approvals_needed(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<u32, Error> {
        Ok(decide::rule(&row(tx, of)?, &all.now().policy).approvals)
    }

    fn ballot(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting, shown: &Shown) -> Result<Ballot, Denied<Error>> {
        let row = row(tx, of)?;
        let rule = decide::rule(&row, &all.now().policy);
        Ok(Ballot {
            subject: decide::subject(&row, &rule, shown.digest),
            asked: (&row).into(),
            own_counts: rule.requester_may_approve,
            has_own_reasons: false,
            valid_until: tx.wall() + i64::from(rule.expires_hours) * HOUR_MS,
            use_until: None,
            rule,
        })
    }

    fn end(&self, tx: &mut WriteTx<'_>, all: &Gateway, of: &Waiting, ending: &Ending<'_>) -> Result<(), Error> {
        let by = of.decided_by.map(|by| registry::person_name(tx, by)).transpose()?;
        let by = by.map_or_else(String::new, |name| format!(" by {name}"));
        let what = match ending.status {
            Status::Done => format!("was approved{by} and is applied: {}", ending.outcome),
            // The reason may be a stranger's words, or name paths of the host. Only people who see the change may read it.
            Status::Failed => format!(
                "was approved{by} and could not be applied; nothing was changed. A person can read the reason: `ironctl inbox show {}`",
                of.id
            ),
            _ => waiting::outcome(tx, of, ending)?,
        };
        let text = format!("The change {} ({}) that you asked for {what}.", of.id, of.subject);
        waiting::inform(tx, &all.record, of, &text).map(drop)
    }
}

impl Gateway {
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
            true => LookedUp::look_up(&change, &self.now().host_policy).await,
            // The host looks up no name for a person who may not request the change.
            false => None,
        };
        self.look_at_declared(by, agent.clone(), &change).await?;
        let (all, by) = (Arc::clone(self), by.clone());
        let submit = self.record.state.decide(move |tx| {
            let by = present(tx, &by)?;
            let agent = agent.map(|name| registry::named_agent(tx, &by, &name)).transpose()?;
            check_requester(tx, &by, kind, agent.as_ref())?;
            let agent = agent.map(|agent| agent.id);
            looked_up.map_or(Ok(()), |found| found.note(tx)).map_err(Error::from)?;
            let requester = Requester::Person(by.id);
            all.propose(tx, Proposed { change, agent, requester, reason, labels: Labels::NONE })
        });
        let submitted = submit.await;
        self.bells.ends.notify_one();
        submitted
    }

    /// Looks at the directories that a change declares the person's, before the transaction that records the change.
    ///
    /// # Errors
    /// Refuses a directory with text of other authors, and records the refusal in the ledger. Leaves each other refusal to the check of the
    /// change.
    async fn look_at_declared(
        self: &Arc<Self>,
        by: &Person,
        agent: Option<String>,
        change: &Change,
    ) -> Result<(), Denied<Error>> {
        let Change::Mounts(wanted) = change else { return Ok(()) };
        let requester = Requester::Person(by.id);
        let (all, by, wanted) = (Arc::clone(self), by.clone(), wanted.clone());
        let read = self.record.state.read(move |tx| {
            let agent = agent.map(|name| registry::named_agent(tx, &by, &name)).transpose();
            let Ok(Some(agent)) = agent else { return Ok(Vec::new()) };
            if check_requester(tx, &by, ChangeKind::Mounts, Some(&agent)).is_err() {
                return Ok(Vec::new());
            }
            kinds::to_look_at(tx, &all.now().host_policy, &agent, wanted)
        });
        let sources: Vec<String> = read.await.map_err(|error: ironclaw_state::Error| Error::from(error))?;
        if sources.is_empty() {
            return Ok(());
        }
        let looked = tokio::task::spawn_blocking(move || kinds::look_at(&sources)).await.expect("no panic");
        let Err(refusal) = looked else { return Ok(()) };
        let refuse = move |tx: &mut WriteTx<'_>| {
            propose::note_refusal(tx, ChangeKind::Mounts, &requester, &refusal).map_err(Error::from)?;
            Err(Denied::Refused(refusal))
        };
        self.record.state.decide(refuse).await
    }

    /// Returns whether this person may approve a change, and for a sentence the people who must approve it.
    ///
    /// # Errors
    /// Refuses an unknown id.
    pub async fn approvers(self: &Arc<Self>, by: &Person, id: ChangeId) -> Result<(bool, String), Denied<Error>> {
        let (all, by) = (Arc::clone(self), by.clone());
        let read = self.record.state.read(move |tx| {
            let (of, rights) = waiting::decide::seen(tx, &all, &by, id.into())?;
            let rule = decide::rule(&row(tx, &of)?, &all.now().policy);
            let is_other = rule.requester_may_approve || by.id != of.principal;
            Ok((is_other && rights.decides, Changes.deciders(tx, &all, &of)?))
        });
        read.await
    }
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
