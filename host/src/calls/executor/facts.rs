//! The facts of a turn that the judgement of its calls reads.
//!
//! Never judges a call. Reads bodies of messages only for an agent that may send requests. See [`crate::turns::calls`].

mod handles;

use super::flows;
use crate::channels::agent_messages::chain;
use crate::registry::destinations::{self, Destination};
use crate::registry::live_settings::{Live, LiveSettings};
use crate::registry::tools::catalogue::Catalogue;
use crate::registry::tools::{SEND_FILE, SEND_MESSAGE};
use crate::registry::{self, Agent, egress, mcp, mounts};
use crate::turns::calls::http::Network;
use crate::turns::calls::{Sendable, TurnFacts};
use crate::turns::items::{self, Recorded};
use crate::turns::turn::{self, Position, Turn};
use ironclaw_contract::ids::{CallId, ItemId, MessageId, PersonId};
use ironclaw_contract::seam::message::Span;
use ironclaw_judge::inputs::{Handles, Holder, Message, Task};
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::provenance::spans::{Telling, TypedSpan};
use ironclaw_judge::provenance::typed::Typed;
use ironclaw_judge::scope::recorded::Recorded as RecordedScope;
use ironclaw_judge::{Classes, Principal};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::destinations as addresses;
use ironclaw_store::tables::messages;
use ironclaw_store::tables::schedules::{self, OfTurn};
use ironclaw_store::tables::turns::{self, UsedOf};

/// The calls that are judged: those of a new output, or one that was recorded.
#[derive(Clone, Copy)]
pub struct Judging {
    /// The labels of the output.
    pub labels: Labels,
    /// The recorded call.
    pub call: Option<CallId>,
}

/// Returns the facts of a turn for these calls.
pub fn for_turn(
    tx: &ReadTx<'_>,
    settings: &Live,
    turn: &Turn,
    agent: &Agent,
    judging: Judging,
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
    let Typing { network, handles, has_notes_of_others } =
        typing(tx, settings, turn, agent, &catalogue, TypingOf { of_schedule: &of_schedule, call: judging.call, key })?;
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
    let receiver = settings.now().policy.receiver_of(agent);
    Ok(TurnFacts {
        principal,
        receiver,
        scope: turn.scope.and(receiver.allowed(turn.principal_kind).may),
        binds_contained: turn::binds_contained(tx, turn.id)?,
        has_writable: has_writable(tx, agent)?,
        labels: judging.labels,
        catalogue,
        network,
        handles,
        has_notes_of_others,
        of_schedule,
        of_agents: of_agents.tools,
        is_of_schedule: of_agents.is_of_schedule,
        destinations,
        flows,
        position,
    })
}

/// What the person of a turn typed in its task.
#[derive(Default)]
struct Typing {
    network: Network,
    handles: Handles,
    has_notes_of_others: bool,
}

/// Reads what the person typed in the task of a turn, as far as tools of the agent read it.
fn typing(
    tx: &ReadTx<'_>,
    settings: &Live,
    turn: &Turn,
    agent: &Agent,
    catalogue: &Catalogue,
    of: TypingOf<'_>,
) -> Result<Typing, Error> {
    let TypingOf { of_schedule, call, key } = of;
    if !catalogue.has_outward() {
        return Ok(Typing::default());
    }
    let texts = task_texts(tx, turn, of_schedule, key)?;
    let network = network(tx, settings, agent, &texts)?;
    if !catalogue.has_inputs() {
        return Ok(Typing { network, ..Typing::default() });
    }
    let used = turns::used_handles(tx, turn.session, call, UsedOf::Results)?;
    let returned = match texts.is_empty() {
        true => Vec::new(),
        false => handles::returned(tx, turn, handles::Judged { call, used: &used }, key)?,
    };
    let mut handles = Handles::new(network.loopback);
    returned.iter().for_each(|found| found.add_names(&mut handles));
    let mut handles = handles::for_task(tx, turn, &texts, agent, handles, key)?;
    returned.into_iter().for_each(|found| found.add(&mut handles));
    used.into_iter().for_each(|used| handles.mark_used(used.id, used.at));
    let messages = handles.iter().map(|handle| handle.id).filter(|id| id.holder == Holder::Message);
    if let Some(from) = messages.map(|id| id.seq).min() {
        let used = turns::used_handles(tx, turn.session, call, UsedOf::Messages { from })?;
        used.into_iter().for_each(|used| handles.mark_used(used.id, used.at));
    }
    let has_notes_of_others = handles::has_notes_of_others(tx, turn, key)?;
    Ok(Typing { network, handles, has_notes_of_others })
}

/// The turn whose person typed, and the recorded call that is judged.
struct TypingOf<'a> {
    of_schedule: &'a OfTurn,
    call: Option<CallId>,
    key: &'a ContentKey,
}

/// A turn that is supposed and not in the record.
pub struct SupposedTurn {
    pub principal: Principal,
    /// The person on whose behalf it works.
    pub person: PersonId,
    /// The classes that its request asks for.
    pub scope: Classes,
    /// True if the person declared them for contained calls too.
    pub binds_contained: bool,
    /// The labels of its output.
    pub labels: Labels,
    /// The texts that the person typed.
    pub typed: Vec<String>,
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
    let SupposedTurn { principal, person, scope, binds_contained, labels, typed, of_schedule, of_agents } = turn;
    let loopback = settings.host_policy.egress.loopback();
    let grants = egress::grants_of(tx, agent.id, loopback)?;
    let flows = flows::held(tx, agent.id, person, &of_schedule)?;
    let spans: Vec<TypedSpan<'_>> = typed.iter().map(|text| TypedSpan::whole(text)).collect();
    let network = Network { grants, loopback, typed: Typed::new(spans.iter().cloned(), loopback) };
    let mut handles = Handles::new(loopback);
    let message = Message { item: ItemId::new(), seq: 0, spans, task: Task::This };
    handles.add(&message, &destinations::known_names(tx, agent)?);
    let held = destinations::list_for_agent(tx, agent.id)?.into_iter().map(|destination| {
        let denied = chain::supposed_denial(tx, &settings.agents, person, agent.id, &destination)?;
        Ok(judged_destination(destination, denied))
    });
    Ok(TurnFacts {
        principal,
        receiver: settings.policy.receiver_of(agent),
        scope,
        binds_contained,
        has_writable: has_writable(tx, agent)?,
        labels,
        catalogue: mcp::catalogue(tx, agent)?,
        network,
        handles,
        has_notes_of_others: false,
        of_schedule,
        of_agents,
        is_of_schedule: false,
        destinations: held.collect::<Result<_, Error>>()?,
        flows,
        position: None,
    })
}

/// Returns whether people granted the agent a directory of the machine for writing.
fn has_writable(tx: &ReadTx<'_>, agent: &Agent) -> Result<bool, ironclaw_state::Error> {
    Ok(mounts::list_for_agent(tx, agent.id)?.iter().any(|mount| !mount.read_only))
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

fn network(tx: &ReadTx<'_>, settings: &Live, agent: &Agent, texts: &[TaskText]) -> Result<Network, Error> {
    let loopback = settings.now().host_policy.egress.loopback();
    let grants = egress::grants_of(tx, agent.id, loopback)?;
    let typed = texts.iter().flat_map(TaskText::typed);
    Ok(Network { grants, loopback, typed: Typed::new(typed, loopback) })
}

/// The text of a message of a task, with its authors.
pub(super) struct TaskText {
    item: ItemId,
    seq: u64,
    body: String,
    spans: Vec<Span>,
    telling: Telling,
    person: PersonId,
}

impl TaskText {
    /// Reads a message for its person.
    fn read(
        tx: &ReadTx<'_>,
        item: &Recorded,
        person: PersonId,
        is_of_schedule: bool,
        key: &ContentKey,
    ) -> Result<Self, Error> {
        let telling = match is_of_schedule {
            // A person wrote and approved the prompt; its scope is that of the schedule.
            true => Telling::Typed,
            // A scope of an earlier version does not say what the channel told.
            false => item.tuple.scope.parse().map_or(Telling::Nothing, |scope: RecordedScope| scope.telling),
        };
        let (id, seq) = (item.tuple.item, item.tuple.seq);
        Ok(Self { item: id, seq, body: items::body(tx, item, key)?, spans: item.spans(), telling, person })
    }

    /// Returns the message with its typed spans.
    fn message(&self, task: Task) -> Message<'_> {
        Message { item: self.item, seq: self.seq, spans: self.typed(), task }
    }

    /// Returns the spans that the person of the task typed.
    fn typed(&self) -> Vec<TypedSpan<'_>> {
        items::typed_spans(&self.body, &self.spans, self.person, self.telling)
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
        texts.push(TaskText::read(tx, &item, person, of_schedule.is_typed, key)?);
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
