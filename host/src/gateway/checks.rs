//! What no change may be, whoever approves it: deterministic, and able to refuse only.
//!
//! Completes what the contract leaves open (targets of mounts, tools of a server), so that a person sees all of it; what it
//! completed once it leaves as it is. Next: `checks::mounts`, `checks::servers`, `apply`.

mod create_agent;
mod mounts;
mod servers;

use super::{Checked, Grounds, Proposed, Requester, concerns_agent, current_settings, settings};
use crate::packages;
use crate::refusal::Denied;
use crate::refusal::Refusal;
use crate::registry::channels::Channel;
use crate::registry::{self, Agent, Identity, LOOPBACK, Person, channels};
use crate::routing::engage;
use crate::session::store;
use crate::tools;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, EnabledTools, Grant, Packages, Permissions, ToolDifference, Wiring};
use ironclaw_state::Tx;
use serde_json::Value;

/// Checks a proposal and completes it.
///
/// # Errors
/// Refuses with the first check that it does not pass.
pub fn check(tx: &Tx<'_>, grounds: &Grounds, proposed: Proposed) -> Result<Checked, Denied> {
    let agent = of_whom(tx, &proposed)?;
    let change = complete(tx, grounds, &proposed, agent.as_ref())?;
    let standing = current_settings::look(tx, grounds, &change, agent.as_ref())?;
    let proposed = Proposed { change, ..proposed };
    if after(&proposed, agent.as_ref()).is_some_and(|after| after == standing.before) {
        let refusal = Refusal::new(DenialCode::ChangeEmpty, "it is so already: this changes nothing");
        return Err(refusal.into());
    }
    Ok(Checked { proposed, standing })
}

/// What stands in the place of `before` once the change is applied, where there is something to compare.
fn after(proposed: &Proposed, agent: Option<&Agent>) -> Option<Value> {
    let payload = || Some(proposed.change.payload().into());
    match (&proposed.change, agent) {
        (Change::CreateAgent(_), _) => None,
        // The same names again bring what is published under them by now, or mend a layer that was damaged.
        (Change::Packages(Packages { apt, npm }), _) if !apt.is_empty() || !npm.is_empty() => None,
        (Change::Permissions(wanted), Some(agent)) => Some(current_settings::permissions_after(wanted, agent.access)),
        (Change::Permissions(_), None) => None,
        (
            Change::Persona(_)
            | Change::EnabledTools(_)
            | Change::Packages(_)
            | Change::Wiring(_)
            | Change::Mounts(_)
            | Change::McpAccess(_)
            | Change::McpRegister(_)
            | Change::Settings(_),
            _,
        ) => payload(),
    }
}

/// The agent that it concerns, or whose wish it is, as it stands in the record now.
fn of_whom(tx: &Tx<'_>, proposed: &Proposed) -> Result<Option<Agent>, Denied> {
    let kind = proposed.change.kind();
    let agent = match &proposed.agent {
        None => None,
        Some(agent) => Some(
            registry::agent_by_id(tx, *agent)?
                .ok_or_else(|| Refusal::new(DenialCode::AgentGone, "the agent was removed"))?,
        ),
    };
    match &proposed.requester {
        Requester::Agent { principal: _, origin: _ } if !kind.is_for_agents() => {
            let message = format!("a change of kind {kind} is not an agent's to ask for");
            return Err(Refusal::new(DenialCode::ChangeNotAnAgents, message).hint("a person asks for it").into());
        }
        Requester::Agent { principal: _, origin } => {
            let own = store::find(tx, origin.session)?.map(|session| session.agent);
            if own.is_none() || own != agent.as_ref().map(|agent| agent.id) {
                let refusal = Refusal::new(DenialCode::ChangeOfAnother, "an agent asks for itself and for nobody else");
                return Err(refusal.into());
            }
        }
        Requester::Person(_) if !concerns_agent(kind) && agent.is_some() => {
            let message = format!("a change of kind {kind} concerns no agent that there is");
            return Err(Refusal::new(DenialCode::AgentSuperfluous, message).hint("leave out --agent").into());
        }
        Requester::Person(_) => {}
    }
    if let Change::Settings(wanted) = &proposed.change {
        settings::check_agent(wanted, agent.as_ref())?;
        return Ok(agent);
    }
    if concerns_agent(kind) && agent.is_none() {
        let message = format!("a change of kind {kind} concerns an agent");
        let refusal = Refusal::new(DenialCode::AgentMissing, message);
        return Err(refusal.hint("name it with --agent; `ironctl agent list` shows who there is").into());
    }
    Ok(agent)
}

/// The change with nothing left open, in the one order that its lists have.
fn complete(tx: &Tx<'_>, grounds: &Grounds, proposed: &Proposed, agent: Option<&Agent>) -> Result<Change, Denied> {
    Ok(match proposed.change.clone() {
        Change::Persona(persona) => Change::Persona(persona),
        Change::EnabledTools(wanted) => Change::EnabledTools(EnabledTools::All(tools_after(wanted, agent)?)),
        Change::Packages(Packages { mut apt, mut npm }) => {
            apt.sort();
            npm.sort();
            let wanted = Packages { apt, npm };
            if let Some(refusal) = packages::refused(&grounds.packages, &wanted) {
                return Err(refusal.into());
            }
            Change::Packages(wanted)
        }
        Change::Wiring(wiring) => {
            known(tx, &wiring)?;
            Change::Wiring(wiring)
        }
        Change::Permissions(Permissions { access, mut grant, mut revoke }) => {
            grant.sort_by(|one, other| one.identity.cmp(&other.identity));
            revoke.sort();
            let named = grant.iter().map(|Grant { identity, .. }| identity);
            each_once(tx, named.chain(&revoke))?;
            Change::Permissions(Permissions { access, grant, revoke })
        }
        Change::Mounts(wanted) => Change::Mounts(mounts::complete(wanted, grounds)?),
        Change::CreateAgent(wanted) => Change::CreateAgent(create_agent::complete(tx, proposed, agent, wanted)?),
        Change::McpAccess(wanted) => Change::McpAccess(servers::complete_access(tx, wanted)?),
        Change::McpRegister(wanted) => Change::McpRegister(servers::complete_server(tx, wanted)?),
        Change::Settings(wanted) => {
            settings::check(tx, &wanted)?;
            Change::Settings(wanted)
        }
    })
}

/// The tools of a list, in its one order.
fn enabled(mut wanted: Vec<String>) -> Result<Vec<String>, Refusal> {
    tools::check(&wanted)?;
    wanted.sort();
    Ok(wanted)
}

/// All tools that an agent has after a change: a difference is applied to those that it has now.
fn tools_after(wanted: EnabledTools, agent: Option<&Agent>) -> Result<Vec<String>, Refusal> {
    let ToolDifference { add, remove } = match wanted {
        EnabledTools::All(tools) => return enabled(tools),
        EnabledTools::Difference(difference) => difference,
    };
    // What cannot be enabled may still be taken away.
    if let Some(unknown) = remove.iter().find(|name| tools::find(name).is_none()) {
        tools::check(std::slice::from_ref(unknown))?;
    }
    let had = agent.map(|agent| agent.enabled_tools.clone()).unwrap_or_default();
    let mut after: Vec<String> = had.into_iter().filter(|tool| !remove.contains(tool)).collect();
    let new: Vec<String> = add.into_iter().filter(|tool| !after.contains(tool)).collect();
    after.extend(new);
    enabled(after)
}

/// The channel that a wiring names.
fn known(tx: &Tx<'_>, wiring: &Wiring) -> Result<Channel, Denied> {
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

/// Whoever is linked to each of these; two names of one person would say two things about them.
fn each_once<'a>(tx: &Tx<'_>, identities: impl Iterator<Item = &'a String>) -> Result<Vec<Person>, Denied> {
    let mut people: Vec<Person> = Vec::new();
    for identity in identities {
        let parsed: Identity = identity.parse()?;
        let Some(person) = registry::person_behind(tx, &parsed)? else {
            let refusal = Refusal::new(DenialCode::IdentityUnlinked, format!("{parsed} is linked to no person"));
            return Err(refusal.hint("an owner links it first: `ironctl person link`").into());
        };
        if people.iter().any(|other| other.id == person.id) {
            // Not who: an agent that asks need not know.
            let message = format!("{parsed} is somebody whom it names already");
            return Err(Refusal::new(DenialCode::PersonTwice, message).hint("name each person once").into());
        }
        people.push(person);
    }
    Ok(people)
}

#[cfg(test)]
pub(crate) mod tests;
