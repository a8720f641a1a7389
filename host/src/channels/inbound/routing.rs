//! Decides the agent and the session of a message, whether its sender may talk to that agent, and whether it asks for an answer.
//!
//! Never touches a queue or a process. See [`crate::channels::inbound::inbox`].

pub mod engage;

use crate::channels::inbound::channel::Received;
use crate::channels::inbound::identity::Authenticated;
use crate::registry::channels::{self, Channel};
use crate::registry::quota;
use crate::registry::{self, Agent};
use crate::sessions::store::{self, Origin, OriginKind, Session};
use engage::Engaged;
use ironclaw_contract::seam::change::{Access, Ignored, Sharing};
use ironclaw_operator::DenialCode;
use ironclaw_state::keys::WrappingKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};

/// A message with its session. Made by [`route`] alone.
#[derive(Debug, Clone)]
pub struct Routed {
    message: Authenticated,
    session: Session,
    engaged: Engaged,
}

impl Routed {
    pub const fn message(&self) -> &Authenticated {
        &self.message
    }

    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns whether the message opens a turn; any other message is context of the next turn.
    pub fn asks(&self) -> bool {
        self.engaged != Engaged::Not
    }

    /// Returns whether it opens a turn because it mentions the agent.
    pub fn mentions(&self) -> bool {
        self.engaged == Engaged::ByMention
    }
}

/// Finds the agent and the session of this origin. The first message makes the session.
///
/// # Errors
/// Refuses an unknown agent, a sender who may not talk to it, a channel that the agent does not hear, a message that the rules of the
/// channel drop, and a new conversation beyond the bounds of its person, its channel or the host.
pub fn route(
    tx: &mut WriteTx<'_>,
    message: Authenticated,
    quota: &quota::Config,
    numbers: u32,
    wrapping: &WrappingKey,
) -> Result<Routed, Denied<Error>> {
    let agent = agent_of(tx, &message)?;
    let (origin, engaged) = match heard(tx, &message, &agent)? {
        None => (persons_origin(&message), Engaged::ByRule),
        Some(channel) => place(tx, &channel, &agent, &message)?,
    };
    // A guest has no row, and a session of several people belongs to none of them.
    let person = message.person().map(|person| person.id).filter(|_| origin.kind == OriginKind::Sender);
    if store::find_by_origin(tx, agent.id, &origin)?.is_none() {
        quota.admit_conversation(tx, message.sender_id(), &origin.channel)?;
    }
    let session = store::find_or_create(tx, &agent, &origin, person, numbers, wrapping)?;
    Ok(Routed { message, session, engaged })
}

/// Returns the agent of a message, if its sender may talk to it.
///
/// # Errors
/// Refuses the sender. A guest of an agent that is for its members only learns no more than on a channel without an agent.
fn agent_of(tx: &ReadTx<'_>, message: &Authenticated) -> Result<Agent, Denied> {
    let wanted = &message.received().agent;
    match message.person() {
        Some(person) => {
            let agent = registry::named_agent(tx, person, wanted)?;
            match registry::roles::role_for(tx, person, &agent)?.may_talk() {
                true => Ok(agent),
                false => Err(not_yours(&agent).into()),
            }
        }
        None => match registry::find_agent(tx, wanted)? {
            Some(agent) if agent.access == Access::Everyone => Ok(agent),
            Some(_) | None => Err(unheard().into()),
        },
    }
}

/// Returns the channel of a message if it is subject to rules; `None` for the loopback.
///
/// # Errors
/// Refuses a channel that the agent does not hear.
fn heard(tx: &ReadTx<'_>, message: &Authenticated, agent: &Agent) -> Result<Option<Channel>, Denied> {
    let received = message.received();
    if received.channel == registry::LOOPBACK {
        return Ok(None);
    }
    // The caller read the channel earlier, and its agent may have changed since then.
    match channels::find(tx, &received.channel)? {
        Some(channel) if channel.agent == Some(agent.id) => Ok(Some(channel)),
        Some(_) | None => Err(unheard().into()),
    }
}

/// Returns the origin of a message of a channel, and whether the message opens a turn.
///
/// # Errors
/// Refuses a message that opens no turn if the channel drops those.
fn place(
    tx: &ReadTx<'_>,
    channel: &Channel,
    agent: &Agent,
    message: &Authenticated,
) -> Result<(Origin, Engaged), Denied<Error>> {
    let received = message.received();
    if message.written_by().is_some() {
        return Ok((persons_origin(message), Engaged::ByRule));
    }
    let is_guest = message.person().is_none();
    let shared = shared_origin(channel.rules.sharing, received, is_guest);
    // A guest who gets answers has a session of their own.
    let own = if is_guest { own_origin(received, OriginKind::Guest) } else { shared.clone() };
    let engaged = match engage::hears_sender(channel, message) {
        true => {
            let session = store::find_by_origin(tx, agent.id, &own)?;
            engage::engaged(tx, channel, agent, received, session.as_ref())?
        }
        false => Engaged::Not,
    };
    match (engaged, channel.rules.ignored) {
        (Engaged::Not, Ignored::Accumulate) => Ok((shared, engaged)),
        (Engaged::Not, Ignored::Drop) => {
            let words = "the message asks the agent for nothing, and its channel drops such messages";
            Err(Refusal::new(DenialCode::MessageIgnored, words).into())
        }
        (Engaged::ByRule | Engaged::ByMention, _) => Ok((own, engaged)),
    }
}

/// Returns the origin of a person's message, or of the runs of the schedule that sends it.
fn persons_origin(message: &Authenticated) -> Origin {
    Origin { runs: message.runs(), ..own_origin(message.received(), OriginKind::Sender) }
}

/// Returns the origin of messages of this sender alone.
fn own_origin(received: &Received, kind: OriginKind) -> Origin {
    let (channel, address, thread) = (&received.channel, &received.platform_id, &received.thread_id);
    Origin { kind, ..Origin::from_sender(channel.clone(), address.clone(), thread.clone()) }
}

/// Returns the origin of a message by the sharing of its channel.
fn shared_origin(sharing: Sharing, received: &Received, is_guest: bool) -> Origin {
    let alone = if is_guest { OriginKind::Guest } else { OriginKind::Sender };
    let origin = match &received.group {
        Some(group) => Origin { platform_id: group.clone(), ..own_origin(received, OriginKind::Group) },
        None => own_origin(received, alone),
    };
    match sharing {
        Sharing::Thread => origin,
        Sharing::Shared => Origin { thread_id: String::new(), ..origin },
        // A name that no channel can have. The address is not empty, because a sandbox leaves an empty one out.
        Sharing::Agent => Origin {
            kind: OriginKind::Agent,
            ..Origin::from_sender("host".to_owned(), "all".to_owned(), String::new())
        },
    }
}

/// Returns the refusal of a channel without an agent.
pub fn unheard() -> Refusal {
    let refusal = Refusal::new(DenialCode::ChannelUnheard, "no agent hears this channel");
    refusal.hint("an operator connects an agent: `ironctl agent connect AGENT CHANNEL`")
}

/// Returns the refusal for a person without a role of an agent that is for its members only.
pub fn not_yours(agent: &registry::Agent) -> Refusal {
    let words = format!("agent {} is for its members only, and you are not a member", agent.name);
    let hint =
        format!("an admin of the agent can add you: `ironctl change submit --kind permissions --agent {}`", agent.name);
    Refusal::new(DenialCode::AgentNotYours, words).hint(hint)
}
