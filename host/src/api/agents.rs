//! Agents over the API.
//!
//! Only an operator comes here; an agent's own wish for a change goes another way. Next: `registry`.

use super::{Answer, Api, Body, Reply};
use crate::budget;
use crate::gateway::{self, checks};
use crate::ledger;
use crate::memories;
use crate::pipeline::{Command, Core, Error};
use crate::refusal::Refusal;
use crate::registry::channels::{self, Channel};
use crate::registry::mounts::{self, Mount};
use crate::registry::software::{self, Software};
use crate::registry::{self, AgentDraft, Mode, Person, Role, mcp, roles};
use crate::routing;
use crate::session::store;
use crate::state::Tx;
use crate::tools;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use ironclaw_contract::operator::{
    Agent, AgentMcp, AgentMember, AgentMode, AgentModel, AgentMount, AgentPackages, AgentWiring, NewAgent,
};
use ironclaw_contract::seam::change::{Access, AgentRole, ChangeKind, Packages};

/// `GET /v1/agents`: those that the caller may talk to.
pub async fn list(State(api): State<Api>, Extension(person): Extension<Person>) -> Reply<Vec<Agent>> {
    let list = move |tx: &mut Tx<'_>| {
        let mut shown = Vec::new();
        for agent in registry::agents(tx)? {
            if roles::role_for(tx, &person, &agent)?.may_talk() {
                shown.push(view(tx, &agent, &person)?);
            }
        }
        Ok::<_, Error>(shown)
    };
    Ok(Json(api.pipeline.core().state.read(list).await?))
}

/// `GET /v1/agents/{agent}`
pub async fn show(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(agent): Path<String>,
) -> Reply<Agent> {
    let found = find(&api, agent).await?;
    let show = move |tx: &mut Tx<'_>| match roles::role_for(tx, &person, &found)?.may_talk() {
        true => Ok::<_, Error>(Ok(view(tx, &found, &person)?)),
        // As whoever writes to it is told: that there is one of this name is not hidden there either.
        false => Ok(Err(routing::not_yours(&found))),
    };
    Ok(Json(api.pipeline.core().state.read(show).await??))
}

/// `POST /v1/agents`
pub async fn create(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Body(new): Body<NewAgent>,
) -> Reply<Agent> {
    let core = api.pipeline.core();
    direct(core, ChangeKind::CreateAgent, &person)?;
    let draft = AgentDraft {
        name: new.name,
        model: new.model,
        persona: new.persona.unwrap_or_default(),
        enabled_tools: new.enabled_tools.unwrap_or_else(|| tools::usual().map(str::to_owned).collect()),
        access: Access::Everyone,
    };
    let made = core
        .state
        .write(move |tx| match registry::create_agent(tx, draft, person.id)? {
            Ok(agent) => Ok::<_, Error>(Ok(view(tx, &agent, &person)?)),
            Err(refusal) => Ok(Err(refusal)),
        })
        .await?;
    Ok(Json(made?))
}

/// `DELETE /v1/agents/{agent}`: its sessions are erased with it.
pub async fn remove(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(agent): Path<String>,
) -> Reply<Agent> {
    let found = find(&api, agent).await?;
    let (of_agent, shown, by) = (found.id, found.clone(), person.clone());
    let core = api.pipeline.core();
    let (view, sessions) =
        core.state.read(move |tx| Ok::<_, Error>((view(tx, &shown, &by)?, store::of_agent(tx, of_agent)?))).await?;
    for session in sessions {
        let removed = api.pipeline.ask(session.id, |done| Command::Remove(person.id, done)).await?;
        removed.map_err(|message| Answer::from(Refusal::host("session_not_removed", message)))?;
    }
    // Before its notes and itself are erased: a crash in between leaves nothing that was erased in a snapshot.
    core.forget_snapshots().await?;
    let removed = core
        .state
        .write(move |tx| {
            // A message may have come while its sessions were erased.
            if !store::of_agent(tx, found.id)?.is_empty() {
                return Ok::<_, Error>(false);
            }
            memories::erase_of_agent(tx, found.id)?;
            gateway::store::erase_of_agent(tx, found.id)?;
            budget::book::forget(tx, found.id)?;
            registry::remove_agent(tx, &found, person.id)?;
            Ok(true)
        })
        .await?;
    if !removed {
        let refusal =
            Refusal::operator("agent_in_use", format!("agent {} got a message while it was being removed", view.name));
        return Err(refusal.hint("try again").into());
    }
    Ok(Json(view))
}

/// `POST /v1/agents/{agent}/mode`
pub async fn set_mode(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(agent): Path<String>,
    Body(new): Body<AgentMode>,
) -> Reply<AgentMode> {
    let found = find(&api, agent).await?;
    let mode: Mode = new.mode.parse().map_err(|message: String| Refusal::operator("mode_malformed", message))?;
    api.pipeline.core().state.write(move |tx| registry::set_mode(tx, found.id, mode, person.id)).await?;
    Ok(Json(AgentMode { mode: mode.name().to_owned() }))
}

/// `POST /v1/agents/{agent}/model`
pub async fn set_model(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Path(agent): Path<String>,
    Body(new): Body<AgentModel>,
) -> Reply<AgentModel> {
    let found = find(&api, agent).await?;
    let set = move |tx: &mut Tx<'_>| registry::models::set_model(tx, found.id, &new.model, person.id);
    Ok(Json(AgentModel { model: api.state().write(set).await?? }))
}

/// The agent of this name or id.
pub async fn find(api: &Api, agent: String) -> Result<registry::Agent, Answer> {
    Ok(api.state().read(move |tx| registry::named_agent(tx, &agent)).await??)
}

/// Whether the policy lets this person do by a command what a change of this kind does.
pub fn direct(core: &Core, kind: ChangeKind, person: &Person) -> Result<(), Refusal> {
    checks::direct(core.policy.rule(kind), kind, person.role)
}

/// What this person is shown of an agent: how its jail is made and who else has to do with it is for whoever decides about it.
fn view(tx: &Tx<'_>, agent: &registry::Agent, to: &Person) -> Result<Agent, Error> {
    let shown = plain(agent, store::of_agent(tx, agent.id)?.len() as u64);
    match roles::role_for(tx, to, agent)?.role() {
        Role::Member => Ok(shown),
        Role::Owner | Role::Admin => whole(tx, agent, shown),
    }
}

fn whole(tx: &Tx<'_>, agent: &registry::Agent, shown: Agent) -> Result<Agent, Error> {
    let member = |(person, role): (Person, AgentRole)| AgentMember {
        person: person.id.to_string(),
        name: person.name,
        role: role.name().to_owned(),
    };
    let mount = |Mount { source, target, read_only }| {
        let source = source.display().to_string();
        AgentMount { source, target, read_only }
    };
    let packages = |Software { packages: Packages { apt, npm }, layer, made_at }| AgentPackages {
        apt,
        npm,
        layer: layer.to_string(),
        made_at: ledger::rfc3339(made_at),
    };
    let wiring = |channel: Channel| AgentWiring {
        engage: channel.hears.engage().name().to_owned(),
        pattern: channel.hears.pattern().map(str::to_owned),
        channel: channel.name,
    };
    let heard = channels::heard_by(tx, agent.id)?.into_iter();
    Ok(Agent {
        roles: roles::of(tx, agent.id)?.into_iter().map(member).collect(),
        mounts: mounts::of(tx, agent.id)?.into_iter().map(mount).collect(),
        packages: software::of(tx, agent.id)?.map(packages),
        wirings: heard.map(wiring).collect(),
        mcp: mcp::grants_of(tx, agent.id)?
            .into_iter()
            .map(|grant| AgentMcp { server: grant.server, tools: grant.tools })
            .collect(),
        ..shown
    })
}

fn plain(agent: &registry::Agent, sessions: u64) -> Agent {
    Agent {
        id: agent.id.to_string(),
        name: agent.name.clone(),
        model: agent.model.clone(),
        follows_default: agent.follows_default,
        persona: agent.persona.clone(),
        enabled_tools: agent.enabled_tools.clone(),
        created_at: ledger::rfc3339(agent.created_at),
        sessions,
        access: agent.access.name().to_owned(),
        roles: Vec::new(),
        mounts: Vec::new(),
        packages: None,
        wirings: Vec::new(),
        mcp: Vec::new(),
    }
}
