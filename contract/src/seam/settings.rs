//! The kind `settings`: guard mode, model, ceilings and removal of an agent, and the default model of the host.
//!
//! Never an action: only a person proposes it (RFC 0018). See [`crate::seam::change`].

use super::field::text;
use super::limits::{CEILING_MAX, NAME_BYTES_MAX};
use super::message::word;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

word!(/// The strictness for text without a valid seal. The host judges calls in every mode.
GuardMode {
    /// The host refuses it.
    Enforce = "enforce",
    /// The model gets it as quoted text, and the ledger records it.
    DangerousWarn = "dangerous_warn",
    /// The model gets it as quoted text; the host checks no seal and records nothing about it.
    DangerousOff = "dangerous_off",
});

/// Settings of one agent, or the default model of the host. An absent field changes nothing.
///
/// `remove` excludes all other fields, and so does `default_model`, which concerns no agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The guard mode of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<GuardMode>,
    /// Name of its model endpoint. With `default` it follows the default of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens that it may use on one day; 0 removes its own ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Its cost on one day, in millionths of the currency of the prices; 0 removes its own ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_day_micros: Option<u64>,
    /// True to remove the agent with its conversations and notes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove: bool,
    /// Name of the model endpoint that becomes the default of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
}

impl Settings {
    /// Returns whether it concerns an agent and not the host.
    pub const fn concerns_agent(&self) -> bool {
        self.default_model.is_none()
    }

    pub(super) fn within_bounds(&self) -> Result<(), String> {
        let Self { mode, model, tokens_per_day, cost_per_day_micros, remove, default_model } = self;
        let sets = mode.is_some() || model.is_some() || tokens_per_day.is_some() || cost_per_day_micros.is_some();
        match (sets, *remove, default_model) {
            (false, false, None) => {
                return Err(
                    "it is empty: set mode, model, tokens_per_day, cost_per_day_micros, remove or default_model"
                        .to_owned(),
                );
            }
            (true, true, _) | (_, true, Some(_)) => return Err("remove excludes all other fields".to_owned()),
            (true, false, Some(_)) => return Err("default_model excludes all other fields".to_owned()),
            (true, false, None) | (false, true, None) | (false, false, Some(_)) => {}
        }
        for (field, name) in [("model", model), ("default_model", default_model)] {
            name.as_ref().map_or(Ok(()), |name| text(field, name, NAME_BYTES_MAX))?;
        }
        for (field, ceiling) in [("tokens_per_day", tokens_per_day), ("cost_per_day_micros", cost_per_day_micros)] {
            if ceiling.is_some_and(|ceiling| ceiling > CEILING_MAX) {
                return Err(format!("{field} is at most {CEILING_MAX}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{self, Change, ChangeKind, Payload};
    use serde_json::{Value, json};

    fn parse(payload: Value) -> Result<Change, change::Error> {
        Change::parse(ChangeKind::Settings, &Payload::try_from(payload).expect("an object or a list"))
    }

    #[test]
    fn settings_are_strict_and_bounded_and_read_back() {
        for payload in [
            json!({"mode": "dangerous_off"}),
            json!({"model": "default", "tokens_per_day": 0, "cost_per_day_micros": 2_500_000}),
            json!({"remove": true}),
            json!({"default_model": "local"}),
        ] {
            let change = parse(payload.clone()).expect("settings");
            assert_eq!(change.payload().value(), &payload);
        }
        for payload in [
            json!({}),
            json!([]),
            json!({"remove": false}),
            json!({"mode": "off"}),
            json!({"mode": "enforce", "remove": true}),
            json!({"mode": "enforce", "default_model": "local"}),
            json!({"remove": true, "default_model": "local"}),
            json!({"model": ""}),
            json!({"default_model": "x".repeat(257)}),
            json!({"tokens_per_day": -1}),
            json!({"tokens_per_day": 1.5}),
            json!({"cost_per_day_micros": (1_u64 << 40) + 1}),
            json!({"persona": "x"}),
        ] {
            assert!(parse(payload.clone()).is_err(), "{payload}");
        }
    }
}
