//! Skills over the API: those of an agent, their packages, and the sources and keys of the host.
//!
//! Installs nothing: a request names a skill, the host resolves it, and the answer is a change that people decide on.

use super::changes;
use super::handler::{Api, Body, Caller, Reply};
use crate::gateway::changes::skills::Installation;
use crate::reach::skills::Wanted;
use crate::registry;
use crate::registry::skills::{self, Installed, Key, Revoker};
use axum::Json;
use axum::extract::{Path, Query, State};
use ironclaw_contract::ids::AgentId;
use ironclaw_operator::{
    InstallSkill, InstalledSkill, NewSkillKey, PinSkill, RemoveSkill, SkillKey, SkillPackage, SkillSource,
    SkillVersion, SubmittedChange,
};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied};
use serde::Deserialize;
use serde_json::json;

/// Query of `GET /v1/skills`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// An agent by name or id; without it, the skills of every agent.
    #[serde(default)]
    agent: Option<String>,
    /// True to ask the sources for newer versions.
    #[serde(default)]
    newest: bool,
}

/// `GET /v1/skills?agent=A&newest=B`: of one agent, or of all.
pub async fn list(
    Caller { api, person: by, .. }: Caller,
    Query(query): Query<ListQuery>,
) -> Reply<Vec<InstalledSkill>> {
    let read = move |tx: &ReadTx<'_>| -> Result<Vec<InstalledSkill>, Denied> {
        let agents = match &query.agent {
            Some(agent) => vec![registry::named_agent(tx, &by, agent)?],
            None => registry::agents(tx)?,
        };
        let mut list = Vec::new();
        for agent in agents {
            for held in skills::list_for_agent(tx, agent.id)? {
                list.push(shown(tx, &agent, &held)?);
            }
        }
        Ok(list)
    };
    let mut list = api.state().read(move |tx| read(tx).map_err(Denied::widen::<Error>)).await?;
    if query.newest {
        let stocks = api.skills.available().await?;
        for skill in &mut list {
            let name = skills::named(&skill.name)?;
            let present = skills::version(&skill.version)?;
            let newer = stocks.versions(&name).into_iter().find(|version| version.pre.is_empty() && *version > present);
            skill.newest = newer.map(|version| version.to_string());
        }
    }
    Ok(Json(list))
}

pub(super) fn shown(
    tx: &ReadTx<'_>,
    agent: &registry::Agent,
    held: &Installed,
) -> Result<InstalledSkill, ironclaw_state::Error> {
    let state = skills::trust(tx, &held.package)?;
    let skills::Package { name, version, signer, digest, description, .. } = held.package.clone();
    let (agent, pinned) = (agent.name.clone(), held.is_pinned);
    Ok(InstalledSkill { agent, name, version, signer, digest, pinned, state, description, newest: None })
}

/// Query of `GET /v1/skills/{skill}`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ShowQuery {
    /// The version; the newest one without it.
    #[serde(default)]
    version: Option<String>,
    /// A file of the package to show: a text of at most 64 KiB.
    #[serde(default)]
    file: Option<String>,
}

/// `GET /v1/skills/{skill}?version=V&file=F`: resolves and verifies a skill, and changes nothing of an agent.
pub async fn show(
    State(api): State<Api>,
    Path(skill): Path<String>,
    Query(query): Query<ShowQuery>,
) -> Reply<SkillPackage> {
    let (name, wanted) = (skills::named(&skill)?, Wanted::parse(query.version.as_deref())?);
    let (package, versions) = api.skills.resolve_among(&name, &wanted).await?;
    let versions = versions.iter().map(ToString::to_string).collect();
    let manifest = skills::manifest(&package).map_err(Error::from)?;
    let text = match query.file {
        Some(file) => api.skills.text(package.digest, &manifest, file).await,
        None => None,
    };
    let skills::Package { name, version, signer, digest, source, description, .. } = package;
    let (files, grants) = (json!(manifest.files), json!(manifest.grants));
    Ok(Json(SkillPackage { name, version, signer, digest, source, description, files, grants, versions, text }))
}

/// `POST /v1/skills/install`
pub async fn install(Caller { api, person: by, .. }: Caller, Body(new): Body<InstallSkill>) -> Reply<SubmittedChange> {
    let InstallSkill { agent, skill, version, back, reason } = new;
    let (name, version) = (skills::named(&skill)?, Wanted::parse(version.as_deref())?);
    let installation = Installation { agent, name, version, back, reason };
    let submitted = api.gateway.install_skill(&api.skills, &by, installation).await?;
    changes::answer(&api, &by, submitted).await
}

/// `POST /v1/skills/remove`
pub async fn remove(Caller { api, person: by, .. }: Caller, Body(old): Body<RemoveSkill>) -> Reply<SubmittedChange> {
    let RemoveSkill { agent, skill, reason } = old;
    let submitted = api.gateway.remove_skill(&by, agent, skills::named(&skill)?, reason).await?;
    changes::answer(&api, &by, submitted).await
}

/// `POST /v1/skills/pin`
pub async fn pin(Caller { api, person: by, .. }: Caller, Body(pin): Body<PinSkill>) -> Reply<InstalledSkill> {
    let PinSkill { agent, skill, pinned } = pin;
    let set = move |tx: &mut WriteTx<'_>| -> Result<InstalledSkill, Denied> {
        let agent = registry::named_agent(tx, &by, &agent)?;
        let missing = || skills::missing(&agent.name, &skill);
        let held = skills::find(tx, agent.id, &skill)?.ok_or_else(missing)?;
        skills::pin(tx, agent.id, &held, pinned, by.id)?;
        let held = skills::find(tx, agent.id, &skill)?.ok_or_else(missing)?;
        Ok(shown(tx, &agent, &held)?)
    };
    Ok(Json(api.state().decide(set).await?))
}

/// `GET /v1/skill-sources`
pub async fn sources(State(api): State<Api>) -> Reply<Vec<SkillSource>> {
    Ok(Json(api.state().read(|tx| Ok::<_, Error>(every_source(tx)?)).await?))
}

fn every_source(tx: &ReadTx<'_>) -> Result<Vec<SkillSource>, ironclaw_state::Error> {
    let sources = skills::sources(tx)?.into_iter();
    Ok(sources.map(|skills::Source { name, location, .. }| SkillSource { name, location }).collect())
}

/// `POST /v1/skill-sources`
pub async fn add_source(
    Caller { api, person: by, .. }: Caller,
    Body(new): Body<SkillSource>,
) -> Reply<Vec<SkillSource>> {
    api.skills.check_location(&new.location)?;
    let add = move |tx: &mut WriteTx<'_>| -> Result<_, Denied> {
        skills::add_source(tx, &new.name, &new.location, by.id)?;
        Ok(every_source(tx)?)
    };
    Ok(Json(api.state().decide(add).await?))
}

/// `DELETE /v1/skill-sources/{source}`
pub async fn remove_source(
    Caller { api, person: by, .. }: Caller,
    Path(source): Path<String>,
) -> Reply<Vec<SkillSource>> {
    let remove = move |tx: &mut WriteTx<'_>| -> Result<_, Denied> {
        skills::remove_source(tx, &source, by.id)?;
        Ok(every_source(tx)?)
    };
    Ok(Json(api.state().decide(remove).await?))
}

fn shown_key(key: Key) -> SkillKey {
    let Key { id, name, public_key, skills, revoked_at, .. } = key;
    SkillKey { id, name, key: public_key, skills, revoked: revoked_at.is_some() }
}

/// `GET /v1/skill-keys`
pub async fn keys(State(api): State<Api>) -> Reply<Vec<SkillKey>> {
    let keys = api.state().read(|tx| Ok::<_, Error>(skills::keys(tx)?)).await?;
    Ok(Json(keys.into_iter().map(shown_key).collect()))
}

/// `POST /v1/skill-keys`
pub async fn add_key(Caller { api, person: by, .. }: Caller, Body(new): Body<NewSkillKey>) -> Reply<SkillKey> {
    let NewSkillKey { name, key, skills } = new;
    let add = move |tx: &mut WriteTx<'_>| skills::add_key(tx, &name, &key, skills, by.id);
    Ok(Json(shown_key(api.state().decide(add).await?)))
}

/// `DELETE /v1/skill-keys/{key}`
pub async fn remove_key(Caller { api, person: by, .. }: Caller, Path(key): Path<String>) -> Reply<SkillKey> {
    let remove = move |tx: &mut WriteTx<'_>| skills::remove_key(tx, &key, by.id);
    Ok(Json(shown_key(api.state().decide(remove).await?)))
}

/// `POST /v1/skill-keys/{key}/revoke`: the sessions of the agents with its skills begin anew without them.
pub async fn revoke_key(Caller { api, person: by, .. }: Caller, Path(key): Path<String>) -> Reply<SkillKey> {
    let revoke = move |tx: &mut WriteTx<'_>| -> Result<_, Denied> {
        let key = skills::known_key(tx, &key)?;
        skills::revoke_key(tx, &key, Revoker::Person(by.id))?;
        Ok((skills::known_key(tx, &key.id)?, skills::agents_of_signer(tx, &key.id)?))
    };
    let (revoked, agents) = api.state().decide(revoke).await?;
    begin_anew(&api, agents).await?;
    Ok(Json(shown_key(revoked)))
}

/// Ends the sessions of agents, so that they begin anew without a revoked skill.
async fn begin_anew(api: &Api, agents: Vec<AgentId>) -> Result<(), Error> {
    for agent in agents {
        api.sessions.respawn(agent).await?;
    }
    Ok(())
}

/// `POST /v1/skill-revocations`
pub async fn revoke_version(
    Caller { api, person: by, .. }: Caller,
    Body(version): Body<SkillVersion>,
) -> Reply<SkillVersion> {
    let (name, parsed) = (skills::named(&version.skill)?, skills::version(&version.version)?);
    let revoke = move |tx: &mut WriteTx<'_>| -> Result<_, Denied> {
        skills::revoke_version(tx, &name, &parsed, Revoker::Person(by.id))?;
        Ok(skills::agents_of_version(tx, name.as_ref(), &parsed.to_string())?)
    };
    let agents = api.state().decide(revoke).await?;
    begin_anew(&api, agents).await?;
    Ok(Json(version))
}
