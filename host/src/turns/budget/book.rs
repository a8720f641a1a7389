//! What was used, by day, agent, session and endpoint: booked before a request is made, and put right when it is over.
//!
//! A crash between the two leaves what was thought, which may be less than what was spent; no request is left out. Never
//! judges. Next: `turns::budget::judge`.

use super::{Ceiling, Config, Limit, Own, Spent, day_of, limits};
use crate::gateway::decide::proof::Approved;
use crate::registry::approved_entry;
use ironclaw_contract::ids::{AgentId, SessionId};
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_contract::seam::limits::CEILING_MAX;
use ironclaw_model::Usage;
use ironclaw_state::{ReadTx, WriteTx};
use rusqlite::{OptionalExtension, params};

/// Days that are looked back at most.
pub const DAYS_MAX: u32 = 3_650;

/// Lines in one answer.
pub const ROWS_MAX: u32 = 5_000;

/// What one request, or one ceiling, can be at most: a million millions.
pub const COUNT_MAX: u64 = CEILING_MAX;

/// A request that is booked and not over yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booked {
    day: i64,
    agent: AgentId,
    session: SessionId,
    model: String,
    /// What it is thought to take.
    pub estimate: Usage,
}

/// Books what a request is thought to take, before it is made.
pub fn book(
    tx: &mut WriteTx<'_>,
    agent: AgentId,
    session: SessionId,
    model: &str,
    estimate: Usage,
) -> Result<Booked, ironclaw_state::Error> {
    let booked = Booked { day: day_of(tx.wall()), agent, session, model: model.to_owned(), estimate };
    add(tx, &booked, model, 1, estimate, Usage::default())?;
    Ok(booked)
}

/// Puts what a request took in the place of what it was thought to take; `model` is the endpoint that answered.
pub fn settle(tx: &mut WriteTx<'_>, booked: &Booked, model: &str, took: Usage) -> Result<(), ironclaw_state::Error> {
    if model == booked.model {
        return add(tx, booked, model, 0, took, booked.estimate);
    }
    add(tx, booked, &booked.model, -1, Usage::default(), booked.estimate)?;
    add(tx, booked, model, 1, took, Usage::default())
}

fn add(
    tx: &ReadTx<'_>,
    booked: &Booked,
    model: &str,
    requests: i64,
    more: Usage,
    less: Usage,
) -> Result<(), ironclaw_state::Error> {
    let change = |more: u64, less: u64| bounded(more).saturating_sub(bounded(less));
    tx.db()
        .prepare_cached(
            "INSERT INTO usage (day, agent_id, session_id, model, requests, input_tokens, output_tokens, cost_micros) \
             VALUES (?1,?2,?3,?4,max(?5,0),max(?6,0),max(?7,0),max(?8,0)) ON CONFLICT DO UPDATE SET \
             requests = max(requests + ?5, 0), input_tokens = max(input_tokens + ?6, 0), \
             output_tokens = max(output_tokens + ?7, 0), cost_micros = max(cost_micros + ?8, 0)",
        )?
        .execute(params![
            booked.day,
            booked.agent,
            booked.session,
            model,
            requests,
            change(more.input_tokens, less.input_tokens),
            change(more.output_tokens, less.output_tokens),
            change(more.cost_micros, less.cost_micros),
        ])?;
    if requests < 0 {
        let sql = "DELETE FROM usage WHERE day = ?1 AND agent_id = ?2 AND session_id = ?3 AND model = ?4 AND requests = 0 \
                   AND input_tokens = 0 AND output_tokens = 0 AND cost_micros = 0";
        tx.db().prepare_cached(sql)?.execute(params![booked.day, booked.agent, booked.session, model])?;
    }
    Ok(())
}

/// No provider's count of one request, however wrong, makes a sum that wraps.
fn bounded(count: u64) -> i64 {
    count.min(COUNT_MAX) as i64
}

/// The ceilings that hold for a session of an agent, each with what is used of it now.
pub fn used(
    tx: &ReadTx<'_>,
    config: &Config,
    agent: AgentId,
    session: SessionId,
) -> Result<Vec<(Limit, u64)>, ironclaw_state::Error> {
    let today = day_of(tx.wall());
    let mut used = Vec::new();
    for limit in limits(config, own(tx, agent)?) {
        let spent = match limit.ceiling {
            Ceiling::TokensPerDay | Ceiling::CostPerDay => of_day(tx, today)?,
            Ceiling::TokensPerAgentDay | Ceiling::CostPerAgentDay => of_agent_day(tx, today, agent)?,
            Ceiling::TokensPerSession => of_session(tx, session)?,
        };
        used.push((limit, spent.of(limit.ceiling)));
    }
    Ok(used)
}

/// What was used on a day.
pub fn of_day(tx: &ReadTx<'_>, day: i64) -> Result<Spent, ironclaw_state::Error> {
    sum(tx, "day = ?1", params![day])
}

/// What an agent used on a day.
pub fn of_agent_day(tx: &ReadTx<'_>, day: i64, agent: AgentId) -> Result<Spent, ironclaw_state::Error> {
    sum(tx, "day = ?1 AND agent_id = ?2", params![day, agent])
}

/// What a session has used.
pub fn of_session(tx: &ReadTx<'_>, session: SessionId) -> Result<Spent, ironclaw_state::Error> {
    sum(tx, "session_id = ?1", params![session])
}

fn sum(tx: &ReadTx<'_>, which: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Spent, ironclaw_state::Error> {
    let sql = format!(
        "SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost_micros), 0) FROM usage WHERE {which}"
    );
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Spent { tokens: row.get::<_, i64>(0)? as u64, cost_micros: row.get::<_, i64>(1)? as u64 })
    };
    Ok(tx.db().prepare_cached(&sql)?.query_row(values, read)?)
}

/// A line of the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The day in UTC, counted from the epoch.
    pub day: i64,
    /// The agent; it may be gone.
    pub agent: AgentId,
    /// Its name, if it is there.
    pub agent_name: Option<String>,
    /// The session; it may be gone.
    pub session: SessionId,
    /// The endpoint.
    pub model: String,
    /// Requests.
    pub requests: u64,
    /// What they took.
    pub took: Usage,
}

/// The lines of the last days, the newest day first; of one agent or one session only, if named.
pub fn rows(
    tx: &ReadTx<'_>,
    days: u32,
    agent: Option<AgentId>,
    session: Option<SessionId>,
) -> Result<Vec<Row>, ironclaw_state::Error> {
    let since = day_of(tx.wall()) - i64::from(days.clamp(1, DAYS_MAX)) + 1;
    let sql = "SELECT usage.*, agents.name FROM usage LEFT JOIN agents ON agents.id = usage.agent_id \
               WHERE day >= ?1 AND (?2 IS NULL OR agent_id = ?2) AND (?3 IS NULL OR session_id = ?3) \
               ORDER BY day DESC, agents.name, agent_id, session_id, usage.model LIMIT ?4";
    let mut statement = tx.db().prepare_cached(sql)?;
    let count = |row: &rusqlite::Row<'_>, column: &str| row.get::<_, i64>(column).map(|count| count as u64);
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Row {
            day: row.get("day")?,
            agent: row.get("agent_id")?,
            agent_name: row.get("name")?,
            session: row.get("session_id")?,
            model: row.get("model")?,
            requests: count(row, "requests")?,
            took: Usage {
                input_tokens: count(row, "input_tokens")?,
                output_tokens: count(row, "output_tokens")?,
                cost_micros: count(row, "cost_micros")?,
            },
        })
    };
    let rows = statement.query_map(params![since, agent, session, ROWS_MAX], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// An agent's own ceilings.
pub fn own(tx: &ReadTx<'_>, agent: AgentId) -> Result<Own, ironclaw_state::Error> {
    let sql = "SELECT tokens_per_day, cost_per_day_micros FROM agent_budgets WHERE agent_id = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let limit = |at| row.get::<_, Option<i64>>(at).map(|limit| limit.map(|limit| limit as u64));
        Ok(Own { tokens_per_day: limit(0)?, cost_per_day_micros: limit(1)? })
    };
    Ok(tx.db().prepare_cached(sql)?.query_row([agent], read).optional()?.unwrap_or_default())
}

/// Sets an agent's own ceilings.
pub fn set_own(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: AgentId,
    own: Own,
) -> Result<(), ironclaw_state::Error> {
    let sql = "INSERT OR REPLACE INTO agent_budgets (agent_id, tokens_per_day, cost_per_day_micros) VALUES (?1,?2,?3)";
    let [tokens, cost] = [own.tokens_per_day, own.cost_per_day_micros].map(|limit| limit.map(bounded));
    tx.db().execute(sql, params![agent, tokens, cost])?;
    approved_entry(LedgerEvent::AgentBudget, approved)
        .with("agent", agent)
        .with("tokens_per_day", tokens)
        .with("cost_per_day_micros", cost)
        .append(tx)?;
    Ok(())
}

/// Forgets the ceilings of an agent that is removed; what it used stays.
pub fn forget(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<(), ironclaw_state::Error> {
    tx.db().execute("DELETE FROM agent_budgets WHERE agent_id = ?1", [agent])?;
    Ok(())
}
