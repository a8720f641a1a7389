//! What one person sets by a command of their own: the same change that others would be asked about, asked for, approved and
//! applied in one transaction where the policy leaves it to this person.
//!
//! Never another way to set anything. Next: `pipeline::changes`.

use super::changes::submit::notify;
use super::command::Command;
use super::{Core, Error, Pipeline};
use crate::gateway::apply::{self, Applied};
use crate::gateway::decide::{self, Said};
use crate::gateway::kinds::Prepared;
use crate::gateway::policy::Rule;
use crate::gateway::store::{self, Row, Status};
use crate::gateway::{Proposed, Requester, checks, current_settings};
use crate::refusal::Refusal;
use crate::refusal::{Decide, Denied};
use crate::registry::{self, Agent, Giver, Person};
use crate::session::store as sessions;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, ChangeKind, Settings};
use ironclaw_state::Tx;

/// Adds to a refusal to remove an agent that its conversations are erased.
pub(crate) fn after_erasing(refusal: Refusal) -> Refusal {
    Refusal { message: format!("{}; the conversations that the agent had are erased", refusal.message), ..refusal }
}

/// Sets something at once. What is so already is set.
///
/// # Errors
/// Refuses where the policy asks for more than this person, and what does not pass a check. The caller then rolls back with
/// [`ironclaw_state::State::write`], because a part may be written already.
pub fn settle(
    tx: &mut Tx<'_>,
    core: &Core,
    by: &Giver,
    agent: Option<&Agent>,
    wanted: Settings,
) -> Result<(), Denied<Error>> {
    // As it stands now: a role may have been taken while the request was on its way.
    let Some(person) = registry::person_by_id(tx, by.person)? else {
        return Err(Refusal::new(DenialCode::PersonUnknown, "whoever asks is not known here any more").into());
    };
    let proposed = Proposed {
        change: Change::Settings(wanted.clone()),
        agent: agent.map(|agent| agent.id),
        requester: Requester::Person(person.id),
        reason: String::new(),
        labels: Vec::new(),
    };
    let checked = match checks::check(tx, &core.grounds, proposed) {
        Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ChangeEmpty => return Ok(()),
        checked => checked?,
    };
    let rule = checked.rule(&core.policy);
    alone(&rule, &person, agent, wanted)?;
    let submitted = store::propose_at_once(tx, &core.policy, checked)?;
    let row = store::known(tx, submitted.id)?;
    let (_, shown) = decide::show(tx, &core.policy, &row)?;
    let proof = by.token.as_ref().map(ToString::to_string).unwrap_or_default();
    let said = decide::approve(tx, &core.bench(), &person, &proof, row.id, &shown);
    // The requester of a change that ends by this is not told: it is rolled back.
    match said.map_err(|undecided| undecided.told(|_| Ok::<_, Error>(())))? {
        Said::Approved => {}
        Said::Counted(_) => {
            return Err(Refusal::new(DenialCode::ChangeIncomplete, "one yes was to be enough, and was not").into());
        }
    }
    let approved = decide::approved(tx, &core.bench(), &row)?;
    let Applied { outcome } = apply::apply(tx, &approved, &Prepared::Nothing)?;
    let row = store::end(tx, &row, Status::Applied, None, &outcome)?;
    for superseded in decide::supersede(tx, &core.bench(), &row).map_err(Error::from)? {
        notify(tx, core, &superseded)?;
    }
    Ok(())
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

impl Pipeline {
    /// Sets something of an agent at once.
    ///
    /// # Errors
    /// Refuses as [`settle`] does.
    pub async fn set_at_once(&self, by: Giver, agent: Agent, wanted: Settings) -> Result<(), Denied<Error>> {
        let core = std::sync::Arc::clone(&self.core);
        // Not `decide`: a refusal is rolled back.
        self.core.state.write(move |tx| settle(tx, &core, &by, Some(&agent), wanted)).await
    }

    /// Checks that the policy leaves settings to this person alone.
    ///
    /// # Errors
    /// Refuses as [`settle`] does.
    pub async fn may_at_once(&self, by: PersonId, agent: Agent, wanted: Settings) -> Result<(), Denied<Error>> {
        let core = std::sync::Arc::clone(&self.core);
        let judge = move |tx: &mut Tx<'_>| {
            let Some(person) = registry::person_by_id(tx, by)? else {
                return Err(Refusal::new(DenialCode::PersonUnknown, "whoever asks is not known here any more").into());
            };
            let change = Change::Settings(wanted.clone());
            let rule = current_settings::rule_now(tx, &core.policy, &core.grounds, &change, &agent)?;
            Ok(alone(&rule, &person, Some(&agent), wanted)?)
        };
        self.core.state.read(judge).await
    }

    /// Erases the conversations of an agent that a change removes, if people still approve of it: what is erased does not come back.
    ///
    /// # Errors
    /// Refuses where the change is not approved any more, or a conversation could not be removed.
    pub(super) async fn remove_sessions_approved(&self, row: &Row, agent: AgentId) -> Result<(), Denied<Error>> {
        let (core, of) = (std::sync::Arc::clone(&self.core), row.clone());
        self.core.state.decide(move |tx| decide::still_approved(tx, &core.bench(), &of)).await?;
        self.remove_sessions(agent, row.decided_by.unwrap_or_else(|| row.principal())).await
    }

    /// Erases the conversations of an agent that is about to be removed.
    ///
    /// # Errors
    /// Refuses where a conversation could not be removed.
    pub(crate) async fn remove_sessions(&self, agent: AgentId, by: PersonId) -> Result<(), Denied<Error>> {
        let found = self.core.state.read(move |tx| sessions::of_agent(tx, agent)).await?;
        for session in found {
            if let Err(message) = self.ask(session.id, |done| Command::Remove(by, done)).await? {
                return Err(Refusal::new(DenialCode::SessionNotRemoved, message).into());
            }
        }
        // Before its notes and itself are erased: a crash in between leaves nothing that was erased in a snapshot.
        self.core.forget_snapshots().await?;
        Ok(())
    }
}
