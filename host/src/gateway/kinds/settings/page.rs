//! The lines on the review page about settings.

use super::super::kind::Page;
use super::receiver;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::{GuardMode, Settings};
use serde_json::Value;

/// Fractions of a unit of money in a unit.
const MICROS: u64 = 1_000_000;

impl Page for Settings {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let (before, facts) = (page.before, page.facts);
        let Self { mode, model, tokens_per_day, cost_per_day_micros, receiver, remove, default_model } = self;
        if let Some(mode) = mode {
            put_mode(page, agent, *mode, before["mode"].as_str().unwrap_or_default());
        }
        if let Some(model) = model {
            let now = page.show(before["model"].as_str().unwrap_or_default());
            let (model, at) = (page.show(model), address(page));
            page.add(format!("Use model endpoint {model}{at} for {agent} (before: {now})."));
            put_endpoint(page);
        }
        for (limited, wanted) in [(Limited::Tokens, tokens_per_day), (Limited::Cost, cost_per_day_micros)] {
            if let Some(wanted) = wanted {
                let field = limited.field();
                put_limit(page, agent, limited, *wanted, &before[field], &facts["of_the_settings"][field]);
            }
        }
        receiver::put(page, agent, receiver);
        if *remove {
            page.add(format!("Remove {agent}, and erase its conversations, workspace files and notes."));
            page.add("Directories of this machine that it could use are not erased.".to_owned());
            page.warn(
                "The erased conversations, files and notes CANNOT BE RESTORED: this host keeps no copy.".to_owned(),
            );
        }
        if let Some(model) = default_model {
            let now = page.show(before["default_model"].as_str().unwrap_or_default());
            let (model, at) = (page.show(model), address(page));
            page.add(format!("Make model endpoint {model}{at} the default of this host (before: {now})."));
            let followers = facts["followers"].as_object().into_iter().flatten();
            let followers = page.list(followers.map(|(name, _)| name.as_str()));
            page.add(format!("Agents that follow the default and use it then: {followers}."));
            put_endpoint(page);
        }
    }
}

fn put_mode(page: &mut Effects<'_>, agent: &str, mode: GuardMode, now: &str) {
    let against = format!("the protection of {agent} against forged text");
    let modes = match now == mode.name() {
        true => format!("guard mode {now}, unchanged"),
        false => format!("guard mode {}; before: {now}", mode.name()),
    };
    match mode {
        GuardMode::Enforce => {
            page.add(format!("Turn ON {against} ({modes})."));
            page.add("Text whose origin this host cannot prove is refused.".to_owned());
        }
        GuardMode::DangerousWarn => {
            page.add(format!("Weaken {against} ({modes})."));
            page.warn(
                "Text whose origin this host cannot prove is NOT REFUSED: it reaches the model, marked as a quotation. Forged text can \
                 still give the agent orders. The ledger records such text."
                    .to_owned(),
            );
        }
        // Calls are judged in every mode; see `turns::calls::judge`, which does not know the mode.
        GuardMode::DangerousOff => {
            page.add(format!("Turn OFF {against} ({modes})."));
            page.warn(
                "This host NO LONGER CHECKS the origin of text: forged text can give the agent orders, and the ledger does not record \
                 such text. The host still judges tool calls."
                    .to_owned(),
            );
        }
    }
}

/// Returns the address of the endpoint, for the middle of a sentence; empty for an endpoint without one.
fn address(page: &Effects<'_>) -> String {
    page.facts["endpoint"]["base_url"].as_str().map_or_else(String::new, |url| format!(" at {}", page.show(url)))
}

/// Describes the destination of everything that an agent sees.
fn put_endpoint(page: &mut Effects<'_>) {
    let endpoint = &page.facts["endpoint"];
    let Some(url) = endpoint["base_url"].as_str() else { return };
    let (url, model) = (page.show(url), page.show(endpoint["model"].as_str().unwrap_or_default()));
    let behind = endpoint["fallbacks"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let behind = page.list(behind);
    page.warn(format!(
        "EVERYTHING that the model is shown goes to {url} (model {model}; fallback endpoints: {behind})."
    ));
}

ironclaw_contract::words! {
    /// The quantity of a daily limit.
    enum Limited {
        Tokens = "tokens",
        Cost = "cost",
    }
}

impl Limited {
    const fn field(self) -> &'static str {
        match self {
            Self::Tokens => "tokens_per_day",
            Self::Cost => "cost_per_day_micros",
        }
    }

    /// Returns an amount in units; `none` for 0.
    fn amount(self, amount: u64) -> String {
        match (self, amount) {
            (_, 0) => "none".to_owned(),
            (Self::Tokens, _) => amount.to_string(),
            (Self::Cost, _) => money(amount),
        }
    }

    /// Returns an amount with its unit, for the middle of a sentence.
    fn named(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens per day"),
            Self::Cost => format!("{} per day, in the currency of the prices of its models", money(amount)),
        }
    }
}

/// Returns millionths of a currency as a sum with two digits or more after the point.
fn money(micros: u64) -> String {
    let fraction = format!("{:06}", micros % MICROS);
    let digits = fraction.trim_end_matches('0').len().max(2);
    format!("{}.{}", micros / MICROS, &fraction[..digits])
}

fn put_limit(page: &mut Effects<'_>, agent: &str, limited: Limited, wanted: u64, now: &Value, of_settings: &Value) {
    let (now, of_settings) = (now.as_u64().unwrap_or_default(), of_settings.as_u64().unwrap_or_default());
    let (of, shown) = (limited.name(), |amount: u64| limited.amount(amount));
    let current =
        format!("own limit before: {}; limit for agents without an own one: {}", shown(now), shown(of_settings));
    let in_force = if now > 0 { now } else { of_settings };
    if wanted == 0 {
        page.add(format!("Remove the limit of {agent} for {of} per day ({current})."));
        return page.warn(match of_settings {
            0 => format!(
                "The agent has NO LIMIT for {of} per day. Only limits of a session and of this whole host hold, if there are any."
            ),
            _ => format!(
                "The agent has NO LIMIT OF ITS OWN for {of} per day. The limit of {} holds.",
                limited.named(of_settings)
            ),
        });
    }
    page.add(format!("Limit {agent} to {} ({current}).", limited.named(wanted)));
    if in_force > 0 && wanted > in_force {
        page.warn(format!("The agent can use MORE {of} than now: {} per day, now {}.", shown(wanted), shown(in_force)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_two_digits_and_never_loses_one() {
        for (micros, shown) in [(9_000_000, "9.00"), (2_500_000, "2.50"), (1, "0.000001"), (1_234_000, "1.234")] {
            assert_eq!(money(micros), shown);
        }
    }
}
