//! Applies settings: those of one agent, its removal, or the default model of the host.
//!
//! Every check that can refuse comes before the first write.

use super::super::kind::{Apply, Preparation, Prepared, concerned};
use super::receiver;
use crate::gateway::decide::proof::Approved;
use crate::gateway::waiting::{self, Scope};
use crate::gateway::writers;
use crate::registry::Agent;
use crate::sessions::store;
use crate::turns::budget::{OwnCeilings, book};
use crate::turns::memories;
use ironclaw_contract::seam::change::Settings;
use ironclaw_operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::{Denied, Refusal};

impl Apply for Settings {
    fn preparation(&self) -> Preparation<'_> {
        if self.remove { Preparation::ConversationsErased } else { Preparation::Nothing }
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        set(tx, approved, self)
    }
}

fn set(tx: &mut WriteTx<'_>, approved: &Approved, wanted: &Settings) -> Result<String, Denied> {
    let Settings { mode, model, tokens_per_day, cost_per_day_micros, receiver, remove, default_model } = wanted;
    if let Some(name) = default_model {
        let moved = writers::models::set_default(tx, approved, name)?;
        return Ok(format!("model endpoint {name} is the default; agents that switch to it: {}", moved.len()));
    }
    let agent = concerned(tx, approved)?;
    if *remove {
        return remove_agent(tx, approved, &agent);
    }
    let mut settings = Vec::new();
    if let Some(model) = model {
        settings.push(format!("model endpoint {}", writers::models::set_model(tx, approved, agent.id, model)?));
    }
    if let Some(mode) = mode {
        writers::agents::set_mode(tx, approved, &agent, *mode)?;
        settings.push(format!("mode {mode}"));
    }
    if !receiver.is_empty() {
        writers::agents::set_receiver(tx, approved, &agent, &receiver::merged(agent.receiver, receiver))?;
        let authors: Vec<&str> = receiver.keys().map(String::as_str).collect();
        settings.push(format!("other classes for messages of {}", authors.join(", ")));
    }
    if tokens_per_day.is_some() || cost_per_day_micros.is_some() {
        let old = book::own(tx, agent.id)?;
        let changed = |new: Option<u64>, old: Option<u64>| new.map_or(old, |new| (new > 0).then_some(new));
        let own = OwnCeilings {
            tokens_per_day: changed(*tokens_per_day, old.tokens_per_day),
            cost_per_day_micros: changed(*cost_per_day_micros, old.cost_per_day_micros),
        };
        writers::budget::set_own(tx, approved, agent.id, own)?;
        let shown = |ceiling: Option<u64>| ceiling.map_or_else(|| "none".to_owned(), |ceiling| ceiling.to_string());
        settings.push(format!(
            "ceilings of its own: tokens a day {}, millionths of a currency a day {}",
            shown(own.tokens_per_day),
            shown(own.cost_per_day_micros)
        ));
    }
    Ok(format!("agent {} has {}", agent.name, settings.join(", ")))
}

/// Removes an agent whose conversations are gone.
fn remove_agent(tx: &mut WriteTx<'_>, approved: &Approved, agent: &Agent) -> Result<String, Denied> {
    // A message may arrive while the conversations are erased.
    if !store::list_for_agent(tx, agent.id)?.is_empty() {
        let message = format!("agent {} got a message during its removal", agent.name);
        return Err(Refusal::new(DenialCode::AgentInUse, message).hint("try again").into());
    }
    memories::erase_of_agent(tx, agent.id)?;
    waiting::erase(tx, Scope::Agent(agent.id), "the agent was removed", Some(approved.id().into()))?;
    book::forget(tx, agent.id)?;
    writers::agents::remove_agent(tx, approved, agent)?;
    Ok(format!("agent {} ({}) removed", agent.name, agent.id))
}
