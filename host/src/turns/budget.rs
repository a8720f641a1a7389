//! Ceilings for the use of models by a host, an agent and a session, and the check of a request against them.
//!
//! The check runs before the request, and use is never refunded. [`book`] records the use, and [`crate::calls::model_socket::requests`] calls
//! the check.
//!
//! A request passes if the use so far plus its estimate stays within every ceiling. Its real use is known only at its end. So one
//! request can exceed a ceiling, by the error of the estimate for its prompt and by the output beyond [`OUTPUT_TOKENS_BOOKED`]. The
//! next request is refused.

pub mod book;

use ironclaw_ledger::rfc3339;
use ironclaw_model::endpoint::Spec;
use ironclaw_model::{Allowance, Prompt, Usage};
use ironclaw_store::times::DAY_MS;
use std::fmt;

pub use crate::registry::live_settings::budget::Config;
pub use ironclaw_model::OUTPUT_TOKENS_BOOKED;
pub use ironclaw_operator::CeilingKind as Ceiling;
pub use ironclaw_store::tables::models::{OwnCeilings, Spent};

/// A ceiling that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub ceiling: Ceiling,
    /// The amount: tokens or millionths of a currency.
    pub limit: u64,
}

impl Limit {
    /// Returns the part of this use that it counts.
    pub const fn counted(self, spent: Spent) -> u64 {
        if self.ceiling.is_cost() { spent.cost_micros } else { spent.tokens }
    }
}

/// Returns the ceilings of an agent. Its own ceilings replace those of the settings for agents.
pub fn limits(config: &Config, own: OwnCeilings) -> Vec<Limit> {
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

/// Returns the ceiling of a chain of messages between agents, if it is set.
pub fn chain_limit(config: &Config) -> Option<Limit> {
    let limit = Limit { ceiling: Ceiling::TokensPerChain, limit: config.tokens_per_chain };
    (limit.limit > 0).then_some(limit)
}

/// A ceiling that a request would pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    pub limit: Limit,
    /// The amount that is used.
    pub used: u64,
    /// The estimate for the request.
    pub needed: u64,
}

/// Checks that a request with this estimate stays within every ceiling; `used` has each ceiling with the amount that is used.
///
/// # Errors
/// The first ceiling that the request would exceed.
pub fn judge(used: &[(Limit, u64)], estimate: Spent) -> Result<(), Exceeded> {
    for (limit, used) in used.iter().copied() {
        let needed = limit.counted(estimate);
        // A request that needs nothing exceeds nothing, such as the cost of a free model.
        if needed > 0 && used.saturating_add(needed) > limit.limit {
            return Err(Exceeded { limit, used, needed });
        }
    }
    Ok(())
}

impl Exceeded {
    /// Returns the sentence for the person: the ceiling, the time of its reset, and the remedy of the operator.
    pub fn sentence(&self, agent: &str, now: i64) -> String {
        let Self { limit: Limit { ceiling, limit }, used, needed } = *self;
        let (whose, raise) = match ceiling {
            Ceiling::TokensPerDay => {
                ("this host's", "`budget.tokens_per_day` in its config.toml, then `ironctl config reload`".to_owned())
            }
            Ceiling::CostPerDay => (
                "this host's",
                "`budget.cost_per_day_micros` in its config.toml, then `ironctl config reload`".to_owned(),
            ),
            Ceiling::TokensPerAgentDay => {
                ("this agent's", format!("`ironctl agent set {agent} --tokens-per-day NUMBER`"))
            }
            Ceiling::CostPerAgentDay => ("this agent's", format!("`ironctl agent set {agent} --cost-per-day AMOUNT`")),
            Ceiling::TokensPerSession => (
                "this conversation's",
                "`budget.tokens_per_session` in the host's config.toml, then `ironctl config reload`".to_owned(),
            ),
            Ceiling::TokensPerChain => (
                "this chain of agents'",
                "`budget.tokens_per_chain` in the host's config.toml, then `ironctl config reload`".to_owned(),
            ),
        };
        let show = |amount| Amount { ceiling, amount };
        let period = if ceiling.is_daily() { " a day" } else { "" };
        let kind = if ceiling.is_cost() { "cost" } else { "tokens" };
        let again = match ceiling {
            daily if daily.is_daily() => format!("it resets at {} (midnight UTC)", rfc3339(day_end(day_of(now)))),
            Ceiling::TokensPerChain => "it does not reset: a person has to ask again".to_owned(),
            _ => "it does not reset: start another conversation with `--thread NAME`".to_owned(),
        };
        format!(
            "{whose} ceiling for {kind}, {}{period}, is reached: {} used, and the next request needs about {} more; {again}. \
             The operator of this host can raise it: {raise}",
            show(limit),
            show(used),
            show(needed),
        )
    }
}

/// An amount in the form for people: a number of tokens, or a sum of money.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// The ceiling that counts it.
    pub ceiling: Ceiling,
    /// Tokens or millionths of a currency.
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

/// Returns the day in UTC, counted from the epoch.
pub const fn day_of(now: i64) -> i64 {
    now.div_euclid(DAY_MS)
}

/// Returns the end of a day, milliseconds since the epoch.
pub const fn day_end(day: i64) -> i64 {
    (day + 1) * DAY_MS
}

/// Returns the highest estimate for a request with this prompt to one of these endpoints.
pub fn estimate<'a>(prompt: &Prompt, specs: impl Iterator<Item = &'a Spec>) -> Usage {
    let estimates = specs.map(|spec| spec.estimate(prompt));
    estimates.max_by_key(|usage| (usage.cost_micros, usage.tokens())).unwrap_or_default()
}

/// Returns the rest of the ceilings for one request with all its attempts; `used` has each ceiling with the amount that is used.
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
    fn only_a_request_over_a_ceiling_is_refused() {
        let estimate = Spent { tokens: 10, cost_micros: 5 };
        assert_eq!(judge(&[], estimate), Ok(()));
        assert_eq!(judge(&[tokens(100, 90)], estimate), Ok(()));
        let exceeded = judge(&[tokens(200, 90), tokens(100, 91)], estimate).expect_err("over");
        assert_eq!((exceeded.limit.limit, exceeded.used, exceeded.needed), (100, 91, 10));
        assert!(judge(&[tokens(99, u64::MAX)], estimate).is_err(), "it does not wrap");
        let cost = Limit { ceiling: Ceiling::CostPerDay, limit: 5 };
        assert_eq!(judge(&[(cost, 0)], estimate), Ok(()));
        assert!(judge(&[(cost, 1)], estimate).is_err());
        assert_eq!(judge(&[(cost, 9)], Spent { cost_micros: 0, ..estimate }), Ok(()), "a free request passes");
    }

    #[test]
    fn allowance_is_the_smallest_rest_of_the_ceilings() {
        assert_eq!(allowance(&[]), Allowance::NONE);
        let cost = Limit { ceiling: Ceiling::CostPerDay, limit: 50 };
        let allowance = allowance(&[tokens(100, 90), tokens(200, 110), (cost, 60)]);
        assert_eq!(allowance, Allowance { tokens: 10, cost_micros: 0 });
        let took = |tokens, cost_micros| Usage { input_tokens: tokens, output_tokens: 0, cost_micros };
        assert!(allowance.has_room(took(4, 0), took(6, 0)) && !allowance.has_room(took(5, 0), took(6, 0)));
        assert!(!allowance.has_room(took(0, 0), took(1, 1)), "no cost is left");
    }

    #[test]
    fn script_is_estimated_only_if_it_has_prices() {
        use ironclaw_contract::seam::socket::Purpose;
        use ironclaw_model::endpoint::{Kind, Prices};
        let spec = |kind, price| Spec {
            name: "m".to_owned(),
            kind,
            base_url: None,
            model: String::new(),
            key: None,
            fallbacks: Vec::new(),
            prices: Prices { input: price, output: price },
            streams: false,
            takes_images: false,
            settings: Default::default(),
        };
        let prompt = Prompt { purpose: Purpose::Reply, system: "a".repeat(400), tools: Vec::new(), parts: Vec::new() };
        let of = |specs: &[Spec]| Spent::from(estimate(&prompt, specs.iter()));
        let (script, model) = (spec(Kind::Scripted, 0), spec(Kind::Openai, 0));
        let tokens = 100 + OUTPUT_TOKENS_BOOKED;
        assert_eq!(of(&[]), Spent::default());
        assert_eq!(of(std::slice::from_ref(&script)), Spent::default());
        assert_eq!(of(&[script, model]), Spent { tokens, cost_micros: 0 }, "the fallback may be asked");
        assert_eq!(of(&[spec(Kind::Scripted, 1_000_000)]), Spent { tokens, cost_micros: tokens });
    }

    #[test]
    fn agents_own_ceiling_replaces_the_one_of_the_settings() {
        let config = Config { tokens_per_agent_day: 5, tokens_per_session: 7, ..Config::default() };
        let set = |own| limits(&config, own).iter().map(|limit| (limit.ceiling, limit.limit)).collect::<Vec<_>>();
        assert_eq!(set(OwnCeilings::default()), [(Ceiling::TokensPerAgentDay, 5), (Ceiling::TokensPerSession, 7)]);
        let own = OwnCeilings { tokens_per_day: Some(9), cost_per_day_micros: Some(3) };
        let expected = [(Ceiling::TokensPerAgentDay, 9), (Ceiling::CostPerAgentDay, 3), (Ceiling::TokensPerSession, 7)];
        assert_eq!(set(own), expected);
        assert!(limits(&Config::default(), OwnCeilings::default()).is_empty());
    }

    #[test]
    fn sentence_names_the_ceiling_its_reset_and_the_remedy() {
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
