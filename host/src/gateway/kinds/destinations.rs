//! The kind `destinations`: an address or another agent to which the agent may send messages.

use super::identities;
use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope, concerned, gone};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::destinations::{self, Receiver};
use crate::registry::live_settings::HostPolicy;
use crate::registry::{self, Agent, Identity, LOOPBACK, channels};
use ironclaw_contract::seam::change::{Change, Destination};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Map, Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: false };

/// Returns the identity of an address, if the payload has one.
fn identity(wanted: &Destination) -> Option<Identity> {
    let (channel, sender) = (wanted.channel.clone()?, wanted.address.clone()?);
    Some(Identity { channel, sender })
}

impl Check for Destination {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        if let Some(to) = &self.agent {
            return complete_agent(tx, context, self, to);
        }
        let Some(identity) = identity(self) else {
            let held = context.agent.map(|agent| destinations::find(tx, agent.id, &self.name)).transpose()?.flatten();
            if held.is_none() {
                let message = format!("the agent has no destination {:?}", self.name);
                let refusal = Refusal::new(DenialCode::DestinationUnknown, message);
                return Err(refusal.hint("`ironctl destination list AGENT` lists its destinations").into());
            }
            return Ok(Change::Destinations(self.clone()));
        };
        if identity.channel == LOOPBACK {
            let message = "the loopback is no destination: its people read the answers of the agent there";
            return Err(Refusal::new(DenialCode::DestinationUnsuitable, message)
                .hint("name a channel of `ironctl channel list`")
                .into());
        }
        channels::known(tx, context.person(tx)?.as_ref(), &identity.channel)?;
        identities::each_once(tx, [identity.to_string()].iter())?;
        if let Some(agent) = context.agent {
            destinations::check_room(tx, agent.id, &self.name)?;
        }
        Ok(Change::Destinations(self.clone()))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let had = destinations::find(tx, agent.id, &self.name)?;
        let none = || Self { name: self.name.clone(), remove: Some(true), ..Self::default() };
        Ok(json!(had.map_or_else(none, |had| had.payload())))
    }

    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        if let Some(to) = &self.agent {
            let found = registry::find_agent(tx, to)?;
            return Ok(json!({ "to_agent": found.map(|agent| json!({ "agent": agent.id, "name": agent.name })) }));
        }
        let Some(identity) = identity(self) else { return Ok(json!({})) };
        let channel = channels::find(tx, &identity.channel)?;
        let channel = channel.map(|channel| json!({ "generation": channel.generation, "kind": channel.kind }));
        let people: Map<String, Value> = identities::facts(tx, Some(identity.to_string().as_str()).into_iter())?;
        Ok(json!({ "channel": channel, "people": people }))
    }
}

/// Completes a destination that is another agent.
fn complete_agent(
    tx: &ReadTx<'_>,
    context: &CheckContext<'_>,
    wanted: &Destination,
    to: &str,
) -> Result<Change, Denied> {
    let receiver = match context.person(tx)? {
        Some(by) => registry::named_agent(tx, &by, to)?,
        None => registry::find_agent(tx, to)?.ok_or_else(|| registry::unknown_agent(to))?,
    };
    let Some(agent) = context.agent else { return Ok(Change::Destinations(wanted.clone())) };
    if agent.id == receiver.id {
        let refusal = Refusal::new(DenialCode::DestinationUnsuitable, "an agent is no destination of its own");
        return Err(refusal.hint("name another agent of `ironctl agent list`").into());
    }
    destinations::check_room(tx, agent.id, &wanted.name)?;
    Ok(Change::Destinations(Destination { agent: Some(receiver.name), ..wanted.clone() }))
}

impl Page for Destination {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let name = page.show(&self.name);
        if self.agent.is_some() {
            let to = &page.facts["to_agent"];
            let to = page.named(to["agent"].as_str().unwrap_or_default(), to["name"].as_str().unwrap_or_default());
            page.add(format!("Let {agent} send messages by itself to the agent {to}."));
            page.add(format!("The agent's name for it is {name}. It replaces a destination of the same name."));
            page.add(
                "A message needs a trust group that has both agents, and a person who may talk to both.".to_owned(),
            );
            return page
                .warn(format!("Everything that {agent} knows can reach {to}, and the answers of {to} come back."));
        }
        let Some(identity) = identity(self) else {
            return page.add(format!("Take the destination {name} away from {agent}."));
        };
        let (channel, address) = (page.show(&identity.channel), page.show(&identity.sender));
        let behind = &page.facts["people"][identity.to_string()];
        let person =
            page.named(behind["person"].as_str().unwrap_or_default(), behind["name"].as_str().unwrap_or_default());
        page.add(format!("Let {agent} send messages by itself to {person}: address {address} on channel {channel}."));
        if let Some(thread) = &self.thread {
            page.add(format!("They go to the thread {}.", page.show(thread)));
        }
        page.add(format!("The agent's name for this address is {name}. It replaces a destination of the same name."));
        page.add(
            "Each message is judged: the request must ask for sending, and after text of others a person decides."
                .to_owned(),
        );
        page.warn(format!("Words of the agent LEAVE THIS HOST, and {person} reads them as a message of the agent."));
    }
}

impl Apply for Destination {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        if let Some(to) = &self.agent {
            let receiver = registry::find_agent(tx, to)?.ok_or_else(|| gone(format!("agent {to}")))?;
            writers::destinations::set(tx, approved, agent.id, self, Some(Receiver::Agent(receiver.id)))?;
            return Ok(format!("agent {} has the destination {}", agent.name, self.name));
        }
        let Some(identity) = identity(self) else {
            writers::destinations::set(tx, approved, agent.id, self, None)?;
            return Ok(format!("agent {} no longer has the destination {}", agent.name, self.name));
        };
        let channel = channels::find(tx, &identity.channel)?;
        let channel = channel.ok_or_else(|| gone(format!("channel {}", identity.channel)))?;
        let person = identities::person(tx, &identity.to_string())?;
        let receiver = Receiver::Address { generation: channel.generation, person: person.id };
        writers::destinations::set(tx, approved, agent.id, self, Some(receiver))?;
        Ok(format!("agent {} has the destination {}", agent.name, self.name))
    }
}
