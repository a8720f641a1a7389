//! Agents over the API.
//!
//! Only an operator comes here; an agent's own wish for a change goes another way. Next: `registry`.

use super::{Answer, Api, Body, Reply};
use crate::budget;
use crate::ledger;
use crate::memories;
use crate::pipeline::{Command, Error};
use crate::refusal::Refusal;
use crate::registry::{self, AgentDraft, Mode, Person};
use crate::session::store;
use crate::state::Tx;
use crate::tools;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use ironclaw_contract::operator::{Agent, AgentMode, AgentModel, NewAgent};
use ironclaw_contract::seam::change::Access;

/// `GET /v1/agents`
pub async fn list(State(api): State<Api>) -> Reply<Vec<Agent>> {
    let list =
        |tx: &mut Tx<'_>| registry::agents(tx)?.iter().map(|agent| view(tx, agent)).collect::<Result<_, Error>>();
    Ok(Json(api.pipeline.core().state.read(list).await?))
}

/// `GET /v1/agents/{agent}`
pub async fn show(State(api): State<Api>, Path(agent): Path<String>) -> Reply<Agent> {
    let found = find(&api, agent).await?;
    Ok(Json(api.pipeline.core().state.read(move |tx| view(tx, &found)).await?))
}

/// `POST /v1/agents`
pub async fn create(
    State(api): State<Api>,
    Extension(person): Extension<Person>,
    Body(new): Body<NewAgent>,
) -> Reply<Agent> {
    let core = api.pipeline.core();
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
            Ok(agent) => Ok::<_, Error>(Ok(view(tx, &agent)?)),
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
    let (of_agent, shown) = (found.id, found.clone());
    let core = api.pipeline.core();
    let (view, sessions) = core
        .state
        .read(move |tx| {
            let sessions: Vec<_> = store::all(tx)?.into_iter().filter(|session| session.agent == of_agent).collect();
            Ok::<_, Error>((view(tx, &shown)?, sessions))
        })
        .await?;
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
            if store::all(tx)?.iter().any(|session| session.agent == found.id) {
                return Ok::<_, Error>(false);
            }
            memories::erase_of_agent(tx, found.id)?;
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
    let shown: String = agent.chars().take(64).collect();
    let found = api.pipeline.core().state.read(move |tx| registry::find_agent(tx, &agent)).await?;
    found.ok_or_else(|| {
        let refusal = Refusal::operator("agent_unknown", format!("there is no agent {shown:?}"));
        refusal.hint("`ironctl agent list` shows who there is; `ironctl agent create NAME` makes one").into()
    })
}

fn view(tx: &Tx<'_>, agent: &registry::Agent) -> Result<Agent, Error> {
    let sessions = store::all(tx)?.iter().filter(|session| session.agent == agent.id).count() as u64;
    Ok(Agent {
        id: agent.id.to_string(),
        name: agent.name.clone(),
        model: agent.model.clone(),
        follows_default: agent.follows_default,
        persona: agent.persona.clone(),
        enabled_tools: agent.enabled_tools.clone(),
        created_at: ledger::rfc3339(agent.created_at),
        sessions,
    })
}
