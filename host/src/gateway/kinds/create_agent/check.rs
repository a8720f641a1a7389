//! Checks a new agent: it gets no right that its requester does not have.
//!
//! Never gives it a capability that the change does not name.

use super::super::kind::{Check, CheckContext};
use super::super::{enabled_tools, identities, wiring};
use crate::gateway::Requester;
use crate::registry::live_settings::HostPolicy;
use crate::registry::{self, Agent, Person, Role, channels, roles};
use crate::store::refusal::{Denied, Refusal};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, CreateAgent, Engage};
use ironclaw_state::ReadTx;
use serde_json::{Value, json};

impl Check for CreateAgent {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        complete(tx, context, self.clone()).map(Change::CreateAgent)
    }

    fn current(&self, _tx: &ReadTx<'_>, _agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        Ok(Value::Null)
    }

    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({
            "identities": identities::facts(tx, self.members.iter().map(String::as_str))?,
            "channels": wiring::facts(tx, &self.wirings)?,
        }))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        None
    }
}

/// Checks a new agent and sorts its lists.
fn complete(tx: &ReadTx<'_>, context: &CheckContext<'_>, wanted: CreateAgent) -> Result<CreateAgent, Denied> {
    let CreateAgent { name, persona, enabled_tools, mut members, mut wirings } = wanted;
    registry::check_agent_name(&name)?;
    if registry::find_agent(tx, &name)?.is_some() {
        let refusal = Refusal::new(DenialCode::AgentExists, format!("agent `{name}` exists already"));
        return Err(refusal.hint("choose another name").into());
    }
    let enabled_tools = enabled_tools::complete(enabled_tools)?;
    members.sort();
    let people = identities::each_once(tx, members.iter())?;
    wirings.sort_by(|one, other| one.channel.cmp(&other.channel));
    for (at, wiring) in wirings.iter().enumerate() {
        wiring::known(tx, context, wiring)?;
        if wiring.engage == Engage::None {
            let message = format!("channel {}: a new agent hears no channel without a wiring", wiring.channel);
            return Err(Refusal::new(DenialCode::WiringNone, message).hint("leave the wiring out").into());
        }
        if wirings[..at].iter().any(|other| other.channel == wiring.channel) {
            return Err(
                Refusal::new(DenialCode::WiringTwice, format!("channel {} is named twice", wiring.channel)).into()
            );
        }
    }
    let wanted = CreateAgent { name, persona, enabled_tools, members, wirings };
    match context.requester {
        Requester::Agent { .. } => check_within(tx, context.agent, &wanted, &people)?,
        Requester::Person(person) => {
            let role = registry::person_by_id(tx, *person)?.map(|person| person.role);
            match role {
                Some(Role::Owner | Role::Admin) => {}
                // A member, or a removed person, has no right to pass on.
                Some(Role::Member) | None => check_within(tx, None, &wanted, &people)?,
            }
        }
    }
    Ok(wanted)
}

/// Refuses a new agent with a tool, a channel or a member that its creator does not have.
fn check_within(
    tx: &ReadTx<'_>,
    creator: Option<&Agent>,
    wanted: &CreateAgent,
    people: &[Person],
) -> Result<(), Denied> {
    let refuse = |excess: String| {
        let refusal = Refusal::new(
            DenialCode::CreateAgentGrants,
            format!("a new agent gets only what its creator has, and not {excess}"),
        );
        Err(refusal.hint("an owner or admin of the host can request it, or change the new agent later").into())
    };
    let has = |tool: &&String| creator.is_some_and(|creator| creator.enabled_tools.contains(tool));
    if let Some(tool) = wanted.enabled_tools.iter().find(|tool| !has(tool)) {
        return refuse(format!("the tool {tool}"));
    }
    for wiring in &wanted.wirings {
        let heard = channels::find(tx, &wiring.channel)?.and_then(|channel| channel.agent);
        if heard.is_none() || heard != creator.map(|creator| creator.id) {
            return refuse(format!("the channel {}", wiring.channel));
        }
    }
    for person in people {
        let talks = match creator {
            Some(creator) => roles::role_for(tx, person, creator)?.may_talk(),
            None => false,
        };
        if !talks {
            return refuse("a member who may not talk to the creator".to_owned());
        }
    }
    Ok(())
}
