//! The kind `destinations`: an address to which the agent may send messages.

use super::{Apply, Check, CheckContext, Page, Preparation, Prepared, Properties, Scope, concerned, gone, identities};
use crate::gateway::HostPolicy;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::refusal::{Denied, Refusal};
use crate::registry::destinations::{self, Linked};
use crate::registry::{Agent, Identity, LOOPBACK, channels};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, Destination};
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::{Map, Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: false };

/// Returns the identity of an address, if the payload has one.
fn identity(wanted: &Destination) -> Option<Identity> {
    let (channel, sender) = (wanted.channel.clone()?, wanted.address.clone()?);
    Some(Identity { channel, sender })
}

impl Check for Destination {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
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
        let Some(identity) = identity(self) else { return Ok(json!({})) };
        let channel = channels::find(tx, &identity.channel)?;
        let channel = channel.map(|channel| json!({ "generation": channel.generation, "kind": channel.kind }));
        let people: Map<String, Value> = identities::facts(tx, Some(identity.to_string().as_str()).into_iter())?;
        Ok(json!({ "channel": channel, "people": people }))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        Some(json!(self))
    }
}

impl Page for Destination {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let name = page.show(&self.name);
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
            "Each message is judged: the request must ask for sending, and a person decides after foreign text."
                .to_owned(),
        );
        page.warn(format!("Words of the agent LEAVE THIS HOST, and {person} reads them as a message of the agent."));
    }
}

impl Apply for Destination {
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        let Some(identity) = identity(self) else {
            destinations::set(tx, approved, agent.id, self, None)?;
            return Ok(format!("agent {} no longer has the destination {}", agent.name, self.name));
        };
        let channel = channels::find(tx, &identity.channel)?;
        let channel = channel.ok_or_else(|| gone(format!("channel {}", identity.channel)))?;
        let person = identities::person(tx, &identity.to_string())?;
        let linked = Linked { generation: channel.generation, person: person.id };
        destinations::set(tx, approved, agent.id, self, Some(linked))?;
        Ok(format!("agent {} has the destination {}", agent.name, self.name))
    }
}
