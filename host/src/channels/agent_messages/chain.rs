//! The rules of a chain: who may send to which agent, how far, how often, and with which tools.
//!
//! Each rule is read anew at each call, so that a removed agent, a changed group or a lost right counts at once. A chain never has more
//! tools than at the step before.

use super::Config;
use crate::registry::destinations::{Destination, State};
use crate::registry::tools;
use crate::registry::{self, groups, roles};
use crate::turns::turn::Position;
use ironclaw_contract::ids::{AgentId, MessageId, PersonId};
use ironclaw_judge::{Class, Principal};
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::tables::agent_messages::{self as table, AgentMessageKind};
use ironclaw_store::tables::{messages, schedules};
use std::collections::BTreeSet;

pub use ironclaw_store::tables::agent_messages::Link;

/// The window of the bound on sends, milliseconds.
pub(super) const MINUTE_MS: i64 = 60_000;

/// What the steps of a chain permit.
#[derive(Debug, Clone, Default)]
pub struct Permitted {
    pub tools: Vec<String>,
    /// True if a schedule began the chain: then no person is asked.
    pub is_of_schedule: bool,
}

/// Returns what a turn of an agent may use at the message of another agent; nothing if a step of the chain is gone.
pub fn permitted(tx: &ReadTx<'_>, position: &Position, agent: AgentId) -> Result<Permitted, Error> {
    let (mut message, mut agent) = (position.message, agent);
    let mut tools: Option<BTreeSet<String>> = None;
    while let Some(of_agent) = table::find(tx, message)? {
        let shared = groups::shared_tools(tx, of_agent.source_agent, agent)?.unwrap_or_default();
        tools = Some(match tools {
            Some(before) => before.intersection(&shared).cloned().collect(),
            None => shared,
        });
        if of_agent.kind == AgentMessageKind::Request {
            agent = of_agent.source_agent;
        }
        message = of_agent.source_message;
    }
    let tools = tools.unwrap_or_default().into_iter();
    Ok(match table::principal_of(tx, message)? {
        Some(Principal::Person) => Permitted { tools: tools.collect(), is_of_schedule: false },
        Some(Principal::Schedule) => {
            let turn = messages::find(tx, message)?.and_then(|row| row.turn);
            let list = turn.map(|turn| schedules::for_turn(tx, turn)).transpose()?.flatten().unwrap_or_default();
            Permitted { tools: tools.filter(|tool| is_listed(&list.may, tool)).collect(), is_of_schedule: true }
        }
        Some(Principal::Guest | Principal::Agent | Principal::Unsigned) | None => Permitted::default(),
    })
}

/// Returns whether the list of a schedule permits a tool by its name or its class. Reading is always permitted.
fn is_listed(may: &[String], tool: &str) -> bool {
    let class = tools::manifest(tool).map(|manifest| manifest.class);
    class == Some(Class::Read)
        || may.iter().any(|entry| entry == tool || class.is_some_and(|class| entry == class.name()))
}

/// The reason why an agent may not send, with its bound if it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub code: DenialCode,
    pub bound: Option<Bound>,
}

impl From<DenialCode> for Denial {
    fn from(code: DenialCode) -> Self {
        Self { code, bound: None }
    }
}

/// Returns the reason why an agent may not send to a destination in a turn; `None` if it may.
pub fn denial(
    tx: &ReadTx<'_>,
    config: &Config,
    position: &Position,
    from: AgentId,
    to: &Destination,
) -> Result<Option<Denial>, Error> {
    let Some(receiver) = to.to_agent else { return to_address(tx, config, from, to) };
    if let Some(code) = standing(tx, position.person, position.chain, from, receiver)? {
        return Ok(Some(code.into()));
    }
    if position.hop >= config.hops_max {
        let remedy = "answer with what you have";
        let bound = Bound::new("hops of this chain of messages between agents", config.hops_max, position.hop, remedy);
        return Ok(Some(Denial { code: DenialCode::CallHops, bound: Some(bound.setting("agents.hops_max")) }));
    }
    over_rate(tx, config, from)
}

/// Returns the reason why an agent may not send to a destination at a message of this person that is not in the record.
pub fn supposed_denial(
    tx: &ReadTx<'_>,
    config: &Config,
    person: PersonId,
    from: AgentId,
    to: &Destination,
) -> Result<Option<Denial>, Error> {
    let Some(receiver) = to.to_agent else { return to_address(tx, config, from, to) };
    match shared_standing(tx, person, from, receiver)? {
        Some(code) => Ok(Some(code.into())),
        None => over_rate(tx, config, from),
    }
}

/// Returns the reason why an agent may not send to an address.
fn to_address(tx: &ReadTx<'_>, config: &Config, from: AgentId, to: &Destination) -> Result<Option<Denial>, Error> {
    match to.state {
        State::Active => over_rate(tx, config, from),
        State::ChannelGone | State::Unlinked | State::AgentGone | State::NoGroup => {
            Ok(Some(DenialCode::CallDestinationEnded.into()))
        }
    }
}

/// Returns the reason why an agent may no longer write to another one for this person.
pub(super) fn standing(
    tx: &ReadTx<'_>,
    person: PersonId,
    chain: MessageId,
    from: AgentId,
    to: AgentId,
) -> Result<Option<DenialCode>, Error> {
    if let Some(code) = shared_standing(tx, person, from, to)? {
        return Ok(Some(code));
    }
    Ok((!is_linked(tx, person, chain)?).then_some(DenialCode::CallRootPerson))
}

/// Returns the reason why an agent may write to another one for this person at no message.
fn shared_standing(tx: &ReadTx<'_>, person: PersonId, from: AgentId, to: AgentId) -> Result<Option<DenialCode>, Error> {
    let Some(receiver) = registry::agent_by_id(tx, to)? else { return Ok(Some(DenialCode::CallDestinationEnded)) };
    if groups::shared_tools(tx, from, to)?.is_none() {
        return Ok(Some(DenialCode::CallGroup));
    }
    let Some(person) = registry::person_by_id(tx, person)? else { return Ok(Some(DenialCode::CallRootPerson)) };
    let may_talk = roles::role_for(tx, &person, &receiver)?.may_talk();
    Ok((!may_talk).then_some(DenialCode::CallRootPerson))
}

/// Returns whether the sender of the message at the start of a chain is still linked to its person.
pub fn is_linked(tx: &ReadTx<'_>, person: PersonId, chain: MessageId) -> Result<bool, Error> {
    let Some(first) = messages::find(tx, chain)? else { return Ok(false) };
    Ok(registry::person_of(tx, &first.channel, &first.sender)?.is_some_and(|linked| linked.id == person))
}

fn over_rate(tx: &ReadTx<'_>, config: &Config, from: AgentId) -> Result<Option<Denial>, Error> {
    let (since, most) = (tx.wall() - MINUTE_MS, config.sends_per_minute);
    let sent = table::sends_since(tx, from, since)?;
    if sent < u64::from(most) {
        return Ok(None);
    }
    let bound = Bound::new("messages of the agent in a minute", most, sent, "go on without it, and say so");
    let first = table::first_send_since(tx, from, since)?;
    let ends_at = first.map(|first| ironclaw_ledger::rfc3339(first + MINUTE_MS));
    let bound = Bound { ends_at, ..bound.setting("agents.sends_per_minute") };
    Ok(Some(Denial { code: DenialCode::CallSends, bound: Some(bound) }))
}

/// Returns the messages of the chain of a message, in order; none if no agent sent one in it.
pub fn links(tx: &ReadTx<'_>, message: MessageId) -> Result<Vec<Link>, Error> {
    let root = messages::root_of(tx, message)?;
    let chain = table::find(tx, root)?.map_or(root, |of_agent| of_agent.chain);
    table::chain(tx, chain)
}
