//! The use of models by day, agent, session and endpoint: an estimate is booked before a request and replaced at its end.
//!
//! A crash in between leaves the estimate, which may be less than the real use; no request is missing. Never judges. See
//! [`crate::turns::budget::judge`].

use super::{Ceiling, Config, Limit, chain_limit, day_of, limits};
use ironclaw_contract::ids::{AgentId, SessionId, TurnId};
use ironclaw_contract::seam::limits::CEILING_MAX;
use ironclaw_model::Usage;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables::agent_messages;
use ironclaw_store::tables::models::{self as table, UsageChange, UsageKey};

pub use ironclaw_store::tables::models::{
    UsagePart, UsageRow as Row, delete_own_ceilings as forget, own_ceilings as own, used_in_session, used_on_day,
    used_on_day_by,
};

/// Days that one answer covers at most.
pub const DAYS_MAX: u32 = 3_650;

/// Lines in one answer.
pub const ROWS_MAX: u32 = 5_000;

/// Largest count of one request or one ceiling: a million millions.
pub const COUNT_MAX: u64 = CEILING_MAX;

/// A request that is booked and in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booked {
    day: i64,
    agent: AgentId,
    session: SessionId,
    turn: TurnId,
    model: String,
    pub estimate: Usage,
}

/// Books the estimated use of a request before the request.
pub fn book(
    tx: &mut WriteTx<'_>,
    agent: AgentId,
    session: SessionId,
    turn: TurnId,
    model: &str,
    estimate: Usage,
) -> Result<Booked, ironclaw_state::Error> {
    let booked = Booked { day: day_of(tx.wall()), agent, session, turn, model: model.to_owned(), estimate };
    add(tx, &booked, model, 1, estimate, Usage::default())?;
    Ok(booked)
}

/// Replaces the estimate of a request by its real use; `model` is the endpoint that answered.
pub fn replace_estimate(
    tx: &mut WriteTx<'_>,
    booked: &Booked,
    model: &str,
    took: Usage,
) -> Result<(), ironclaw_state::Error> {
    if model == booked.model {
        return add(tx, booked, model, 0, took, booked.estimate);
    }
    add(tx, booked, &booked.model, -1, Usage::default(), booked.estimate)?;
    add(tx, booked, model, 1, took, Usage::default())
}

fn add(
    tx: &mut WriteTx<'_>,
    booked: &Booked,
    model: &str,
    requests: i64,
    more: Usage,
    less: Usage,
) -> Result<(), ironclaw_state::Error> {
    let change = |more: u64, less: u64| bounded(more).saturating_sub(bounded(less));
    let key = UsageKey { day: booked.day, agent: booked.agent, session: booked.session, model };
    let change = UsageChange {
        requests,
        input_tokens: change(more.input_tokens, less.input_tokens),
        output_tokens: change(more.output_tokens, less.output_tokens),
        cost_micros: change(more.cost_micros, less.cost_micros),
    };
    table::change_usage(tx, key, change)?;
    let tokens = change.input_tokens.saturating_add(change.output_tokens);
    agent_messages::add_tokens(tx, booked.turn, tokens)?;
    if requests < 0 {
        table::delete_empty_usage(tx, key)?;
    }
    Ok(())
}

/// Bounds a count of a provider, so that even a wrong count cannot make a sum overflow.
fn bounded(count: u64) -> i64 {
    count.min(COUNT_MAX) as i64
}

/// Returns the ceilings of a session of an agent, each with the amount that is used now.
pub fn used(
    tx: &ReadTx<'_>,
    config: &Config,
    agent: AgentId,
    session: SessionId,
    turn: TurnId,
) -> Result<Vec<(Limit, u64)>, ironclaw_state::Error> {
    let today = day_of(tx.wall());
    let mut used = Vec::new();
    for limit in limits(config, own(tx, agent)?) {
        let spent = match limit.ceiling {
            Ceiling::TokensPerDay | Ceiling::CostPerDay => used_on_day(tx, today)?,
            Ceiling::TokensPerAgentDay | Ceiling::CostPerAgentDay => used_on_day_by(tx, today, agent)?,
            Ceiling::TokensPerSession => used_in_session(tx, session)?,
            // No limit of an agent.
            Ceiling::TokensPerChain => continue,
        };
        used.push((limit, limit.counted(spent)));
    }
    if let (Some(limit), Some(chain)) = (chain_limit(config), agent_messages::chain_of_turn(tx, turn)?) {
        used.push((limit, agent_messages::tokens_of(tx, chain)?));
    }
    Ok(used)
}

/// Returns the lines of a part of the usage in the last days, newest day first.
pub fn rows(tx: &ReadTx<'_>, days: u32, of: UsagePart) -> Result<Vec<Row>, ironclaw_state::Error> {
    let since = day_of(tx.wall()) - i64::from(days.clamp(1, DAYS_MAX)) + 1;
    table::usage(tx, since, of, ROWS_MAX + 1)
}
