//! Changes by the command of one person: requested, approved and applied in one transaction, if the policy leaves them to this person.
//!
//! They are ordinary changes with the same checks, and no second way to set a value. See [`crate::gateway::changes`].

use super::propose;
use crate::gateway::apply::{self, Applied};
use crate::gateway::decide::proof::Approved;
use crate::gateway::kinds::{self, Prepared};
use crate::gateway::waiting::{self, Ending, Gateway, Status};
use crate::gateway::{Checked, Proposed, Requester, checks, current_settings, decide};
use crate::registry::policy::Rule;
use crate::registry::{self, Agent, Face, Giver, Person, Signer};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{Change, ChangeKind, Settings};
use ironclaw_judge::provenance::Labels;
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::waiting::changes;
use std::sync::Arc;

/// Adds to a refusal to remove an agent that its conversations are erased.
pub(crate) fn mention_erased_conversations(refusal: Refusal) -> Refusal {
    Refusal { message: format!("{}; the conversations that the agent had are erased", refusal.message), ..refusal }
}

impl Gateway {
    /// Requests, approves and applies a change of settings. Does nothing if the settings already have these values.
    ///
    /// # Errors
    /// Refuses if the policy requires more than this person, or if a check fails. The caller then rolls back with
    /// [`ironclaw_state::State::write`], because a part may already be written.
    pub fn apply_at_once(
        &self,
        tx: &mut WriteTx<'_>,
        by: &Giver,
        agent: Option<&Agent>,
        wanted: Settings,
    ) -> Result<(), Denied<Error>> {
        // Read again: the role may have been revoked while the request was in flight.
        let Some(person) = registry::person_by_id(tx, by.person)? else {
            return Err(Refusal::new(DenialCode::PersonUnknown, "the requester no longer exists").into());
        };
        let proposed = Proposed {
            change: Change::Settings(wanted.clone()),
            agent: agent.map(|agent| agent.id),
            requester: Requester::Person(person.id),
            reason: String::new(),
            labels: Labels::NONE,
        };
        let settings = self.now();
        let checked = match checks::check(tx, &settings.host_policy, proposed) {
            Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ChangeEmpty => return Ok(()),
            checked => checked?,
        };
        let Checked { proposed, standing } = &checked;
        let rule = kinds::rule(&settings.policy, &proposed.change, &standing.before, &standing.facts);
        alone(&rule, &person, agent, wanted)?;
        let id = propose::record(tx, self, checked, false)?.id;
        let of = waiting::decide::known(tx, id.into())?;
        let shown = self.kind(of.id).show(tx, self, &of)?.digest;
        let signer = Signer { person, token: by.token.clone(), face: Face::Program };
        waiting::decide::approve(tx, self, &signer, of.id, &shown)?;
        let approved = decide::use_approvals(tx, self, id)?;
        finish(tx, self, &approved, &Prepared::Nothing)
    }

    /// Sets settings of an agent in a transaction of its own.
    ///
    /// # Errors
    /// Refuses as [`Self::apply_at_once`] does.
    pub async fn set_at_once(self: &Arc<Self>, by: Giver, agent: Agent, wanted: Settings) -> Result<(), Denied<Error>> {
        let all = Arc::clone(self);
        // `write` and not `decide`, because a refusal must be rolled back.
        self.record.state.write(move |tx| all.apply_at_once(tx, &by, Some(&agent), wanted)).await
    }

    /// Checks that the policy leaves settings to this person alone.
    ///
    /// # Errors
    /// Refuses as [`Self::apply_at_once`] does.
    pub async fn may_at_once(
        self: &Arc<Self>,
        by: PersonId,
        agent: Agent,
        wanted: Settings,
    ) -> Result<(), Denied<Error>> {
        let all = Arc::clone(self);
        let judge = move |tx: &ReadTx<'_>| {
            let Some(person) = registry::person_by_id(tx, by)? else {
                return Err(Refusal::new(DenialCode::PersonUnknown, "the requester no longer exists").into());
            };
            let change = Change::Settings(wanted.clone());
            let settings = all.now();
            let rule = current_settings::rule_now(tx, &settings.policy, &settings.host_policy, &change, &agent)?;
            Ok(alone(&rule, &person, Some(&agent), wanted)?)
        };
        self.record.state.read(judge).await
    }
}

/// Applies an approved change, ends it with its outcome, and withdraws the others that are stale now.
///
/// # Errors
/// Refuses a change that can no longer be applied. The caller then rolls back, because a part may already be written.
pub(crate) fn finish(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    approved: &Approved,
    prepared: &Prepared,
) -> Result<(), Denied<Error>> {
    let Applied { outcome } = apply::apply(tx, approved, prepared)?;
    waiting::end_active(tx, all, approved.id().into(), &Ending { status: Status::Done, by: None, outcome: &outcome })?;
    match changes::find(tx, approved.id())? {
        Some(row) => Ok(decide::supersede(tx, all, &row)?),
        None => Ok(()),
    }
}

/// Checks that the rule leaves settings to this person alone.
///
/// # Errors
/// Refuses with the command that submits them as a change.
fn alone(rule: &Rule, person: &Person, agent: Option<&Agent>, wanted: Settings) -> Result<(), Refusal> {
    decide::check_direct(rule, ChangeKind::Settings, person).map(drop).map_err(|refusal| {
        let of = agent.map_or_else(String::new, |agent| format!(" --agent {}", agent.name));
        let payload = canonical::to_string(&Change::Settings(wanted).payload());
        refusal.hint(format!(
            "propose it as a change, and other people decide: `ironctl change submit --kind settings{of} --payload '{payload}' --reason WHY`"
        ))
    })
}
