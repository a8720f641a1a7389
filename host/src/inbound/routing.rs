//! Decides the agent and the session of a message, whether its sender may talk to that agent, and whether it asks for an answer.
//!
//! Never touches a queue or a process. See [`crate::inbound::inbox`].

pub mod engage;

use crate::inbound::identity::Authenticated;
use crate::quota;
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, channels};
use crate::session::store::{self, NewError, Origin, Session};
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::WrappingKey;

/// A message with its session. Made by [`route`] alone.
#[derive(Debug, Clone)]
pub struct Routed {
    message: Authenticated,
    session: Session,
    asks: bool,
}

impl Routed {
    /// Returns the message.
    pub const fn message(&self) -> &Authenticated {
        &self.message
    }

    /// Returns its session.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns whether the message opens a turn; any other message is context of the next turn.
    pub const fn asks(&self) -> bool {
        self.asks
    }
}

/// Finds the agent and the session of this origin. The first message makes the session.
///
/// # Errors
/// Refuses an unknown agent, a sender who may not talk to it, a channel that the agent does not hear, and a new conversation
/// beyond the bounds of its person, its channel or the host.
pub fn route(
    tx: &mut WriteTx<'_>,
    message: Authenticated,
    (quota, numbers): (&quota::Config, u32),
    wrapping: &WrappingKey,
) -> Result<Routed, Denied<NewError>> {
    let received = message.received();
    let agent = registry::named_agent(tx, message.person(), &received.agent).map_err(Denied::widen)?;
    if !registry::roles::role_for(tx, message.person(), &agent)?.may_talk() {
        return Err(not_yours(&agent).into());
    }
    let asks = if received.channel == registry::LOOPBACK {
        true
    } else {
        // The caller read the channel earlier, and its agent may have changed since then.
        match channels::find(tx, &received.channel)? {
            Some(channel) if channel.agent == Some(agent.id) => {
                message.written_by().is_some() || engage::opens_a_turn(&channel, &received.text)
            }
            Some(_) | None => {
                let refusal = Refusal::new(DenialCode::ChannelUnheard, "no agent hears this channel");
                return Err(refusal
                    .hint("an operator connects an agent: `ironctl agent connect AGENT CHANNEL`")
                    .into());
            }
        }
    };
    let origin = Origin {
        channel: received.channel.clone(),
        platform_id: received.platform_id.clone(),
        thread_id: received.thread_id.clone(),
    };
    let person = message.person().id;
    if store::of_origin(tx, agent.id, &origin)?.is_none() {
        quota.admit_conversation(tx, person, &origin.channel).map_err(Denied::widen)?;
    }
    let session = store::of_origin_or_new(tx, &agent, &origin, (person, numbers), wrapping)?;
    Ok(Routed { message, session, asks })
}

/// Returns the refusal for a person without a role of an agent that is for its members only.
pub fn not_yours(agent: &registry::Agent) -> Refusal {
    let words = format!("agent {} is for its members only, and you are not a member", agent.name);
    let hint =
        format!("an admin of the agent can add you: `ironctl change submit --kind permissions --agent {}`", agent.name);
    Refusal::new(DenialCode::AgentNotYours, words).hint(hint)
}
