//! The kind `wiring`: whether and when an agent hears a channel.

use super::{Apply, Check, CheckContext, Page, Preparation, Prepared, Properties, Scope, concerned, gone};
use crate::gateway::Grounds;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::inbound::routing::engage;
use crate::refusal::{Denied, Refusal};
use crate::registry::channels::{self, Channel};
use crate::registry::{self, Agent, LOOPBACK};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, Engage, Wiring};
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::{Map, Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, begins_anew: true };

impl Check for Wiring {
    fn complete(&self, tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        known(tx, self)?;
        Ok(Change::Wiring(self.clone()))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let found = channels::find(tx, &self.channel)?;
        let none = || Self { channel: self.channel.clone(), engage: Engage::None, pattern: None };
        Ok(json!(found.map_or_else(none, |channel| channel.wiring(agent.id))))
    }

    fn facts(&self, tx: &ReadTx<'_>, _grounds: &Grounds) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({ "channels": facts(tx, std::slice::from_ref(self))? }))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        Some(json!(self))
    }
}

/// Returns the channel that a wiring names.
///
/// # Errors
/// Refuses the loopback, a channel that does not exist and a pattern that cannot be used.
pub(super) fn known(tx: &ReadTx<'_>, wiring: &Wiring) -> Result<Channel, Denied> {
    if wiring.channel == LOOPBACK {
        let refusal = Refusal::new(DenialCode::ChannelOwn, "the loopback is how people talk to every agent of theirs");
        return Err(refusal.hint("who may talk to an agent is a change of kind permissions").into());
    }
    let channel = channels::known(tx, &wiring.channel)?;
    if let Some(pattern) = &wiring.pattern
        && let Err(error) = engage::compile(pattern)
    {
        // Its own words are many lines, with the pattern among them.
        let why = match error {
            regex::Error::CompiledTooBig(_) => "it would take too much memory",
            _ => "it is no regular expression",
        };
        let refusal = Refusal::new(DenialCode::PatternMalformed, format!("the pattern cannot be used: {why}"));
        return Err(refusal
            .hint("without look-around and back-references; (?i) at its beginning is for any case")
            .into());
    }
    Ok(channel)
}

/// Returns which of all channels that ever had its name each is, and who hears it now: only one does, and loses it.
pub(super) fn facts(tx: &ReadTx<'_>, wirings: &[Wiring]) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let mut found = Map::new();
    for wiring in wirings {
        let channel = match channels::find(tx, &wiring.channel)? {
            None => Value::Null,
            Some(Channel { generation, kind, agent, .. }) => {
                let hearer = agent.map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten();
                let hearer = hearer.map(|agent| json!({ "agent": agent.id, "name": agent.name }));
                json!({ "generation": generation, "kind": kind, "heard_by": hearer })
            }
        };
        found.insert(wiring.channel.clone(), channel);
    }
    Ok(found)
}

impl Page for Wiring {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let channel = page.show(&self.channel);
        match (self.engage, &self.pattern) {
            (Engage::None, _) => page.say(format!("{agent} would not hear channel {channel} any more.")),
            (Engage::Pattern, Some(pattern)) => page.say(format!(
                "{agent} would hear channel {channel} and answer the messages that fit the pattern {}; it would read the others too.",
                page.show(pattern)
            )),
            (Engage::All, _) | (Engage::Pattern, None) => {
                page.warn(format!("{agent} would hear channel {channel} and answer EVERY message that comes there."));
            }
        }
    }
}

impl Apply for Wiring {
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        wire(tx, approved, &agent, self)
    }
}

/// Connects an agent to a channel or disconnects it, and returns what came of it.
///
/// # Errors
/// Refuses a channel that was removed.
pub(super) fn wire(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    wiring: &Wiring,
) -> Result<String, Denied> {
    let channel = channels::find(tx, &wiring.channel)?;
    let channel = channel.ok_or_else(|| gone(format!("channel {}", wiring.channel)))?;
    channels::wire(tx, approved, &channel, agent.id, wiring)?;
    Ok(match wiring.engage {
        Engage::All => format!("agent {} hears {} and answers each message", agent.name, channel.name),
        Engage::Pattern => format!("agent {} hears {} and answers what fits its pattern", agent.name, channel.name),
        Engage::None => format!("agent {} hears {} no more", agent.name, channel.name),
    })
}
