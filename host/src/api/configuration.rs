//! The audit of the configuration over the API, and the note about a verified backup.
//!
//! Judges nothing itself: see [`crate::upkeep::configuration_audit`].

use super::handler::{Answer, Api, Caller, Reply};
use crate::registry;
use crate::registry::skills;
use crate::upkeep::configuration_audit::{self, NewerSkill, Outside};
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_ledger::Entry;
use ironclaw_operator::{ConfigurationAudit, DenialCode, LedgerEvent, NotedBackup};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables::facts::{self, Fact};

/// Characters of the id of a backup.
const BACKUP_ID_CHARACTERS: usize = 32;

/// `GET /v1/config/audit`
pub async fn audit(State(api): State<Api>) -> Reply<ConfigurationAudit> {
    let heads = api.about.head_publisher.head().await?.kept;
    let newer = newer_skills(&api).await?;
    let settings = api.gateway.now();
    let find = move |tx: &ReadTx<'_>| {
        configuration_audit::findings(tx, &Outside { settings: &settings, heads: &heads, newer: &newer })
    };
    Ok(Json(ConfigurationAudit { findings: api.state().read(find).await? }))
}

/// Asks the sources for newer versions of the skills of all agents. Sources without an answer count as without a newer version.
async fn newer_skills(api: &Api) -> Result<Vec<NewerSkill>, Answer> {
    let held = api.state().read(|tx| {
        let mut all = Vec::new();
        for agent in registry::agents(tx)? {
            all.extend(configuration_audit::installed(tx, agent.id)?.into_iter().map(|held| (agent.id, held)));
        }
        Ok::<_, Error>(all)
    });
    let held = held.await?;
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let stocks = api.skills.available().await?;
    let mut newer = Vec::new();
    for (agent, (skill, version)) in held {
        let (name, present) = (skills::named(&skill)?, skills::version(&version)?);
        let mut versions = stocks.versions(&name).into_iter();
        if let Some(newest) = versions.find(|version| version.pre.is_empty() && *version > present) {
            newer.push(NewerSkill { agent, skill, version: newest.to_string() });
        }
    }
    Ok(newer)
}

/// `POST /v1/backups/{id}/verified`
pub async fn record_verified_backup(Caller { api, person, .. }: Caller, Path(id): Path<String>) -> Reply<NotedBackup> {
    let is_id = id.len() == BACKUP_ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        let words = "the id of a backup has 32 hexadecimal digits; `ironctl backup verify FILE` sends it";
        return Err(Refusal::new(DenialCode::RequestMalformed, words).into());
    }
    let backup = id.clone();
    let note = move |tx: &mut WriteTx<'_>| {
        facts::set_backup(tx, Fact::BackupVerified, &id)?;
        Entry::new(LedgerEvent::BackupVerified).with("backup", id).with("by", person.id).append(tx).map(drop)
    };
    api.state().write(note).await.map_err(|error: ironclaw_state::Error| Answer::from(error))?;
    Ok(Json(NotedBackup { backup }))
}
