//! Agents over the API.
//!
//! For operators only; a proposal of an agent goes through the gateway. See `registry`.

use super::auth::Current;
use super::handler::{Answer, Api, Body, Caller, Reply};
use crate::gateway::changes::at_once::mention_erased_conversations;
use crate::gateway::decide::{self, proof::Direct};
use crate::gateway::waiting::Gateway;
use crate::gateway::writers;
use crate::registry::channels::{self, Channel, Rules};
use crate::registry::mounts::{self, Mount, own::Lost};
use crate::registry::software::{self, Software};
use crate::registry::tools;
use crate::registry::{self, AgentDraft, Giver, Mode, Person, Role, mcp, roles};
use crate::sessions::store;
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::change::{Access, Change, ChangeKind, Packages, Settings};
use ironclaw_operator::DenialCode;
use ironclaw_operator::{
    Agent, AgentMcp, AgentMember, AgentMode, AgentModel, AgentMount, AgentPackages, AgentWiring, NewAgent, OwnSource,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};

/// `GET /v1/agents`: the agents that the caller may talk to.
pub async fn list(Caller { api, person, .. }: Caller) -> Reply<Vec<Agent>> {
    let list = move |tx: &ReadTx<'_>| {
        let mut shown = Vec::new();
        for agent in registry::agents(tx)? {
            if roles::role_for(tx, &person, &agent)?.may_talk() {
                shown.push(view(tx, &agent, &person)?);
            }
        }
        Ok::<_, Error>(shown)
    };
    Ok(Json(api.record.state.read(list).await?))
}

/// `POST /v1/agents`
pub async fn create(Caller { api, person, .. }: Caller, Body(new): Body<NewAgent>) -> Reply<Agent> {
    let direct = check_direct(&api.gateway, ChangeKind::CreateAgent, &person)?;
    let draft = AgentDraft {
        name: new.name,
        model: new.model,
        persona: new.persona.unwrap_or_default(),
        enabled_tools: new.enabled_tools.unwrap_or_else(|| tools::usual().map(str::to_owned).collect()),
        access: Access::Everyone,
    };
    let made = api
        .record
        .state
        .decide(move |tx| {
            let agent = writers::agents::create_agent(tx, &direct, draft)?;
            Ok::<_, Denied<Error>>(view(tx, &agent, &person)?)
        })
        .await?;
    Ok(Json(made))
}

/// `DELETE /v1/agents/{agent}`: also erases its sessions.
pub async fn remove(
    Caller { api, person, current: Current(current), .. }: Caller,
    Path(agent): Path<String>,
) -> Reply<Agent> {
    let found = find(&api, &person, agent).await?;
    let wanted = Settings { remove: true, ..Settings::default() };
    api.gateway.may_at_once(person.id, found.clone(), wanted.clone()).await?;
    let (shown, by) = (found.clone(), person.clone());
    let view = api.state().read(move |tx| view(tx, &shown, &by)).await?;
    api.sessions.remove_of(found.id, person.id).await?;
    let giver = Giver { person: person.id, token: Some(current) };
    api.gateway.set_at_once(giver, found, wanted).await.map_err(|denied| match denied {
        Denied::Refused(refusal) => Denied::Refused(mention_erased_conversations(refusal)),
        failed @ Denied::Failed(_) => failed,
    })?;
    Ok(Json(view))
}

/// `POST /v1/agents/{agent}/mode`
pub async fn set_mode(
    Caller { api, person, current, .. }: Caller,
    Path(agent): Path<String>,
    Body(new): Body<AgentMode>,
) -> Reply<AgentMode> {
    let modes: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
    let mode: Mode = new.mode.parse().map_err(|_| {
        Refusal::new(DenialCode::ModeMalformed, ironclaw_contract::words::unknown("mode", &new.mode, &modes))
    })?;
    let wanted = Settings { mode: Some(mode), ..Settings::default() };
    set(&api, &person, current, agent, wanted).await?;
    Ok(Json(AgentMode { mode: mode.name().to_owned() }))
}

/// `POST /v1/agents/{agent}/model`
pub async fn set_model(
    Caller { api, person, current, .. }: Caller,
    Path(agent): Path<String>,
    Body(new): Body<AgentModel>,
) -> Reply<AgentModel> {
    let wanted = Settings { model: Some(new.model), ..Settings::default() };
    let agent = set(&api, &person, current, agent, wanted).await?;
    Ok(Json(AgentModel { model: agent.model }))
}

/// Applies settings of an agent at once, if the policy leaves that to the caller. Returns the changed agent.
pub async fn set(
    api: &Api,
    person: &Person,
    Current(current): Current,
    agent: String,
    wanted: Settings,
) -> Result<registry::Agent, Answer> {
    let found = find(api, person, agent).await?;
    let id = found.id;
    let payload = Change::Settings(wanted.clone()).payload();
    Change::parse(ChangeKind::Settings, &payload)
        .map_err(|error| Refusal::new(DenialCode::PayloadMalformed, error.to_string()))?;
    let giver = Giver { person: person.id, token: Some(current) };
    api.gateway.set_at_once(giver, found, wanted).await?;
    Ok(api.state().read(move |tx| registry::known_agent(tx, id)).await?)
}

/// Finds an agent by name or id, for the request of a person.
pub async fn find(api: &Api, person: &Person, agent: String) -> Result<registry::Agent, Answer> {
    let by = person.clone();
    Ok(api.state().read(move |tx| registry::named_agent(tx, &by, &agent)).await?)
}

/// Finds the agent of a filter by name or id. An id may be that of a removed agent.
pub async fn find_by_filter(api: &Api, person: &Person, agent: Option<String>) -> Result<Option<AgentId>, Answer> {
    let Some(agent) = agent else { return Ok(None) };
    match agent.parse::<AgentId>() {
        Ok(id) => Ok(Some(id)),
        Err(_) => Ok(Some(find(api, person, agent).await?.id)),
    }
}

/// Checks that the policy lets this person apply a change of this kind directly.
pub fn check_direct(gateway: &Gateway, kind: ChangeKind, person: &Person) -> Result<Direct, Refusal> {
    decide::check_direct(gateway.now().policy.rule(kind), kind, person)
}

/// Returns the view of an agent for this person. Only a person who decides on the agent sees its jail, members and wirings.
pub(super) fn view(tx: &ReadTx<'_>, agent: &registry::Agent, to: &Person) -> Result<Agent, Error> {
    let shown = plain(agent, store::list_for_agent(tx, agent.id)?.len() as u64);
    match roles::role_for(tx, to, agent)?.role() {
        Role::Member => Ok(shown),
        Role::Owner | Role::Admin => whole(tx, agent, shown),
    }
}

/// Returns the declaration of a directory by this person.
fn mine(tx: &ReadTx<'_>, person: PersonId, lost: Option<Lost>) -> Result<OwnSource, Error> {
    Ok(OwnSource { person: registry::person_name(tx, person)?, lost: lost.map(|lost| lost.words()) })
}

fn whole(tx: &ReadTx<'_>, agent: &registry::Agent, shown: Agent) -> Result<Agent, Error> {
    let member = |person: Person, role| AgentMember { person: person.id, name: person.name, role };
    let written = mounts::own::written(tx)?;
    let mount = |mount: Mount| {
        let mine = mount.mine.map(|person| mine(tx, person, mounts::own::lost(&mount, &written))).transpose()?;
        let Mount { source, target, read_only, mine: _ } = mount;
        Ok::<_, Error>(AgentMount { source: source.display().to_string(), target, read_only, mine })
    };
    let packages = |Software { packages: Packages { apt, npm, pypi }, layer, made_at }| AgentPackages {
        apt,
        npm,
        pypi,
        layer,
        made_at: ironclaw_ledger::rfc3339(made_at),
    };
    let heard = channels::heard_by(tx, agent.id)?.into_iter();
    Ok(Agent {
        roles: roles::list_for_agent(tx, agent.id)?.into_iter().map(|(person, role)| member(person, role)).collect(),
        mounts: mounts::list_for_agent(tx, agent.id)?.into_iter().map(mount).collect::<Result<_, _>>()?,
        packages: software::for_agent(tx, agent.id)?.map(packages),
        wirings: heard.map(|channel| wiring(&channel)).collect(),
        mcp: mcp::grants_of(tx, agent.id)?
            .into_iter()
            .map(|grant| AgentMcp { server: grant.server, tools: grant.tools })
            .collect(),
        ..shown
    })
}

/// Returns the view of the rules of a channel that an agent hears.
pub fn wiring(channel: &Channel) -> AgentWiring {
    let Rules { hears, from, unknown, ignored, sharing } = &channel.rules;
    AgentWiring {
        channel: channel.name.clone(),
        engage: hears.engage(),
        pattern: hears.pattern().map(str::to_owned),
        from: *from,
        unknown: *unknown,
        ignored: *ignored,
        sharing: *sharing,
    }
}

fn plain(agent: &registry::Agent, sessions: u64) -> Agent {
    // Names each field, so that a new one must be shown or left out explicitly.
    let registry::Agent {
        id,
        name,
        model,
        follows_default,
        persona,
        enabled_tools,
        access,
        // `GET /v1/status` shows lowered guards.
        mode: _,
        // The abilities of the agent have it.
        receiver: _,
        created_at,
    } = agent.clone();
    Agent {
        id,
        name,
        model,
        follows_default,
        persona,
        always_asked: tools::asked_tools(&enabled_tools).map(str::to_owned).collect(),
        enabled_tools: enabled_tools.into_iter().filter(|entry| tools::gives_tool(entry)).collect(),
        created_at: ironclaw_ledger::rfc3339(created_at),
        sessions,
        access,
        roles: Vec::new(),
        mounts: Vec::new(),
        packages: None,
        wirings: Vec::new(),
        mcp: Vec::new(),
        abilities: None,
    }
}
