//! Allowances over the API: the page of a new one, and the list.
//!
//! Decides nothing: see [`crate::gateway::requests::allowance`]. Each caller adds allowances for their own turns alone.

use super::handler::{Answer, Api, Body, Caller, Reply};
use super::{agents, tokens};
use crate::gateway::requests::allowance::{self, New};
use crate::registry::allowances::Allowance as Row;
use crate::registry::{self, Person, mcp, roles};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::AgentId;
use ironclaw_judge::egress::Loopback;
use ironclaw_operator::{
    Allowance, AllowanceDraft, AllowanceOffer, AllowancePage, AllowanceStatus, DenialCode, NewAllowance,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Query of `GET /v1/allowances`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListQuery {
    /// An agent by name or id; only its allowances.
    #[serde(default)]
    agent: Option<String>,
}

/// `GET /v1/allowances?agent=A`: the caller's allowances; for an owner or admin everyone's.
pub async fn list(Caller { api, person, .. }: Caller, Query(query): Query<ListQuery>) -> Reply<Vec<Allowance>> {
    let agent: Option<AgentId> = match query.agent {
        Some(agent) => Some(agents::find(&api, &person, agent).await?.id),
        None => None,
    };
    let found = api.state().read(move |tx| {
        let mut seen = allowance::seen(tx, &person)?;
        seen.retain(|row| agent.is_none_or(|agent| agent == row.agent));
        seen.iter().map(|row| view(tx, row)).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(found.await.map_err(|error: ironclaw_state::Error| Answer::from(error))?))
}

/// `GET /v1/allowances/offers`: the allowances that the caller's own decisions suggest.
pub async fn offers(Caller { api, person, .. }: Caller) -> Reply<Vec<AllowanceOffer>> {
    let (record, loopback) = (Arc::clone(&api.record), loopback(&api));
    let found = api.state().read(move |tx| allowance::offers(tx, &record, &person, loopback));
    Ok(Json(found.await?.into_iter().map(offer).collect()))
}

fn offer(found: allowance::Offer) -> AllowanceOffer {
    let allowance::Offer { new, messages, days, compared } = found;
    let (until, New { agent, tool, fields, count, .. }) = (allowance::UNTIL.to_owned(), new);
    AllowanceOffer {
        draft: AllowanceDraft { agent: agent.name, tool, fields: Value::Object(fields), count, until },
        messages: messages as u64,
        days: days as u64,
        since: compared.since.map(ironclaw_ledger::rfc3339),
        compared: compared.read,
        unread: compared.unread,
        permitted: compared.permitted,
    }
}

fn loopback(api: &Api) -> Loopback {
    api.gateway.now().host_policy.egress.loopback()
}

/// `GET /v1/allowances/{id}`
pub async fn show(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<Allowance> {
    let id = number(&named)?;
    let found = api.state().read(move |tx| {
        let row = allowance::known(tx, &person, id)?;
        Ok::<_, Denied<Error>>(view(tx, &row)?)
    });
    Ok(Json(found.await?))
}

/// `DELETE /v1/allowances/{id}`
pub async fn remove(Caller { api, person, .. }: Caller, Path(named): Path<String>) -> Reply<Allowance> {
    let id = number(&named)?;
    let removed = api.state().decide(move |tx| {
        let row = allowance::remove(tx, &person, id)?;
        Ok::<_, Denied<Error>>(view(tx, &row)?)
    });
    Ok(Json(removed.await?))
}

/// `POST /v1/allowances/review`: the page of a new allowance. Records nothing.
pub async fn review(Caller { api, person, .. }: Caller, Body(draft): Body<AllowanceDraft>) -> Reply<AllowancePage> {
    let new = read(&api, &person, draft).await?;
    let record = Arc::clone(&api.record);
    let until = ironclaw_ledger::rfc3339(new.until);
    let shown = api.state().read(move |tx| allowance::show(tx, &record, &person, &new)).await?;
    let allowance::Shown { text, digest, compared, .. } = shown;
    Ok(Json(AllowancePage {
        shown: text,
        shown_digest: digest,
        until,
        compared: compared.read,
        permitted: compared.permitted,
    }))
}

/// `POST /v1/allowances`: adds an allowance exactly as shown, for the turns of the caller.
pub async fn add(Caller { api, person, .. }: Caller, Body(new): Body<NewAllowance>) -> Reply<Allowance> {
    let NewAllowance { draft, shown } = new;
    let new = read(&api, &person, draft).await?;
    let record = Arc::clone(&api.record);
    let added = api.state().decide(move |tx| {
        let row = allowance::add(tx, &record, &person, &new, &shown)?;
        Ok::<_, Denied<Error>>(view(tx, &row)?)
    });
    Ok(Json(added.await?))
}

/// Reads a draft: the agent that the caller may talk to, and the end of the allowance.
async fn read(api: &Api, person: &Person, draft: AllowanceDraft) -> Result<New, Answer> {
    let AllowanceDraft { agent, tool, fields, count, until } = draft;
    let agent = agents::find(api, person, agent).await?;
    let (by, of) = (person.clone(), agent.clone());
    let talks = api.state().read(move |tx| Ok::<_, Error>(roles::role_for(tx, &by, &of)?.may_talk()));
    if !talks.await? {
        return Err(crate::channels::inbound::routing::not_yours(&agent).into());
    }
    let until = tokens::end_of(&until, ironclaw_state::wall_clock())?;
    let Value::Object(mut fields) = fields else {
        return Err(Refusal::new(DenialCode::AllowanceFields, "the fields are no JSON object").into());
    };
    let of = agent.clone();
    let catalogue = api.state().read(move |tx| Ok::<_, Error>(mcp::catalogue(tx, &of)?)).await?;
    let tool = catalogue.known_name(&tool).unwrap_or(tool);
    if let Some(schema) = catalogue.parameters(&tool) {
        allowance::read_texts(&mut fields, schema);
    }
    Ok(New { agent, tool, fields, count, until, loopback: loopback(api) })
}

fn number(named: &str) -> Result<i64, Answer> {
    Ok(named.parse().map_err(|_| allowance::unknown(named))?)
}

pub(super) fn view(tx: &ReadTx<'_>, row: &Row) -> Result<Allowance, ironclaw_state::Error> {
    let agent = registry::agent_name(tx, row.agent)?;
    let (mut status, mut control, mut names) = (AllowanceStatus::Outdated, BTreeSet::new(), BTreeSet::new());
    for tool in row.tools.keys() {
        let terms = mcp::terms(tx, row.agent, tool)?;
        // It permits calls of each tool that is as its page showed it.
        if status == AllowanceStatus::Outdated {
            status = allowance::status_now(tx, row, terms.as_ref())?;
        }
        let manifest = terms.as_ref().map(|terms| &*terms.manifest).filter(|_| row.root.is_none());
        control.extend(manifest.into_iter().flat_map(allowance::control_fields).cloned());
        names.extend(manifest.into_iter().flat_map(|manifest| manifest.arguments.keys()).cloned());
    }
    Ok(Allowance {
        id: row.id.unsigned_abs(),
        status,
        person: registry::person_name(tx, row.person)?,
        agent,
        principal: ironclaw_judge::Principal::Person,
        tools: row.tools.clone(),
        until_answer_to: row.root,
        fields: Value::Object(row.fields.clone()),
        absent: control.iter().filter(|name| !row.fields.contains_key(*name)).cloned().collect(),
        anything: names.difference(&control).cloned().collect(),
        lifts: allowance::lifted(row).to_vec(),
        count: row.uses_max,
        used: row.uses,
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
    })
}
