//! Checks a new agent: it gets no right that its requester does not have.
//!
//! Never gives it a capability that the change does not name.

use super::super::{Check, CheckContext, enabled_tools, identities, wiring};
use crate::gateway::{Grounds, Requester};
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Agent, Person, Role, channels, roles};
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

    fn facts(&self, tx: &ReadTx<'_>, _grounds: &Grounds) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({
            "identities": identities::facts(tx, self.members.iter().map(String::as_str))?,
            "channels": wiring::facts(tx, &self.wirings)?,
        }))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        None
    }
}

/// Checks a new agent and puts its lists in one order.
fn complete(tx: &ReadTx<'_>, context: &CheckContext<'_>, wanted: CreateAgent) -> Result<CreateAgent, Denied> {
    let CreateAgent { name, persona, enabled_tools, mut members, mut wirings } = wanted;
    registry::check_agent_name(&name)?;
    if registry::find_agent(tx, &name)?.is_some() {
        let refusal = Refusal::new(DenialCode::AgentExists, format!("there is an agent `{name}` already"));
        return Err(refusal.hint("choose another name").into());
    }
    let enabled_tools = enabled_tools::complete(enabled_tools)?;
    members.sort();
    let people = identities::each_once(tx, members.iter())?;
    wirings.sort_by(|one, other| one.channel.cmp(&other.channel));
    for (at, wiring) in wirings.iter().enumerate() {
        wiring::known(tx, wiring)?;
        if wiring.engage == Engage::None {
            let message = format!("a new agent does not hear {} anyway", wiring.channel);
            return Err(Refusal::new(DenialCode::WiringNone, message).hint("leave it out").into());
        }
        if wirings[..at].iter().any(|other| other.channel == wiring.channel) {
            return Err(Refusal::new(DenialCode::WiringTwice, format!("{} stands there twice", wiring.channel)).into());
        }
    }
    let wanted = CreateAgent { name, persona, enabled_tools, members, wirings };
    match context.requester {
        Requester::Agent { .. } => no_more_than(tx, context.agent, &wanted, &people)?,
        Requester::Person(person) => {
            let role = registry::person_by_id(tx, *person)?.map(|person| person.role);
            match role {
                Some(Role::Owner | Role::Admin) => {}
                // Who runs nothing of the host has nothing to hand on.
                Some(Role::Member) | None => no_more_than(tx, None, &wanted, &people)?,
            }
        }
    }
    Ok(wanted)
}

/// A new agent has no tool, hears no channel and answers nobody that its creator has not.
fn no_more_than(
    tx: &ReadTx<'_>,
    creator: Option<&Agent>,
    wanted: &CreateAgent,
    people: &[Person],
) -> Result<(), Denied> {
    let refuse = |what: String| {
        let refusal = Refusal::new(
            DenialCode::CreateAgentGrants,
            format!("a new agent gets nothing that its creator has not: {what}"),
        );
        Err(refusal.hint("an owner or admin of the host can ask for it, or change the new agent later").into())
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
            return refuse("a member who may not talk to it".to_owned());
        }
    }
    Ok(())
}
