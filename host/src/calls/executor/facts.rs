//! The facts of a turn that the judgement of its calls reads.
//!
//! Never judges a call. Reads bodies of messages only for an agent that may send requests. See [`crate::turns::calls`].

use super::flows;
use crate::channels::agent_messages::chain;
use crate::registry::destinations::{self, Destination};
use crate::registry::live_settings::{Live, LiveSettings};
use crate::registry::tools::{SEND_FILE, SEND_MESSAGE};
use crate::registry::{self, Agent, egress, mcp};
use crate::turns::calls::http::Network;
use crate::turns::calls::{Sendable, TurnFacts};
use crate::turns::items;
use crate::turns::turn::{Position, Turn};
use ironclaw_contract::ids::{MessageId, PersonId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::provenance::spans::{self, Telling, TypedSpan};
use ironclaw_judge::provenance::typed::Typed;
use ironclaw_judge::scope::recorded::Recorded;
use ironclaw_judge::{Classes, Principal};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::destinations as addresses;
use ironclaw_store::tables::messages;
use ironclaw_store::tables::schedules::{self, OfTurn};

/// Returns the facts of a turn for the calls of an output with these labels.
pub fn for_turn(
    tx: &ReadTx<'_>,
    settings: &Live,
    turn: &Turn,
    agent: &Agent,
    labels: Labels,
    key: &ContentKey,
) -> Result<TurnFacts, Error> {
    let catalogue = mcp::catalogue(tx, agent)?;
    let may_send = [SEND_MESSAGE, SEND_FILE].iter().any(|tool| catalogue.missing(tool).is_none());
    let reads_chain = may_send || turn.principal_kind == Principal::Agent;
    let position = reads_chain.then(|| Position::find(tx, turn)).transpose()?;
    let principal = principal_of(tx, turn, position.as_ref())?;
    let of_schedule = match principal {
        Principal::Schedule => schedules::for_turn(tx, turn.id)?.unwrap_or_default(),
        Principal::Person | Principal::Guest | Principal::Agent | Principal::Unsigned => OfTurn::default(),
    };
    let flows = flows::open(tx, turn, &of_schedule, key)?;
    let network = match catalogue.has_outward() {
        true => network(tx, settings, turn, &of_schedule, agent, key)?,
        false => Network::default(),
    };
    let destinations = match position.as_ref().filter(|_| may_send) {
        Some(position) => sendable(tx, settings, position, agent)?,
        None => Vec::new(),
    };
    let of_agents = match (principal, &position) {
        (Principal::Agent, Some(position)) => chain::permitted(tx, position, agent.id)?,
        (Principal::Agent, None)
        | (Principal::Person | Principal::Guest | Principal::Schedule | Principal::Unsigned, _) => {
            chain::Permitted::default()
        }
    };
    Ok(TurnFacts {
        principal,
        scope: turn.scope,
        labels,
        catalogue,
        network,
        of_schedule,
        of_agents: of_agents.tools,
        is_of_schedule: of_agents.is_of_schedule,
        destinations,
        flows,
        position,
    })
}

/// A turn that is supposed and not in the record.
pub struct SupposedTurn {
    pub principal: Principal,
    /// The person on whose behalf it works.
    pub person: PersonId,
    /// The classes that its request asks for.
    pub scope: Classes,
    /// The labels of its output.
    pub labels: Labels,
    /// The values that the person typed.
    pub typed: Typed,
    /// The list of its schedule.
    pub of_schedule: OfTurn,
    /// The tools that the trust groups of its chain permit.
    pub of_agents: Vec<String>,
}

/// Returns the facts of a supposed turn.
pub fn for_supposed(
    tx: &ReadTx<'_>,
    settings: &LiveSettings,
    agent: &Agent,
    turn: SupposedTurn,
) -> Result<TurnFacts, Error> {
    let SupposedTurn { principal, person, scope, labels, typed, of_schedule, of_agents } = turn;
    let loopback = settings.host_policy.egress.loopback();
    let grants = egress::grants_of(tx, agent.id, loopback)?;
    let flows = flows::held(tx, agent.id, person, &of_schedule)?;
    let held = destinations::list_for_agent(tx, agent.id)?.into_iter().map(|destination| {
        let denied = chain::supposed_denial(tx, &settings.agents, person, agent.id, &destination)?;
        Ok(judged_destination(destination, denied))
    });
    Ok(TurnFacts {
        principal,
        scope,
        labels,
        catalogue: mcp::catalogue(tx, agent)?,
        network: Network { grants, loopback, typed },
        of_schedule,
        of_agents,
        is_of_schedule: false,
        destinations: held.collect::<Result<_, Error>>()?,
        flows,
        position: None,
    })
}

/// Returns the destinations of an agent, each with the reason why the agent may not send there in this turn.
fn sendable(tx: &ReadTx<'_>, settings: &Live, position: &Position, agent: &Agent) -> Result<Vec<Sendable>, Error> {
    let config = &settings.now().agents;
    let held = destinations::list_for_agent(tx, agent.id)?.into_iter().map(|destination| {
        let denied = chain::denial(tx, config, position, agent.id, &destination)?;
        Ok(judged_destination(destination, denied))
    });
    held.collect()
}

fn judged_destination(destination: Destination, denied: Option<chain::Denial>) -> Sendable {
    let (denied, bound) = denied.map_or((None, None), |chain::Denial { code, bound }| (Some(code), bound));
    Sendable { destination, denied, bound }
}

/// Returns the kind of principal of a turn. A person whose identity was unlinked since the message may ask for nothing more.
fn principal_of(tx: &ReadTx<'_>, turn: &Turn, position: Option<&Position>) -> Result<Principal, Error> {
    let kind = turn.principal_kind;
    if let (Principal::Agent, Some(position)) = (kind, position) {
        let is_linked = chain::is_linked(tx, position.person, position.chain)?;
        return Ok(if is_linked { kind } else { Principal::Unsigned });
    }
    let sender = addresses::sender_of_turn(tx, turn.id)?.filter(|_| kind == Principal::Person);
    let Some((channel, sender)) = sender else { return Ok(kind) };
    let person = registry::person_of(tx, &channel, &sender)?;
    let is_linked = person.is_some_and(|person| turn.principal.parse() == Ok(person.id));
    Ok(if is_linked { kind } else { Principal::Unsigned })
}

fn network(
    tx: &ReadTx<'_>,
    settings: &Live,
    turn: &Turn,
    of_schedule: &OfTurn,
    agent: &Agent,
    key: &ContentKey,
) -> Result<Network, Error> {
    let loopback = settings.now().host_policy.egress.loopback();
    let grants = egress::grants_of(tx, agent.id, loopback)?;
    let messages = task_texts(tx, turn, of_schedule, key)?;
    let typed = messages.iter().flat_map(TaskText::typed);
    Ok(Network { grants, loopback, typed: Typed::new(typed, loopback) })
}

/// The text of a message of a task, with its authors.
struct TaskText {
    body: String,
    spans: Vec<Span>,
    telling: Telling,
    person: PersonId,
}

impl TaskText {
    /// Returns the spans that the person of the task typed.
    fn typed(&self) -> Vec<TypedSpan<'_>> {
        let mut from = 0;
        let span = |span: &Span| {
            let text = self.body.get(from..from + span.bytes).unwrap_or_default();
            from += span.bytes;
            spans::Span { text, typed: span.author == Author::Person { person: self.person } }
        };
        let all: Vec<_> = self.spans.iter().map(span).collect();
        spans::typed(&all, self.telling)
    }
}

/// Returns the messages of the turn's task. Only a person types values in a task: the prompt of a schedule counts if its creator typed it.
fn task_texts(tx: &ReadTx<'_>, turn: &Turn, of_schedule: &OfTurn, key: &ContentKey) -> Result<Vec<TaskText>, Error> {
    if turn.principal_kind != Principal::Person && !of_schedule.is_typed {
        return Ok(Vec::new());
    }
    let person = turn.person()?;
    let mut texts = Vec::new();
    for message in task_messages(tx, turn)? {
        let Some(item) = items::find(tx, message.item())? else { continue };
        let telling = match of_schedule.is_typed {
            // A person wrote and approved the prompt; its scope is that of the schedule.
            true => Telling::Typed,
            // A scope of an earlier version does not say what the channel told.
            false => item.tuple.scope.parse().map_or(Telling::Nothing, |scope: Recorded| scope.telling),
        };
        texts.push(TaskText { body: items::body(tx, &item, key)?, spans: item.spans(), telling, person });
    }
    Ok(texts)
}

/// Returns the messages of a turn, and those of the turn whose task it continues.
fn task_messages(tx: &ReadTx<'_>, turn: &Turn) -> Result<Vec<MessageId>, ironclaw_state::Error> {
    let mut all = messages::that_asked(tx, turn.id)?;
    for message in all.clone() {
        let root = messages::root_of(tx, message)?;
        if root == message {
            continue;
        }
        let of_root = messages::find(tx, root)?.and_then(|root| root.turn);
        for other in of_root.map(|turn| messages::that_asked(tx, turn)).transpose()?.unwrap_or_default() {
            if !all.contains(&other) {
                all.push(other);
            }
        }
    }
    Ok(all)
}
