//! How much of its models a host, an agent and a session may use, and whether a request still fits.
//!
//! Decides before a request is made and takes nothing back afterwards: what was used is used. Next: `turns::budget::book` for where it
//! is written down, `model_socket::requests` for who asks.
//!
//! A request is let through when what is used and what it is thought to take stay within every ceiling. What it really takes is
//! known when it is over: one request can pass a ceiling by what its prompt was thought too small and by its output beyond
//! [`OUTPUT_TOKENS_BOOKED`]; none is made after that.

pub mod book;

use ironclaw_ledger::rfc3339;
use ironclaw_model::endpoint::Prices;
use ironclaw_model::{Allowance, Prompt, Usage};
use serde::Deserialize;
use std::fmt;

pub use crate::tables::models::{OwnCeilings as Own, Spent};
pub use ironclaw_model::OUTPUT_TOKENS_BOOKED;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// `[budget]`: ceilings; 0 is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Tokens of all agents on one day.
    pub tokens_per_day: u64,
    /// What all agents may cost on one day, in millionths of the currency of the prices.
    pub cost_per_day_micros: u64,
    /// Tokens of one agent on one day, where the agent has no ceiling of its own.
    pub tokens_per_agent_day: u64,
    /// What one agent may cost on one day, where it has no ceiling of its own.
    pub cost_per_agent_day_micros: u64,
    /// Tokens of one session in its whole life.
    pub tokens_per_session: u64,
}

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// Tokens of the host on one day.
    TokensPerDay,
    /// Cost of the host on one day.
    CostPerDay,
    /// Tokens of the agent on one day.
    TokensPerAgentDay,
    /// Cost of the agent on one day.
    CostPerAgentDay,
    /// Tokens of the session.
    TokensPerSession,
}

impl Ceiling {
    /// As in the ledger and in `ironctl usage`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokensPerDay => "tokens_per_day",
            Self::CostPerDay => "cost_per_day",
            Self::TokensPerAgentDay => "tokens_per_agent_day",
            Self::CostPerAgentDay => "cost_per_agent_day",
            Self::TokensPerSession => "tokens_per_session",
        }
    }

    /// Whether it begins anew at midnight UTC.
    pub const fn is_daily(self) -> bool {
        match self {
            Self::TokensPerDay | Self::CostPerDay | Self::TokensPerAgentDay | Self::CostPerAgentDay => true,
            Self::TokensPerSession => false,
        }
    }

    /// Whether it counts millionths of a currency.
    pub const fn is_cost(self) -> bool {
        match self {
            Self::CostPerDay | Self::CostPerAgentDay => true,
            Self::TokensPerDay | Self::TokensPerAgentDay | Self::TokensPerSession => false,
        }
    }
}

/// A ceiling that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Of what.
    pub ceiling: Ceiling,
    /// How much: tokens or millionths of a currency.
    pub limit: u64,
}

/// The ceilings that hold for an agent: those of the settings, and the agent's own in place of the settings' for agents.
pub fn limits(config: &Config, own: Own) -> Vec<Limit> {
    [
        (Ceiling::TokensPerDay, config.tokens_per_day),
        (Ceiling::CostPerDay, config.cost_per_day_micros),
        (Ceiling::TokensPerAgentDay, own.tokens_per_day.unwrap_or(config.tokens_per_agent_day)),
        (Ceiling::CostPerAgentDay, own.cost_per_day_micros.unwrap_or(config.cost_per_agent_day_micros)),
        (Ceiling::TokensPerSession, config.tokens_per_session),
    ]
    .into_iter()
    .filter(|(_, limit)| *limit > 0)
    .map(|(ceiling, limit)| Limit { ceiling, limit })
    .collect()
}

impl Spent {
    /// The part of it that a ceiling counts.
    pub const fn of(self, ceiling: Ceiling) -> u64 {
        if ceiling.is_cost() { self.cost_micros } else { self.tokens }
    }
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        Self { tokens: usage.input_tokens.saturating_add(usage.output_tokens), cost_micros: usage.cost_micros }
    }
}

/// A ceiling that a request would pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Which.
    pub limit: Limit,
    /// How much of it is used.
    pub used: u64,
    /// How much more the request is thought to take.
    pub needed: u64,
}

/// Whether a request that is thought to take `estimate` stays within every ceiling, each with what is used of it.
///
/// # Errors
/// The first that it does not stay within.
pub fn judge(used: &[(Limit, u64)], estimate: Spent) -> Result<(), Exceeded> {
    for (limit, used) in used.iter().copied() {
        let needed = estimate.of(limit.ceiling);
        // Where nothing is counted, as with a model that costs nothing, nothing is needed and nothing is passed.
        if needed > 0 && used.saturating_add(needed) > limit.limit {
            return Err(Exceeded { limit, used, needed });
        }
    }
    Ok(())
}

impl Exceeded {
    /// What the person reads: which ceiling, when it begins anew, and what the operator can do.
    pub fn sentence(&self, agent: &str, now: i64) -> String {
        let Self { limit: Limit { ceiling, limit }, used, needed } = *self;
        let (whose, raise) = match ceiling {
            Ceiling::TokensPerDay => ("this host's", "`budget.tokens_per_day` in its config.toml".to_owned()),
            Ceiling::CostPerDay => ("this host's", "`budget.cost_per_day_micros` in its config.toml".to_owned()),
            Ceiling::TokensPerAgentDay => {
                ("this agent's", format!("`ironctl agent set {agent} --tokens-per-day NUMBER`"))
            }
            Ceiling::CostPerAgentDay => ("this agent's", format!("`ironctl agent set {agent} --cost-per-day AMOUNT`")),
            Ceiling::TokensPerSession => {
                ("this conversation's", "`budget.tokens_per_session` in the host's config.toml".to_owned())
            }
        };
        let show = |amount| Amount { ceiling, amount };
        let period = if ceiling.is_daily() { " a day" } else { "" };
        let kind = if ceiling.is_cost() { "cost" } else { "tokens" };
        let again = match ceiling.is_daily() {
            true => format!("it begins anew at {} (midnight UTC)", rfc3339(day_end(day_of(now)))),
            false => "it does not begin anew: another conversation is begun with `--thread NAME`".to_owned(),
        };
        format!(
            "{whose} ceiling for {kind}, {}{period}, is reached: {} used, and the next request needs about {} more; {again}. \
             Whoever runs this host can raise it: {raise}",
            show(limit),
            show(used),
            show(needed),
        )
    }
}

/// An amount as people read it: a number of tokens, or a sum of money.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// What is counted.
    pub ceiling: Ceiling,
    /// How much.
    pub amount: u64,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ceiling.is_cost() {
            true => write!(f, "{}.{:06}", self.amount / 1_000_000, self.amount % 1_000_000),
            false => write!(f, "{}", self.amount),
        }
    }
}

/// The day in UTC, counted from the epoch.
pub const fn day_of(now: i64) -> i64 {
    now.div_euclid(DAY_MS)
}

/// When a day is over, milliseconds since the epoch.
pub const fn day_end(day: i64) -> i64 {
    (day + 1) * DAY_MS
}

/// What a request with this prompt is thought to take of the dearest of these.
pub fn estimate(prompt: &Prompt, prices: impl Iterator<Item = Prices>) -> Usage {
    let dearest = prices.max_by_key(|prices| prompt.estimate(*prices).cost_micros);
    prompt.estimate(dearest.unwrap_or_default())
}

/// What is left of every ceiling for one request with all its tries, each ceiling with what is used of it.
pub fn allowance(used: &[(Limit, u64)]) -> Allowance {
    let left = |is_cost: bool| {
        let of = used.iter().filter(|(limit, _)| limit.ceiling.is_cost() == is_cost);
        of.map(|(limit, used)| limit.limit.saturating_sub(*used)).min().unwrap_or(u64::MAX)
    };
    Allowance { tokens: left(false), cost_micros: left(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(limit: u64, used: u64) -> (Limit, u64) {
        (Limit { ceiling: Ceiling::TokensPerDay, limit }, used)
    }

    #[test]
    fn request_over_a_ceiling_is_refused_and_one_that_fits_is_not() {
        let estimate = Spent { tokens: 10, cost_micros: 5 };
        assert_eq!(judge(&[], estimate), Ok(()));
        assert_eq!(judge(&[tokens(100, 90)], estimate), Ok(()));
        let exceeded = judge(&[tokens(200, 90), tokens(100, 91)], estimate).expect_err("over");
        assert_eq!((exceeded.limit.limit, exceeded.used, exceeded.needed), (100, 91, 10));
        assert!(judge(&[tokens(99, u64::MAX)], estimate).is_err(), "it does not wrap");
        let cost = Limit { ceiling: Ceiling::CostPerDay, limit: 5 };
        assert_eq!(judge(&[(cost, 0)], estimate), Ok(()));
        assert!(judge(&[(cost, 1)], estimate).is_err());
        assert_eq!(judge(&[(cost, 9)], Spent { cost_micros: 0, ..estimate }), Ok(()), "what costs nothing goes on");
    }

    #[test]
    fn allowance_is_the_least_that_any_ceiling_leaves() {
        assert_eq!(allowance(&[]), Allowance::NONE);
        let cost = Limit { ceiling: Ceiling::CostPerDay, limit: 50 };
        let allowance = allowance(&[tokens(100, 90), tokens(200, 110), (cost, 60)]);
        assert_eq!(allowance, Allowance { tokens: 10, cost_micros: 0 });
        let took = |tokens, cost_micros| Usage { input_tokens: tokens, output_tokens: 0, cost_micros };
        assert!(allowance.has_room(took(4, 0), took(6, 0)) && !allowance.has_room(took(5, 0), took(6, 0)));
        assert!(!allowance.has_room(took(0, 0), took(1, 1)), "no cost is left");
    }

    #[test]
    fn agents_own_ceiling_replaces_the_one_of_the_settings() {
        let config = Config { tokens_per_agent_day: 5, tokens_per_session: 7, ..Config::default() };
        let set = |own| limits(&config, own).iter().map(|limit| (limit.ceiling, limit.limit)).collect::<Vec<_>>();
        assert_eq!(set(Own::default()), [(Ceiling::TokensPerAgentDay, 5), (Ceiling::TokensPerSession, 7)]);
        let own = Own { tokens_per_day: Some(9), cost_per_day_micros: Some(3) };
        let expected = [(Ceiling::TokensPerAgentDay, 9), (Ceiling::CostPerAgentDay, 3), (Ceiling::TokensPerSession, 7)];
        assert_eq!(set(own), expected);
        assert!(limits(&Config::default(), Own::default()).is_empty());
    }

    #[test]
    fn the_person_reads_which_ceiling_when_it_ends_and_what_to_do() {
        let limit = Limit { ceiling: Ceiling::TokensPerAgentDay, limit: 1000 };
        let words = Exceeded { limit, used: 990, needed: 300 }.sentence("clerk", 1_790_000_000_000);
        assert!(words.contains("this agent's ceiling for tokens, 1000 a day, is reached: 990 used"), "{words}");
        assert!(words.contains("2026-09-22T00:00:00.000Z (midnight UTC)"), "{words}");
        assert!(words.contains("`ironctl agent set clerk --tokens-per-day NUMBER`"), "{words}");
        let limit = Limit { ceiling: Ceiling::CostPerDay, limit: 2_500_000 };
        let words = Exceeded { limit, used: 2_499_999, needed: 300 }.sentence("clerk", 0);
        assert!(words.contains("for cost, 2.500000 a day, is reached: 2.499999 used"), "{words}");
    }
}
