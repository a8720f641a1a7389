//! Checks settings, reads the current ones, and finds changes that only tighten.

use super::super::kind::{Check, CheckContext};
use super::receiver;
use crate::registry::live_settings::HostPolicy;
use crate::registry::models;
use crate::registry::policy::{Policy, Rule};
use crate::registry::{self, Agent, Mode, Role};
use crate::turns::budget::{self, book};
use ironclaw_contract::seam::change::{Change, ChangeKind, Settings};
use ironclaw_contract::seam::limits::CEILING_MAX;
use ironclaw_model::scripted;
use ironclaw_operator::DEFAULT_MODEL;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Map, Value, json};

impl Check for Settings {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        check(tx, self)?;
        receiver::check(&self.receiver, &context.host_policy.receiver)?;
        Ok(Change::Settings(self.clone()))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        current(tx, self, agent)
    }

    fn facts(&self, tx: &ReadTx<'_>, host_policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        facts(tx, host_policy, self)
    }

    fn check_agent(&self, _kind: ChangeKind, _concerns_agent: bool, agent: Option<&Agent>) -> Result<(), Refusal> {
        check_agent(self, agent)
    }

    fn rule(&self, of_kind: Rule, _policy: &Policy, before: &Value, facts: &Value) -> Rule {
        if !self.concerns_agent() {
            for_default_model(of_kind)
        } else if only_tightens(self, before, facts) {
            Rule { approvals: 1, requester_may_approve: true, ..of_kind }
        } else {
            of_kind
        }
    }
}

/// Returns the rule for the default model, derived from the rule for settings.
///
/// An owner decides on the endpoint of every new agent, because an owner also decides on the list of endpoints.
pub(in crate::gateway) fn for_default_model(rule: Rule) -> Rule {
    if rule.admits(Role::Owner) { Rule { roles: vec![Role::Owner], ..rule } } else { rule }
}

/// Returns whether settings raise the guard or lower a ceiling, and do nothing else.
fn only_tightens(wanted: &Settings, before: &Value, facts: &Value) -> bool {
    let Settings { mode, model, tokens_per_day, cost_per_day_micros, receiver, remove, default_model } = wanted;
    if *remove || default_model.is_some() {
        return false;
    }
    let text = |field: &str| before[field].as_str().unwrap_or_default().to_owned();
    let mode = mode.is_none_or(|mode| {
        let laxity = |mode: Mode| match mode {
            Mode::Enforce => 0,
            Mode::DangerousWarn => 1,
            Mode::DangerousOff => 2,
        };
        text("mode").parse().is_ok_and(|now| laxity(mode) <= laxity(now))
    });
    let model = model.as_ref().is_none_or(|model| *model == text("model"));
    let ceiling = |field: &str, wanted: &Option<u64>| {
        let (now, of_settings) = (number(&before[field]), number(&facts["of_the_settings"][field]));
        // Without a ceiling of its own, the agent has the ceiling of the settings, if there is one.
        let in_force = if now > 0 { now } else { of_settings };
        wanted.is_none_or(|then| then == now || (then > 0 && (in_force == 0 || then <= in_force)))
    };
    let receiver = receiver::only_tightens(receiver, &before["receiver"]);
    let ceilings = ceiling("tokens_per_day", tokens_per_day) && ceiling("cost_per_day_micros", cost_per_day_micros);
    mode && model && receiver && ceilings
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Refuses an endpoint that does not exist.
fn check(tx: &ReadTx<'_>, wanted: &Settings) -> Result<(), Denied> {
    if let Some(model) = wanted.model.as_deref().filter(|model| *model != DEFAULT_MODEL) {
        models::known(tx, model)?;
    }
    if let Some(model) = wanted.default_model.as_deref() {
        models::known(tx, model)?;
    }
    Ok(())
}

/// Refuses settings of the host with an agent, and settings of an agent without one.
fn check_agent(wanted: &Settings, agent: Option<&Agent>) -> Result<(), Refusal> {
    match (wanted.concerns_agent(), agent) {
        (false, Some(_)) => {
            let refusal =
                Refusal::new(DenialCode::AgentSuperfluous, "default_model is a setting of the host, not of an agent");
            Err(refusal.hint("leave out --agent"))
        }
        (true, Some(_)) | (false, None) => Ok(()),
        (true, None) => {
            let refusal = Refusal::new(DenialCode::AgentMissing, "these settings need an agent");
            Err(refusal.hint("name it with --agent; `ironctl agent list` shows the agents"))
        }
    }
}

/// Returns the current settings, of the fields that the change names.
fn current(tx: &ReadTx<'_>, wanted: &Settings, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
    let mut now = Map::new();
    let mut set = |field: &str, value: Value| now.insert(field.to_owned(), value);
    if wanted.default_model.is_some() {
        set("default_model", models::default(tx)?.into());
    }
    let Some(agent) = agent else { return Ok(if now.is_empty() { Value::Null } else { now.into() }) };
    if wanted.mode.is_some() {
        set("mode", agent.mode.name().into());
    }
    if wanted.model.is_some() {
        set("model", if agent.follows_default { DEFAULT_MODEL.into() } else { agent.model.clone().into() });
    }
    if !wanted.receiver.is_empty() {
        set("receiver", receiver::current(&agent.receiver, &wanted.receiver));
    }
    let own = book::own(tx, agent.id)?;
    if wanted.tokens_per_day.is_some() {
        set("tokens_per_day", own.tokens_per_day.unwrap_or_default().into());
    }
    if wanted.cost_per_day_micros.is_some() {
        set("cost_per_day_micros", own.cost_per_day_micros.unwrap_or_default().into());
    }
    Ok(now.into())
}

/// Returns the current meaning of the names: the endpoint behind a name, the ceilings of the settings, the agents with the default.
fn facts(tx: &ReadTx<'_>, host_policy: &HostPolicy, wanted: &Settings) -> Result<Value, ironclaw_state::Error> {
    let mut facts = Map::new();
    for named in [&wanted.model, &wanted.default_model].into_iter().flatten() {
        let name = if named == DEFAULT_MODEL { models::default(tx)? } else { named.clone() };
        facts.insert("endpoint".to_owned(), endpoint(tx, &name)?);
    }
    if wanted.default_model.is_some() {
        let followers = registry::agents(tx)?.into_iter().filter(|agent| agent.follows_default);
        let followers: Map<String, Value> = followers.map(|agent| (agent.name, json!({ "agent": agent.id }))).collect();
        facts.insert("followers".to_owned(), followers.into());
    }
    if wanted.tokens_per_day.is_some() || wanted.cost_per_day_micros.is_some() {
        let budget::Config { tokens_per_agent_day, cost_per_agent_day_micros, .. } = &host_policy.budget;
        let ceilings = json!({
            "tokens_per_day": (*tokens_per_agent_day).min(CEILING_MAX),
            "cost_per_day_micros": (*cost_per_agent_day_micros).min(CEILING_MAX),
        });
        facts.insert("of_the_settings".to_owned(), ceilings);
    }
    if !wanted.receiver.is_empty() {
        facts.insert("receiver_bound".to_owned(), receiver::bound(&host_policy.receiver, &wanted.receiver));
    }
    Ok(facts.into())
}

fn endpoint(tx: &ReadTx<'_>, name: &str) -> Result<Value, ironclaw_state::Error> {
    if name == scripted::NAME {
        return Ok(json!({ "name": name, "kind": scripted::NAME }));
    }
    Ok(models::find(tx, name)?.map_or(Value::Null, |stored| {
        json!({
            "name": name,
            "kind": stored.spec.kind,
            "base_url": stored.spec.base_url.as_ref().map(ToString::to_string),
            "model": stored.spec.model,
            "fallbacks": stored.spec.fallbacks,
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::seam::change::GuardMode;

    #[test]
    fn raising_the_guard_or_lowering_a_ceiling_tightens() {
        let before = json!({"mode": "dangerous_warn", "model": "a", "tokens_per_day": 100, "cost_per_day_micros": 0});
        let facts = json!({"of_the_settings": {"tokens_per_day": 0, "cost_per_day_micros": 500}});
        let with = |change: fn(&mut Settings)| {
            let mut wanted = Settings::default();
            change(&mut wanted);
            only_tightens(&wanted, &before, &facts)
        };
        assert!(with(|wanted| wanted.mode = Some(GuardMode::Enforce)));
        assert!(!with(|wanted| wanted.mode = Some(GuardMode::DangerousOff)));
        assert!(with(|wanted| wanted.tokens_per_day = Some(99)));
        assert!(!with(|wanted| wanted.tokens_per_day = Some(101)));
        assert!(!with(|wanted| wanted.tokens_per_day = Some(0)), "a removed ceiling");
        assert!(with(|wanted| wanted.cost_per_day_micros = Some(500)), "the ceiling in force");
        assert!(!with(|wanted| wanted.cost_per_day_micros = Some(501)), "more than the settings allow");
        assert!(!with(|wanted| wanted.model = Some("b".to_owned())));
        assert!(!with(|wanted| wanted.remove = true));
        assert!(!with(|wanted| wanted.default_model = Some("a".to_owned())));
        let loosens_one = |wanted: &mut Settings| {
            wanted.mode = Some(GuardMode::Enforce);
            wanted.tokens_per_day = Some(0);
        };
        assert!(!with(loosens_one), "one that loosens is enough");
    }
}
