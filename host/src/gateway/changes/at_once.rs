//! Changes by the command of one person: requested, approved and applied in one transaction, if the policy leaves them to this person.
//!
//! They are ordinary changes with the same checks, and no second way to set a value. See [`crate::gateway::changes`].

use crate::gateway::apply::{self, Applied};
use crate::gateway::changes::Changes;
use crate::gateway::decide::{self, Vote};
use crate::gateway::kinds::{self, Prepared};
use crate::gateway::proposals::notify;
use crate::gateway::store::{self, Row, Status};
use crate::gateway::{Checked, Proposed, Requester, checks, current_settings};
use crate::registry::policy::Rule;
use crate::registry::{self, Agent, Giver, Person};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{Change, ChangeKind, Settings};
use ironclaw_judge::provenance::Labels;
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use std::sync::Arc;

/// Adds to a refusal to remove an agent that its conversations are erased.
pub(crate) fn mention_erased_conversations(refusal: Refusal) -> Refusal {
    Refusal { message: format!("{}; the conversations that the agent had are erased", refusal.message), ..refusal }
}

impl Changes {
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
        let settings = self.settings();
        let (policy, context) = (&settings.policy, self.decision_context(&settings));
        let checked = match checks::check(tx, &settings.host_policy, proposed) {
            Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ChangeEmpty => return Ok(()),
            checked => checked?,
        };
        let Checked { proposed, standing } = &checked;
        let rule = kinds::rule(policy, &proposed.change, &standing.before, &standing.facts);
        alone(&rule, &person, agent, wanted)?;
        let submitted = store::propose_at_once(tx, policy, checked)?;
        let row = store::known(tx, submitted.id)?;
        let (_, shown) = decide::show(tx, policy, &row)?;
        let proof = by.token.as_ref().map(ToString::to_string).unwrap_or_default();
        let said = decide::approve(tx, &context, &person, &proof, row.id, &shown);
        // A refusal that ends the change is rolled back, so it needs no notice.
        match said.map_err(|undecided| undecided.notifying(|_| Ok::<_, Error>(())))? {
            Vote::Approved => {}
            Vote::Recorded(_) => {
                return Err(Refusal::new(DenialCode::ChangeIncomplete, "one approval was not enough").into());
            }
        }
        let approved = decide::use_approvals(tx, &context, &row)?;
        let Applied { outcome } = apply::apply(tx, &approved, &Prepared::Nothing)?;
        let row = store::end(tx, &row, Status::Applied, None, &outcome)?;
        for superseded in decide::supersede(tx, &context, &row)? {
            notify(tx, self.record(), &superseded)?;
        }
        Ok(())
    }

    /// Sets settings of an agent in a transaction of its own.
    ///
    /// # Errors
    /// Refuses as [`Self::apply_at_once`] does.
    pub async fn set_at_once(self: &Arc<Self>, by: Giver, agent: Agent, wanted: Settings) -> Result<(), Denied<Error>> {
        let changes = Arc::clone(self);
        // `write` and not `decide`, because a refusal must be rolled back.
        self.record().state.write(move |tx| changes.apply_at_once(tx, &by, Some(&agent), wanted)).await
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
        let changes = Arc::clone(self);
        let judge = move |tx: &ReadTx<'_>| {
            let Some(person) = registry::person_by_id(tx, by)? else {
                return Err(Refusal::new(DenialCode::PersonUnknown, "the requester no longer exists").into());
            };
            let change = Change::Settings(wanted.clone());
            let settings = changes.settings();
            let rule = current_settings::rule_now(tx, &settings.policy, &settings.host_policy, &change, &agent)?;
            Ok(alone(&rule, &person, Some(&agent), wanted)?)
        };
        self.record().state.read(judge).await
    }

    /// Checks that people still approve of a change.
    ///
    /// # Errors
    /// Refuses a change that is no longer approved.
    pub(crate) async fn recheck_approvals(self: &Arc<Self>, row: &Row) -> Result<(), Denied<Error>> {
        let (changes, of) = (Arc::clone(self), row.clone());
        let still = self.record().state.decide(move |tx| {
            let settings = changes.settings();
            decide::recheck_approvals(tx, &changes.decision_context(&settings), &of)
        });
        still.await.map(drop)
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
