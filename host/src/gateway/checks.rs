//! Deterministic checks that refuse changes that no approval may allow.
//!
//! A check also completes the fields that the contract leaves open (targets of mounts, tools of a server), so that a person sees all of
//! them. A completed change is completed to itself. See [`crate::gateway::kinds`] for the check of each kind.

use super::kinds::{self, concerns_agent};
use super::{Checked, Proposed, Requester, current_settings};
use crate::registry::live_settings::HostPolicy;
use crate::registry::{self, Agent};
use crate::sessions::store;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};

/// Checks a proposal and completes it.
///
/// # Errors
/// Refuses the proposal with the first check that fails.
pub fn check(tx: &ReadTx<'_>, host_policy: &HostPolicy, proposed: Proposed) -> Result<Checked, Denied> {
    let agent = agent_of(tx, &proposed)?;
    let change = kinds::complete(tx, host_policy, &proposed.requester, &proposed.change, agent.as_ref())?;
    let standing = current_settings::read(tx, host_policy, &change, agent.as_ref())?;
    let proposed = Proposed { change, ..proposed };
    let is_same = kinds::after(&proposed.change, agent.as_ref()).is_some_and(|after| after == standing.before);
    if is_same && kinds::has_addresses(tx, &proposed.change, agent.as_ref(), &standing.facts)? {
        let refusal = Refusal::new(DenialCode::ChangeEmpty, "no change: the value is already set");
        return Err(refusal.into());
    }
    Ok(Checked { proposed, standing })
}

/// Returns the agent of a proposal from the record: the one that it concerns, or the one that makes the request.
fn agent_of(tx: &ReadTx<'_>, proposed: &Proposed) -> Result<Option<Agent>, Denied> {
    let kind = proposed.change.kind();
    let agent = match &proposed.agent {
        None => None,
        Some(agent) => Some(
            registry::agent_by_id(tx, *agent)?
                .ok_or_else(|| Refusal::new(DenialCode::AgentGone, "the agent was removed"))?,
        ),
    };
    match &proposed.requester {
        // A call of `schedule_task` proposes a schedule, and one of `skill_install` a skill.
        Requester::Agent { principal: _, origin: _ }
            if !kind.is_for_agents() && ![ChangeKind::Schedule, ChangeKind::Skills].contains(&kind) =>
        {
            let message = format!("an agent cannot request a change of kind {kind}");
            return Err(Refusal::new(DenialCode::ChangeNotAnAgents, message).hint("a person has to request it").into());
        }
        Requester::Agent { principal: _, origin } => {
            let own = store::find(tx, origin.session)?.map(|session| session.agent);
            if own.is_none() || own != agent.as_ref().map(|agent| agent.id) {
                let refusal = Refusal::new(DenialCode::ChangeOfAnother, "an agent can request changes only for itself");
                return Err(refusal.into());
            }
        }
        Requester::Person(_) if !concerns_agent(kind) && agent.is_some() => {
            let message = format!("a change of kind {kind} concerns no existing agent");
            return Err(Refusal::new(DenialCode::AgentSuperfluous, message).hint("leave out --agent").into());
        }
        Requester::Person(_) => {}
    }
    kinds::check_agent(&proposed.change, agent.as_ref())?;
    Ok(agent)
}

#[cfg(test)]
pub(crate) mod tests;
