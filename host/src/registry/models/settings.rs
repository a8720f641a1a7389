//! The settings of one endpoint, and what its answers showed about its server.
//!
//! Never learns a setting: only an operator sets one. See [`ironclaw_model::quirks`] for the quirks with their values.

use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_model::endpoint::Kind;
use ironclaw_model::endpoint_quirks::{Change, Observation};
use ironclaw_model::profile;
use ironclaw_model::quirks::{Quirk, Values};
use ironclaw_model::scripted;
use ironclaw_operator::{DenialCode, EndpointSetting, EndpointSettings, LedgerEvent, SettingsOfModel};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::context_sizes;
use ironclaw_store::tables::models::{self as table, ObservedQuirk};
use ironclaw_text::excerpt::quoted;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Tokens of one output, as of the setting of the host.
const OUTPUT_TOKENS: RangeInclusive<u64> = 1..=1_000_000;

/// Tokens that a model reads. With fewer, no request of an agent has room.
const CONTEXT_TOKENS: RangeInclusive<u64> = 1_024..=100_000_000;

/// Bytes of the definitions of tools of MCP servers.
const TOOL_DEFINITIONS_BYTES: RangeInclusive<u64> = 0..=4 << 20;

fn malformed(message: String) -> Refusal {
    Refusal::new(DenialCode::ModelSettingMalformed, message)
}

/// Checks the settings of an endpoint of this kind.
///
/// # Errors
/// A refusal that names the first wrong setting, with its bounds or the known words.
pub fn check(name: &str, kind: Kind, settings: &EndpointSettings) -> Result<(), Refusal> {
    let EndpointSettings { output_tokens_max, context_tokens, tool_definitions_bytes_max, profile, quirks } = settings;
    within(name, EndpointSetting::Output, output_tokens_max.map(u64::from), &OUTPUT_TOKENS)?;
    within(name, EndpointSetting::Context, *context_tokens, &CONTEXT_TOKENS)?;
    within(name, EndpointSetting::ToolDefinitions, *tool_definitions_bytes_max, &TOOL_DEFINITIONS_BYTES)?;
    if let (Some(output), Some(context)) = (output_tokens_max, context_tokens)
        && u64::from(*output) >= *context
    {
        let refusal = malformed(format!(
            "an output of {name} with {output} tokens leaves no room for a prompt: its model reads {context} tokens, prompt and output \
             together"
        ));
        return Err(refusal.hint("lower output_tokens_max, or raise context_tokens"));
    }
    if let Some(profile) = profile
        && (kind == Kind::Scripted || profile::find(profile).is_none())
    {
        let known: Vec<&str> = profile::all().iter().map(|profile| profile.name.as_str()).collect();
        return Err(match kind {
            Kind::Scripted => malformed(format!("{name} is a script, and a script has no profile")),
            Kind::Openai | Kind::Anthropic => malformed(format!("there is no profile {}", quoted(profile)))
                .hint(format!("the profiles are {}", known.join(", "))),
        });
    }
    let read = Values::read(quirks, kind).map(drop);
    read.map_err(|refused| Refusal::new(DenialCode::QuirkUnknown, refused.why).hint(refused.known))
}

fn within(
    name: &str,
    setting: EndpointSetting,
    value: Option<u64>,
    bounds: &RangeInclusive<u64>,
) -> Result<(), Refusal> {
    match value {
        Some(value) if !bounds.contains(&value) => {
            let refusal = malformed(format!("{setting} of {name} is {value}, which is outside of its bounds"));
            Err(refusal.hint(format!("use {} to {}", bounds.start(), bounds.end())))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns settings after a change, unchecked.
///
/// # Errors
/// Refuses a name to clear that is no setting and no quirk, and one that the change also sets.
fn changed(before: EndpointSettings, change: SettingsOfModel) -> Result<EndpointSettings, Refusal> {
    let (mut after, set) = (before, change.set);
    for name in &change.clear {
        let is_set_too = set.quirks.contains_key(name);
        match (name.parse::<EndpointSetting>(), name.parse::<Quirk>()) {
            (_, Ok(_)) if is_set_too => {
                return Err(malformed(format!("the change sets {name} and clears it")).hint("do one of both"));
            }
            (Ok(EndpointSetting::Output), _) => after.output_tokens_max = None,
            (Ok(EndpointSetting::Context), _) => after.context_tokens = None,
            (Ok(EndpointSetting::ToolDefinitions), _) => after.tool_definitions_bytes_max = None,
            (Ok(EndpointSetting::Profile), _) => after.profile = None,
            (Err(_), Ok(_)) => drop(after.quirks.remove(name)),
            (Err(_), Err(_)) => {
                let names = EndpointSetting::ALL.map(EndpointSetting::name).into_iter();
                let known: Vec<&str> = names.chain(Quirk::ALL.map(Quirk::name)).collect();
                let refusal = malformed(format!("there is no setting {}", quoted(name)));
                return Err(refusal.hint(format!("the settings are {}", known.join(", "))));
            }
        }
    }
    after.output_tokens_max = set.output_tokens_max.or(after.output_tokens_max);
    after.context_tokens = set.context_tokens.or(after.context_tokens);
    after.tool_definitions_bytes_max = set.tool_definitions_bytes_max.or(after.tool_definitions_bytes_max);
    after.profile = set.profile.or(after.profile);
    after.quirks.extend(set.quirks);
    Ok(after)
}

/// Changes the settings of an endpoint.
///
/// # Errors
/// Refuses an unknown endpoint, the built-in one, and settings that are not valid.
pub fn set(tx: &mut WriteTx<'_>, name: &str, change: SettingsOfModel, by: PersonId) -> Result<(), Denied> {
    super::known(tx, name)?;
    let Some(stored) = super::find(tx, name)? else {
        let message = format!("the endpoint {} is built into the host and has no settings", scripted::NAME);
        return Err(Refusal::new(DenialCode::ModelMalformed, message).hint("set those of another endpoint").into());
    };
    let (cleared, forgot) = (change.clear.clone(), change.forget);
    let settings = changed(stored.spec.settings, change)?;
    check(name, stored.spec.kind, &settings)?;
    table::set_settings(tx, name, &settings)?;
    if forgot {
        table::delete_observed(tx, name, None)?;
        context_sizes::delete(tx, name)?;
    }
    Entry::new(LedgerEvent::ModelSettingsSet)
        .with("name", name)
        .with("settings", recorded(&settings))
        .with("cleared", cleared)
        .with("forgot", forgot)
        .with("by", by)
        .append(tx)?;
    Ok(())
}

/// Returns settings for the ledger.
pub(super) fn recorded(settings: &EndpointSettings) -> serde_json::Value {
    serde_json::to_value(settings).expect("texts and numbers are JSON")
}

/// Returns what the answers of each endpoint showed. A row that this version cannot read counts as absent.
pub fn observed(tx: &ReadTx<'_>) -> Result<BTreeMap<String, Vec<Observation>>, ironclaw_state::Error> {
    let mut all: BTreeMap<String, Vec<Observation>> = BTreeMap::new();
    for ObservedQuirk { model, quirk, value, answers, at } in table::observed(tx)? {
        all.entry(model).or_default().extend(Observation::read(&quirk, &value, answers, at));
    }
    Ok(all)
}

/// Records what answers of an endpoint showed. An endpoint that was removed meanwhile has no row.
pub fn note(tx: &mut WriteTx<'_>, name: &str, changes: &[Change]) -> Result<(), ironclaw_state::Error> {
    if super::find(tx, name)?.is_none() {
        return Ok(());
    }
    for Change { quirk, observed } in changes {
        table::delete_observed(tx, name, Some(quirk.name()))?;
        let Some(observed) = observed else { continue };
        let row = ObservedQuirk {
            model: name.to_owned(),
            quirk: quirk.name().to_owned(),
            value: observed.value.to_owned(),
            answers: observed.answers,
            at: observed.at,
        };
        table::insert_observed(tx, &row)?;
        if observed.is_agreed() {
            learned(name, quirk, observed.value).append(tx)?;
        }
    }
    Ok(())
}

fn learned(name: &str, quirk: impl Display, value: &str) -> Entry {
    Entry::new(LedgerEvent::ModelLearned).with("name", name).with("quirk", quirk.to_string()).with("value", value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_outside_of_their_bounds_are_refused_by_name() {
        let plain = EndpointSettings::default;
        for (settings, name) in [
            (EndpointSettings { output_tokens_max: Some(0), ..plain() }, "output_tokens_max"),
            (EndpointSettings { output_tokens_max: Some(1_000_001), ..plain() }, "output_tokens_max"),
            (EndpointSettings { context_tokens: Some(0), ..plain() }, "context_tokens"),
            (EndpointSettings { context_tokens: Some(u64::MAX), ..plain() }, "context_tokens"),
            (EndpointSettings { tool_definitions_bytes_max: Some(u64::MAX), ..plain() }, "tool_definitions_bytes_max"),
            (
                EndpointSettings { output_tokens_max: Some(8192), context_tokens: Some(8192), ..plain() },
                "leaves no room",
            ),
            (EndpointSettings { profile: Some("telepathy".to_owned()), ..plain() }, "telepathy"),
        ] {
            let refused = check("lab", Kind::Openai, &settings).expect_err(name);
            assert_eq!(refused.code, DenialCode::ModelSettingMalformed, "{refused:?}");
            assert!(refused.message.contains(name) && !refused.hint.is_empty(), "{refused:?}");
        }
        let good = EndpointSettings {
            output_tokens_max: Some(2048),
            context_tokens: Some(8192),
            tool_definitions_bytes_max: Some(0),
            profile: Some("ollama".to_owned()),
            quirks: [("limit_field".to_owned(), "max_tokens".to_owned())].into(),
        };
        assert!(check("lab", Kind::Openai, &good).is_ok());
        assert!(check("lab", Kind::Scripted, &EndpointSettings { profile: None, ..good.clone() }).is_err());
        assert!(check("lab", Kind::Scripted, &EndpointSettings { quirks: BTreeMap::new(), ..good }).is_err());
    }

    #[test]
    fn a_change_sets_and_clears_only_what_it_names() {
        let quirk = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let before = EndpointSettings {
            output_tokens_max: Some(1),
            context_tokens: Some(2),
            quirks: [quirk("call_ids", "nine"), quirk("limit_field", "max_tokens")].into(),
            ..Default::default()
        };
        let set = EndpointSettings {
            context_tokens: Some(3),
            quirks: [quirk("system_role", "user")].into(),
            ..Default::default()
        };
        let clear = vec!["output_tokens_max".to_owned(), "call_ids".to_owned(), "key_header".to_owned()];
        let after = changed(before.clone(), SettingsOfModel { set, clear, forget: false }).expect("a change");
        let wanted = EndpointSettings {
            context_tokens: Some(3),
            quirks: [quirk("limit_field", "max_tokens"), quirk("system_role", "user")].into(),
            ..Default::default()
        };
        assert_eq!(after, wanted);
        for clear in [vec!["price".to_owned()], vec!["call_ids".to_owned()]] {
            let set = EndpointSettings { quirks: [quirk("call_ids", "long")].into(), ..Default::default() };
            let refused =
                changed(before.clone(), SettingsOfModel { set, clear, forget: false }).expect_err("a refusal");
            assert_eq!(refused.code, DenialCode::ModelSettingMalformed);
        }
    }
}
