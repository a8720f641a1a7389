//! One agent with everything that it can do, for the people who decide on it.
//!
//! Decides nothing: each part is as the list of its own route shows it. See [`super::agents`] for the agent itself.

use super::handler::{Caller, Reply};
use super::{agents, allowances, calls, destinations, schedules, skills, usage};
use crate::channels::inbound::routing;
use crate::gateway::requests::allowance;
use crate::registry::{self, Person, Role, egress, groups, mcp, roles};
use crate::turns::budget::book;
use axum::Json;
use axum::extract::Path;
use ironclaw_judge::{Principal, ReceiverPolicy};
use ironclaw_operator::{Agent, AgentAbilities, AgentScope};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::schedules::all as all_schedules;

/// `GET /v1/agents/{agent}`
pub async fn show(Caller { api, person, .. }: Caller, Path(agent): Path<String>) -> Reply<Agent> {
    let found = agents::find(&api, &person, agent).await?;
    let policy = api.gateway.now().policy.receiver_of(&found);
    let show = move |tx: &ReadTx<'_>| {
        let role = roles::role_for(tx, &person, &found)?;
        if !role.may_talk() {
            // A message to this agent gets the same refusal, so the existence of the name is not hidden there either.
            return Err(Denied::<Error>::from(routing::not_yours(&found)));
        }
        let abilities = match role.role() {
            Role::Member => None,
            Role::Owner | Role::Admin => Some(abilities(tx, &found, &person, &policy)?),
        };
        Ok(Agent { abilities, ..agents::view(tx, &found, &person)? })
    };
    Ok(Json(api.record.state.read(show).await?))
}

/// Returns what an agent can do. A person sees the schedules and the allowances of others only as its list shows them.
fn abilities(
    tx: &ReadTx<'_>,
    agent: &registry::Agent,
    to: &Person,
    policy: &ReceiverPolicy,
) -> Result<AgentAbilities, Error> {
    let mut allowed = allowance::seen(tx, to)?;
    allowed.retain(|row| row.agent == agent.id);
    let mut planned = all_schedules(tx)?;
    planned.retain(|row| row.agent == agent.id && (row.creator == to.id || to.role.covers(Role::Admin)));
    let mut trusting = groups::all(tx)?;
    trusting.retain(|group| group.agents.contains(&agent.name));
    let installed = registry::skills::list_for_agent(tx, agent.id)?;
    Ok(AgentAbilities {
        mode: agent.mode,
        automatic_tools: mcp::catalogue(tx, agent)?.automatic_names().map(str::to_owned).collect(),
        hosts: egress::egress_of(tx, agent.id)?.into_iter().map(calls::grant).collect(),
        destinations: destinations::named(tx, registry::destinations::list_for_agent(tx, agent.id)?)?,
        groups: trusting.into_iter().map(super::groups::shown).collect(),
        skills: installed.iter().map(|held| skills::shown(tx, agent, held)).collect::<Result<_, _>>()?,
        schedules: planned.iter().map(|row| schedules::view(tx, to, row)).collect::<Result<_, _>>()?,
        allowances: allowed.iter().map(|row| allowances::view(tx, row)).collect::<Result<_, _>>()?,
        ceilings: usage::view(book::own(tx, agent.id)?),
        scopes: Principal::ALL.into_iter().map(|kind| scope(policy, kind)).collect(),
    })
}

/// Returns the classes that a kind of principal may ask an agent for.
fn scope(policy: &ReceiverPolicy, principal: Principal) -> AgentScope {
    let allowed = policy.allowed(principal);
    AgentScope { principal, may: allowed.may.iter().collect(), unasked: allowed.unasked.iter().collect() }
}
