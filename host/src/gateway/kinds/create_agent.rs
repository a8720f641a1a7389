//! The kind `create_agent`: a new agent with exactly the named capabilities, and no right that its requester does not have.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope};
use super::{enabled_tools, identities, permissions, wiring};
use crate::gateway::Requester;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::live_settings::HostPolicy;
use crate::registry::{self, Agent, AgentDraft, Person, Role, channels, roles, tools};
use ironclaw_contract::seam::change::{Access, AgentRole, Change, CreateAgent, Engage};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, restarts_sessions: true };

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

    fn after(&self, _payload: &Value, _agent: Option<&Agent>) -> Option<Value> {
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
    if let Some(tool) = wanted.enabled_tools.iter().find(|tool| tools::gives_tool(tool) && !has(tool)) {
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

impl Page for CreateAgent {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let Self { name, persona, enabled_tools, members, wirings } = self;
        page.add(format!("Create an agent with the name {}.", page.show(name)));
        match persona.as_ref().filter(|persona| !persona.instructions.is_empty()) {
            Some(_) => page.add("It follows the persona below.".to_owned()),
            None => page.add("It has no persona.".to_owned()),
        }
        // Not parts of the payload; `gateway::writers::agents::create_agent` sets them.
        page.add("It uses the default model endpoint of this host, and the guard mode enforce.".to_owned());
        page.add(format!("Tools that it may call: {}.", page.list(enabled_tools.iter().map(String::as_str))));
        enabled_tools::warn_of_programs(page, "The new agent", enabled_tools, false);
        let members = members.iter().map(|identity| permissions::person(page, identity)).collect::<Vec<_>>();
        let members = if members.is_empty() { "none".to_owned() } else { members.join(", ") };
        page.add(format!("People who may talk to it, besides owners and admins of this host: {members}."));
        for wiring in wirings {
            wiring.effects("the new agent", page);
        }
    }
}

impl Apply for CreateAgent {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let Self { name, persona, enabled_tools, members, wirings } = self;
        let draft = AgentDraft {
            name: name.clone(),
            model: None,
            persona: persona.as_ref().map(|persona| persona.instructions.clone()).unwrap_or_default(),
            enabled_tools: enabled_tools.clone(),
            access: Access::Members,
        };
        let agent = writers::agents::create_agent(tx, approved, draft)?;
        for identity in members {
            let person = identities::person(tx, identity)?;
            writers::roles::set(tx, approved, agent.id, person.id, Some(AgentRole::Member))?;
        }
        for wanted in wirings {
            wiring::wire(tx, approved, &agent, wanted)?;
        }
        Ok(format!("agent {} ({}) created", agent.name, agent.id))
    }
}
