//! What one person sets by a command of their own: the same change that others would be asked about, asked for, approved and
//! applied in one transaction where the policy leaves it to this person.
//!
//! Never another way to set anything. Next: `changes`.

use crate::changes::Changes;
use crate::error::Error;
use crate::gateway::apply::{self, Applied};
use crate::gateway::decide::{self, Said};
use crate::gateway::kinds::Prepared;
use crate::gateway::policy::Rule;
use crate::gateway::proposals::notify;
use crate::gateway::store::{self, Row, Status};
use crate::gateway::{Proposed, Requester, checks, current_settings};
use crate::refusal::{Decide, Denied, Refusal};
use crate::registry::{self, Agent, Giver, Person};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, ChangeKind, Settings};
use ironclaw_state::{ReadTx, WriteTx};
use std::sync::Arc;

/// Adds to a refusal to remove an agent that its conversations are erased.
pub(crate) fn after_erasing(refusal: Refusal) -> Refusal {
    Refusal { message: format!("{}; the conversations that the agent had are erased", refusal.message), ..refusal }
}

impl Changes {
    /// Sets something at once. What is so already is set.
    ///
    /// # Errors
    /// Refuses where the policy asks for more than this person, and what does not pass a check. The caller then rolls back with
    /// [`ironclaw_state::State::write`], because a part may be written already.
    pub fn settle(
        &self,
        tx: &mut WriteTx<'_>,
        by: &Giver,
        agent: Option<&Agent>,
        wanted: Settings,
    ) -> Result<(), Denied<Error>> {
        // As it stands now: a role may have been taken while the request was on its way.
        let Some(person) = registry::person_by_id(tx, by.person)? else {
            return Err(Refusal::new(DenialCode::PersonUnknown, "the person who asks no longer exists").into());
        };
        let proposed = Proposed {
            change: Change::Settings(wanted.clone()),
            agent: agent.map(|agent| agent.id),
            requester: Requester::Person(person.id),
            reason: String::new(),
            labels: Vec::new(),
        };
        let checked = match checks::check(tx, &self.proposals.grounds, proposed) {
            Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ChangeEmpty => return Ok(()),
            checked => checked?,
        };
        let rule = checked.rule(self.policy());
        alone(&rule, &person, agent, wanted)?;
        let submitted = store::propose_at_once(tx, self.policy(), checked)?;
        let row = store::known(tx, submitted.id)?;
        let (_, shown) = decide::show(tx, self.policy(), &row)?;
        let proof = by.token.as_ref().map(ToString::to_string).unwrap_or_default();
        let said = decide::approve(tx, &self.bench(), &person, &proof, row.id, &shown);
        // The requester of a change that ends by this is not told: it is rolled back.
        match said.map_err(|undecided| undecided.told(|_| Ok::<_, Error>(())))? {
            Said::Approved => {}
            Said::Counted(_) => {
                return Err(Refusal::new(DenialCode::ChangeIncomplete, "one yes was to be enough, and was not").into());
            }
        }
        let approved = decide::approved(tx, &self.bench(), &row)?;
        let Applied { outcome } = apply::apply(tx, &approved, &Prepared::Nothing)?;
        let row = store::end(tx, &row, Status::Applied, None, &outcome)?;
        for superseded in decide::supersede(tx, &self.bench(), &row).map_err(Error::from)? {
            notify(tx, self.record(), &superseded)?;
        }
        Ok(())
    }

    /// Sets something of an agent at once.
    ///
    /// # Errors
    /// Refuses as [`Self::settle`] does.
    pub async fn set_at_once(self: &Arc<Self>, by: Giver, agent: Agent, wanted: Settings) -> Result<(), Denied<Error>> {
        let changes = Arc::clone(self);
        // Not `decide`: a refusal is rolled back.
        self.record().state.write(move |tx| changes.settle(tx, &by, Some(&agent), wanted)).await
    }

    /// Checks that the policy leaves settings to this person alone.
    ///
    /// # Errors
    /// Refuses as [`Self::settle`] does.
    pub async fn may_at_once(
        self: &Arc<Self>,
        by: PersonId,
        agent: Agent,
        wanted: Settings,
    ) -> Result<(), Denied<Error>> {
        let changes = Arc::clone(self);
        let judge = move |tx: &ReadTx<'_>| {
            let Some(person) = registry::person_by_id(tx, by)? else {
                return Err(Refusal::new(DenialCode::PersonUnknown, "the person who asks no longer exists").into());
            };
            let change = Change::Settings(wanted.clone());
            let rule = current_settings::rule_now(tx, changes.policy(), &changes.proposals.grounds, &change, &agent)?;
            Ok(alone(&rule, &person, Some(&agent), wanted)?)
        };
        self.record().state.read(judge).await
    }

    /// Checks that people still approve of a change.
    ///
    /// # Errors
    /// Refuses one that is not approved any more.
    pub(crate) async fn still_approved(self: &Arc<Self>, row: &Row) -> Result<(), Denied<Error>> {
        let (changes, of) = (Arc::clone(self), row.clone());
        let still = self.record().state.decide(move |tx| decide::still_approved(tx, &changes.bench(), &of));
        still.await.map(drop).map_err(Denied::widen)
    }
}

/// Whether this rule leaves settings to one person of this role.
///
/// # Errors
/// Refuses with the command that proposes them to others.
fn alone(rule: &Rule, person: &Person, agent: Option<&Agent>, wanted: Settings) -> Result<(), Refusal> {
    decide::direct(rule, ChangeKind::Settings, person).map(drop).map_err(|refusal| {
        let of = agent.map_or_else(String::new, |agent| format!(" --agent {}", agent.name));
        let payload = canonical::to_string(&Change::Settings(wanted).payload());
        refusal.hint(format!(
            "propose it, and let others decide: `ironctl change submit --kind settings{of} --payload '{payload}' --reason WHY`"
        ))
    })
}
