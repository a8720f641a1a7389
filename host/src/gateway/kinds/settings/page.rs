//! The lines on the review page about settings.

use super::super::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::{GuardMode, Settings};
use serde_json::Value;

impl Page for Settings {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let (before, facts) = (page.before, page.facts);
        let Self { mode, model, tokens_per_day, cost_per_day_micros, remove, default_model } = self;
        if let Some(mode) = mode {
            put_mode(page, agent, *mode, before["mode"].as_str().unwrap_or_default());
        }
        if let Some(model) = model {
            let now = page.show(before["model"].as_str().unwrap_or_default());
            let model = page.show(model);
            page.add(format!("Use model endpoint {model} for {agent} (now: {now})."));
            put_endpoint(page);
        }
        for (field, what, wanted) in [
            ("tokens_per_day", "tokens", tokens_per_day),
            ("cost_per_day_micros", "millionths of a currency", cost_per_day_micros),
        ] {
            if let Some(wanted) = wanted {
                put_ceiling(page, agent, what, *wanted, &before[field], &facts["of_the_settings"][field]);
            }
        }
        if *remove {
            page.add(format!("Remove {agent}."));
            page.warn(
                "All its conversations, workspace files and notes are ERASED, which cannot be undone.".to_owned(),
            );
        }
        if let Some(model) = default_model {
            let now = page.show(before["default_model"].as_str().unwrap_or_default());
            let model = page.show(model);
            page.add(format!("Make model endpoint {model} the default of this host (now: {now})."));
            let followers = facts["followers"].as_object().into_iter().flatten();
            let followers = page.list(followers.map(|(name, _)| name.as_str()));
            page.add(format!("Agents that follow the default and use it then: {followers}."));
            put_endpoint(page);
        }
    }
}

fn put_mode(page: &mut Effects<'_>, agent: &str, mode: GuardMode, now: &str) {
    let now = if now == mode.name() { "as now".to_owned() } else { format!("now: {now}") };
    page.add(format!("Set the guard mode of {agent} to {} ({now}).", mode.name()));
    match mode {
        GuardMode::Enforce => {
            page.add("The host refuses text without a valid seal (its origin is unproven).".to_owned());
        }
        GuardMode::DangerousWarn => page.warn(
            "The agent is guarded LESS: text without a valid seal (of unproven origin) reaches its model as quoted text instead of \
             being refused, and the ledger records it."
                .to_owned(),
        ),
        // Calls are judged in every mode; see `turns::calls::judge`, which does not know the mode.
        GuardMode::DangerousOff => page.warn(
            "The agent is NOT guarded against forged text: the host checks no seal, text of unproven origin reaches its model, and \
             the ledger does not record it (tool calls are still judged)."
                .to_owned(),
        ),
    }
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

fn put_ceiling(page: &mut Effects<'_>, agent: &str, what: &str, wanted: u64, now: &Value, of_settings: &Value) {
    let (now, of_settings) = (now.as_u64().unwrap_or_default(), of_settings.as_u64().unwrap_or_default());
    let shown = |ceiling: u64| if ceiling == 0 { "none".to_owned() } else { ceiling.to_string() };
    let current = format!("own ceiling now: {}; ceiling of the settings: {}", shown(now), shown(of_settings));
    let in_force = if now > 0 { now } else { of_settings };
    if wanted == 0 {
        page.add(format!("Remove the daily ceiling of {agent} for {what} ({current})."));
        return page.warn(format!(
            "The agent has NO ceiling of its own for {what} on one day (ceiling of the settings: {}).",
            shown(of_settings)
        ));
    }
    page.add(format!("Let {agent} use up to {wanted} {what} on one day ({current})."));
    if in_force > 0 && wanted > in_force {
        page.warn(format!("The agent can use MORE than now: up to {wanted} {what} on one day."));
    }
}
