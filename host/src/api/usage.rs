//! The usage of models, and the ceilings, over the API.
//!
//! Counts and ids, never content. See `turns::budget::book`.

use super::agents;
use super::handler::{Answer, Api, Body, Caller, Reply};
use crate::registry::{self, Person, Role};
use crate::sessions::store;
use crate::turns::budget::book::UsagePart;
use crate::turns::budget::{self, Ceiling, Limit, OwnCeilings, book};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::SessionId;
use ironclaw_contract::seam::change::Settings;
use ironclaw_ledger::rfc3339;
use ironclaw_model::endpoint::{Endpoints, Kind};
use ironclaw_operator::{self as operator, AgentBudget, Usage, UsageRow};
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Refusal;
use serde::Deserialize;
use std::sync::Arc;

/// A ceiling is nearly reached when less than one part in this many is left.
const NEAR_SHARE: u64 = 10;

/// Query of `GET /v1/usage`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct UsageQuery {
    /// The number of days, with today; at most 3650, by default 7.
    #[serde(default = "usual_days")]
    #[cfg_attr(test, schema(required = false))]
    days: u32,
    /// An agent by name or id; only its usage.
    #[serde(default)]
    agent: Option<String>,
    /// A session; only its usage.
    #[serde(default)]
    session: Option<String>,
}

const fn usual_days() -> u32 {
    7
}

impl UsageQuery {
    /// Returns the query of today's usage.
    pub(super) const fn today() -> Self {
        Self { days: 1, agent: None, session: None }
    }
}

/// `GET /v1/usage?days=N&agent=A&session=S`: an operator sees all, a member the usage of the sessions that they began.
pub async fn show(Caller { api, person, .. }: Caller, Query(query): Query<UsageQuery>) -> Reply<Usage> {
    let agent = agents::find_by_filter(&api, &person, query.agent).await?;
    let session = match query.session {
        Some(session) => Some(named_session(&api, &person, &session).await?),
        None => None,
    };
    let of = UsagePart { agent, session, person: (!person.role.covers(Role::Admin)).then_some(person.id) };
    let (gateway, models) = (Arc::clone(&api.gateway), Arc::clone(&api.models));
    let usage = api.state().read(move |tx| {
        let endpoints = models.current();
        let mut rows = book::rows(tx, query.days, of)?;
        let more = rows.len() > book::ROWS_MAX as usize;
        rows.truncate(book::ROWS_MAX as usize);
        let rows = rows.into_iter().map(|found| row(found, &endpoints)).collect();
        let ceilings = ceilings(tx, &gateway.now().host_policy.budget, of)?;
        Ok::<_, Error>(Usage { rows, more, ceilings })
    });
    Ok(Json(usage.await?))
}

/// Returns the session of this id, which may be removed. A member can name only one that they began.
async fn named_session(api: &Api, person: &Person, named: &str) -> Result<SessionId, Answer> {
    let Ok(session) = named.parse::<SessionId>() else { return Err(Answer::noted(store::unknown(named))) };
    let by = person.id;
    if person.role.covers(Role::Admin) || api.state().read(move |tx| store::was_of(tx, by, session)).await? {
        return Ok(session);
    }
    Err(Answer::noted(store::unknown(named)))
}

fn row(row: book::Row, endpoints: &Endpoints) -> UsageRow {
    let scripted = endpoints.get(&row.model).is_some_and(|endpoint| endpoint.spec.kind == Kind::Scripted);
    UsageRow {
        day: rfc3339(budget::day_end(row.day - 1)).chars().take_while(|c| *c != 'T').collect(),
        agent: registry::name_or_id(row.agent_name, row.agent),
        agent_id: row.agent,
        session_id: row.session,
        model: row.model,
        scripted,
        requests: row.requests,
        input_tokens: row.input_tokens,
        output_tokens: row.output_tokens,
        cost_micros: row.cost_micros,
    }
}

/// Returns every ceiling that is set: of the host, of each agent, and of each present session; or only of the named ones. The ceilings of
/// the host and of agents show the use of everyone, so a member gets only those of their own sessions.
pub(super) fn ceilings(
    tx: &ReadTx<'_>,
    config: &budget::Config,
    of: UsagePart,
) -> Result<Vec<operator::Ceiling>, Error> {
    let today = budget::day_of(tx.wall());
    let until = rfc3339(budget::day_end(today));
    let shown = |Limit { ceiling, limit }: Limit, of: Option<String>, used: u64| operator::Ceiling {
        name: ceiling,
        of,
        limit,
        used,
        left: limit.saturating_sub(used),
        until: ceiling.is_daily().then(|| until.clone()),
    };
    let mut ceilings = Vec::new();
    let host = if of.person.is_none() { budget::limits(config, OwnCeilings::default()) } else { Vec::new() };
    for limit in host {
        if matches!(limit.ceiling, Ceiling::TokensPerDay | Ceiling::CostPerDay) {
            ceilings.push(shown(limit, None, limit.counted(book::used_on_day(tx, today)?)));
        }
    }
    let agents = if of.person.is_none() { registry::agents(tx)? } else { Vec::new() };
    for found in agents.into_iter().filter(|found| of.agent.is_none_or(|agent| agent == found.id)) {
        for limit in budget::limits(config, book::own(tx, found.id)?) {
            if matches!(limit.ceiling, Ceiling::TokensPerAgentDay | Ceiling::CostPerAgentDay) {
                let used = limit.counted(book::used_on_day_by(tx, today, found.id)?);
                ceilings.push(shown(limit, Some(found.name.clone()), used));
            }
        }
    }
    let per_session = Limit { ceiling: Ceiling::TokensPerSession, limit: config.tokens_per_session };
    if per_session.limit > 0 {
        let named = |found: &&store::Session| {
            of.agent.is_none_or(|agent| agent == found.agent) && of.session.is_none_or(|session| session == found.id)
        };
        let sessions = match of.person {
            Some(person) => store::list_for_person(tx, person)?,
            None => store::all(tx)?,
        };
        for found in sessions.iter().filter(named) {
            let used = per_session.counted(book::used_in_session(tx, found.id)?);
            ceilings.push(shown(per_session, Some(found.id.to_string()), used));
        }
    }
    Ok(ceilings)
}

/// Returns a warning for each ceiling that is reached or nearly reached, for `status`.
pub async fn reached(api: &Api) -> Result<Vec<String>, Error> {
    let gateway = Arc::clone(&api.gateway);
    let ceilings = move |tx: &ReadTx<'_>| ceilings(tx, &gateway.now().host_policy.budget, UsagePart::default());
    let ceilings = api.state().read(ceilings).await?;
    let said = |ceiling: operator::Ceiling| {
        let state = state_of(&ceiling)?;
        let of = ceiling.of.map(|of| format!(" of {of}")).unwrap_or_default();
        let until = ceiling.until.map(|until| format!(" until {until}")).unwrap_or_default();
        Some(format!("the ceiling {}{of} is {state}{until} (`ironctl usage`)", ceiling.name))
    };
    Ok(ceilings.into_iter().filter_map(said).collect())
}

/// Returns the state of a ceiling that is reached or nearly reached, in words.
fn state_of(ceiling: &operator::Ceiling) -> Option<&'static str> {
    let is_reached = match ceiling.name.is_cost() {
        // Each request books at least this many tokens for its output.
        false => ceiling.left <= budget::OUTPUT_TOKENS_BOOKED,
        true => ceiling.left == 0,
    };
    // The rest may be too little for the next request.
    let is_near = ceiling.left <= ceiling.limit.div_ceil(NEAR_SHARE);
    match (is_reached, is_near) {
        (true, _) => Some("reached: no request goes to a model"),
        (false, true) => Some("nearly reached: requests may be refused"),
        (false, false) => None,
    }
}

/// Returns a warning for each agent with a ceiling of cost that may use an endpoint without prices.
pub async fn unpriced(api: &Api) -> Result<Vec<String>, Error> {
    let (gateway, models) = (Arc::clone(&api.gateway), Arc::clone(&api.models));
    let unpriced = api.state().read(move |tx| {
        let (mut said, endpoints) = (Vec::new(), models.current());
        for agent in registry::agents(tx)? {
            let limits = budget::limits(&gateway.now().host_policy.budget, book::own(tx, agent.id)?);
            if !limits.iter().any(|limit| limit.ceiling.is_cost()) {
                continue;
            }
            for endpoint in endpoints.chain(&agent.model).iter().filter(|endpoint| endpoint.spec.is_unpriced()) {
                let (name, agent) = (&endpoint.spec.name, &agent.name);
                said.push(format!(
                    "the ceiling of cost of agent {agent} has no effect at model endpoint {name}, which has no prices \
                     (`ironctl model add {name} --replace --price-in … --price-out …`)"
                ));
            }
        }
        Ok::<_, Error>(said)
    });
    unpriced.await
}

/// `GET /v1/agents/{agent}/budget`
pub async fn agent_budget(Caller { api, person, .. }: Caller, Path(agent): Path<String>) -> Reply<AgentBudget> {
    let found = agents::find(&api, &person, agent).await?;
    let own = api.state().read(move |tx| book::own(tx, found.id)).await?;
    Ok(Json(view(own)))
}

/// `POST /v1/agents/{agent}/budget`
pub async fn set(
    Caller { api, person, current, .. }: Caller,
    Path(agent): Path<String>,
    Body(new): Body<AgentBudget>,
) -> Reply<AgentBudget> {
    for limit in [new.tokens_per_day, new.cost_per_day_micros].into_iter().flatten() {
        if limit > book::COUNT_MAX {
            let bound =
                Bound::new("tokens or millionths of a ceiling", book::COUNT_MAX, limit, "0 takes a ceiling away");
            return Err(Refusal::over(DenialCode::BudgetTooLarge, bound).into());
        }
    }
    let AgentBudget { tokens_per_day, cost_per_day_micros } = new;
    let found = match (tokens_per_day, cost_per_day_micros) {
        (None, None) => agents::find(&api, &person, agent).await?,
        _ => {
            let wanted = Settings { tokens_per_day, cost_per_day_micros, ..Settings::default() };
            agents::set(&api, &person, current, agent, wanted).await?
        }
    };
    let own = api.state().read(move |tx| book::own(tx, found.id)).await?;
    Ok::<_, Answer>(Json(view(own)))
}

pub(super) fn view(own: OwnCeilings) -> AgentBudget {
    AgentBudget { tokens_per_day: own.tokens_per_day, cost_per_day_micros: own.cost_per_day_micros }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_reached_ceiling_leads_to_a_warning() {
        let state = |name: Ceiling, limit: u64, used: u64| {
            let left = limit.saturating_sub(used);
            state_of(&operator::Ceiling { name, of: None, limit, used, left, until: None })
        };
        assert_eq!(state(Ceiling::TokensPerDay, 100_000, 89_000), None);
        assert!(state(Ceiling::TokensPerDay, 100_000, 95_000).is_some_and(|said| said.starts_with("nearly reached")));
        assert!(state(Ceiling::TokensPerDay, 100_000, 99_500).is_some_and(|said| said.starts_with("reached")));
        assert_eq!(state(Ceiling::CostPerDay, 1_000_000, 500_000), None);
        assert!(state(Ceiling::CostPerDay, 1_000_000, 999_999).is_some_and(|said| said.starts_with("nearly reached")));
        assert!(state(Ceiling::CostPerDay, 1_000_000, 2_000_000).is_some_and(|said| said.starts_with("reached")));
    }
}
