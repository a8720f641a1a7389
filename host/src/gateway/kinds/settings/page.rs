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
            say_mode(page, agent, *mode, before["mode"].as_str().unwrap_or_default());
        }
        if let Some(model) = model {
            let now = page.show(before["model"].as_str().unwrap_or_default());
            let model = page.show(model);
            page.say(format!("{agent} would use model endpoint {model} (now: {now})."));
            say_endpoint(page);
        }
        for (field, what, wanted) in [
            ("tokens_per_day", "tokens", tokens_per_day),
            ("cost_per_day_micros", "millionths of a currency", cost_per_day_micros),
        ] {
            if let Some(wanted) = wanted {
                say_ceiling(page, agent, what, *wanted, &before[field], &facts["of_the_settings"][field]);
            }
        }
        if *remove {
            page.warn(format!(
                "{agent} would be REMOVED, with all its conversations, the files of its workspaces and its notes. It cannot be \
                 undone."
            ));
        }
        if let Some(model) = default_model {
            let now = page.show(before["default_model"].as_str().unwrap_or_default());
            let model = page.show(model);
            page.say(format!("Model endpoint {model} would be the default of this host (now: {now})."));
            let followers = facts["followers"].as_object().into_iter().flatten();
            let followers = page.list(followers.map(|(name, _)| name.as_str()));
            page.say(format!("These agents follow the default, and would use it: {followers}."));
            say_endpoint(page);
        }
    }
}

fn say_mode(page: &mut Effects<'_>, agent: &str, mode: GuardMode, now: &str) {
    let now = if now == mode.name() { "as now".to_owned() } else { format!("now: {now}") };
    match mode {
        GuardMode::Enforce => page.say(format!(
            "{agent} would be judged in mode enforce ({now}): what has no seal would be refused."
        )),
        GuardMode::DangerousWarn => page.warn(format!(
            "{agent} would be guarded LESS, in mode dangerous_warn ({now}): what has no seal would be shown to its model as \
             quoted text, and not refused."
        )),
        GuardMode::DangerousOff => page.warn(format!(
            "{agent} would NOT be guarded, in mode dangerous_off ({now}): what has no seal would be shown to its model, and \
             judgements of its calls would not be enforced."
        )),
    }
}

/// Says where everything goes that an agent sees.
fn say_endpoint(page: &mut Effects<'_>) {
    let endpoint = &page.facts["endpoint"];
    let Some(url) = endpoint["base_url"].as_str() else { return };
    let (url, model) = (page.show(url), page.show(endpoint["model"].as_str().unwrap_or_default()));
    let behind = endpoint["fallbacks"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let behind = page.list(behind);
    page.warn(format!(
        "Everything that is shown to the model would go to {url}, for model {model}. Endpoints behind it: {behind}."
    ));
}

fn say_ceiling(page: &mut Effects<'_>, agent: &str, what: &str, wanted: u64, now: &Value, of_settings: &Value) {
    let (now, of_settings) = (now.as_u64().unwrap_or_default(), of_settings.as_u64().unwrap_or_default());
    let shown = |ceiling: u64| if ceiling == 0 { "none".to_owned() } else { ceiling.to_string() };
    let stands = format!("its own now: {}; that of the settings: {}", shown(now), shown(of_settings));
    let holds = if now > 0 { now } else { of_settings };
    if wanted == 0 {
        return page
            .warn(format!("{agent} would have NO ceiling of its own for {what} on one day any more ({stands})."));
    }
    let words = format!("{agent} could use up to {wanted} {what} on one day ({stands}).");
    match holds > 0 && wanted > holds {
        true => page.warn(words),
        false => page.say(words),
    }
}
