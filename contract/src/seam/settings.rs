//! The kind `settings`: guard mode, model, ceilings, receiver policy and removal of an agent, and the default model of the host.
//!
//! Never an action: only a person proposes it (RFC 0018). See [`crate::seam::change`].

use super::field::text;
use super::limits::{CEILING_MAX, NAME_BYTES_MAX};
use super::message::word;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// The kinds of authors that ask an agent: a person, a guest, an agent, a schedule.
const ASKERS: [&str; 4] = ["person", "guest", "agent", "schedule"];

/// The classes of effects that a message can ask for.
const CLASSES: [&str; 6] = ["read", "write", "send", "exec", "trade", "ask"];

/// The classes that an agent takes from one kind of author. Without a field the default of the host holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedClasses {
    /// The classes that a message may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Vec<String>>,
    /// The classes of a message that asks for none by a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unasked: Option<Vec<String>>,
}

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
    /// The classes that it takes from each named kind of author: `person`, `guest`, `agent` or `schedule`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub receiver: BTreeMap<String, AskedClasses>,
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
        let Self { mode, model, tokens_per_day, cost_per_day_micros, receiver, remove, default_model } = self;
        let limits = tokens_per_day.is_some() || cost_per_day_micros.is_some();
        let sets = mode.is_some() || model.is_some() || limits || !receiver.is_empty();
        match (sets, *remove, default_model) {
            (false, false, None) => {
                return Err(
                    "it is empty: set mode, model, tokens_per_day, cost_per_day_micros, receiver, remove or default_model"
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
        receiver.iter().try_for_each(|(asker, classes)| check_receiver(asker, classes))
    }
}

/// Checks the words of a receiver policy.
fn check_receiver(asker: &str, AskedClasses { may, unasked }: &AskedClasses) -> Result<(), String> {
    if !ASKERS.contains(&asker) {
        return Err(format!("receiver.{asker:?}: there is no such author; use {}", ASKERS.join(", ")));
    }
    for (field, classes) in [("may", may), ("unasked", unasked)] {
        for (at, class) in classes.iter().flatten().enumerate() {
            if !CLASSES.contains(&class.as_str()) {
                return Err(format!(
                    "receiver.{asker}.{field}: there is no class {class:?}; use {}",
                    CLASSES.join(", ")
                ));
            }
            if classes.iter().flatten().take(at).any(|other| other == class) {
                return Err(format!("receiver.{asker}.{field} names {class} twice"));
            }
        }
    }
    let named = |class: &&String| may.as_ref().is_some_and(|may| !may.contains(class));
    match unasked.iter().flatten().find(named) {
        Some(class) => Err(format!("receiver.{asker}.unasked has {class}, which receiver.{asker}.may lacks")),
        None => Ok(()),
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
            json!({"receiver": {"guest": {"may": ["read"], "unasked": []}, "schedule": {}}}),
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
            json!({"receiver": {"unsigned": {}}}),
            json!({"receiver": {"guest": {"may": ["delete"]}}}),
            json!({"receiver": {"guest": {"may": ["read", "read"]}}}),
            json!({"receiver": {"guest": {"may": ["read"], "unasked": ["write"]}}}),
            json!({"receiver": {"guest": {"only": []}}}),
            json!({"receiver": {"guest": {}}, "remove": true}),
        ] {
            assert!(parse(payload.clone()).is_err(), "{payload}");
        }
    }
}
