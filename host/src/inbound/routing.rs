//! Says which agent's which session a message goes to, whether its sender may talk to that agent, and whether it asks for an answer.
//!
//! Never touches a queue or a process. Next: `inbound::inbox`.

pub mod engage;

use crate::inbound::identity::Authenticated;
use crate::quota;
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, channels};
use crate::session::store::{self, NewError, Origin, Session};
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::WrappingKey;

/// A message with the session that it goes to. Made by [`route`] alone.
#[derive(Debug, Clone)]
pub struct Routed {
    message: Authenticated,
    session: Session,
    asks: bool,
}

impl Routed {
    /// The message.
    pub const fn message(&self) -> &Authenticated {
        &self.message
    }

    /// Its session.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Whether it opens a turn; one that does not is context of the next.
    pub const fn asks(&self) -> bool {
        self.asks
    }
}

/// Finds the agent, and the session of this origin, made on the first message.
///
/// # Errors
/// Refuses a message to an agent that does not exist, one of a sender who may not talk to it, one on a channel that it does not
/// hear, and one that would begin a conversation beyond the bounds of its person, its channel or the host.
pub fn route(
    tx: &mut WriteTx<'_>,
    message: Authenticated,
    (quota, numbers): (&quota::Config, u32),
    wrapping: &WrappingKey,
) -> Result<Routed, Denied<NewError>> {
    let received = message.received();
    let agent = registry::named_agent(tx, &received.agent).map_err(Denied::widen)?;
    if !registry::roles::role_for(tx, message.person(), &agent)?.may_talk() {
        return Err(not_yours(&agent).into());
    }
    let asks = if received.channel == registry::LOOPBACK {
        true
    } else {
        // Whoever brought it looked at the channel some time ago.
        match channels::find(tx, &received.channel)? {
            Some(channel) if channel.agent == Some(agent.id) => engage::opens_a_turn(&channel, &received.text),
            Some(_) | None => {
                let refusal = Refusal::new(DenialCode::ChannelUnheard, "no agent hears this channel");
                return Err(refusal.hint("an operator connects one: `ironctl agent connect AGENT CHANNEL`").into());
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

/// Who has no role of an agent that is for its members does not talk to it.
pub fn not_yours(agent: &registry::Agent) -> Refusal {
    let words = format!("agent {} is for its members, and you are none", agent.name);
    let hint =
        format!("an admin of it makes you one: `ironctl change submit --kind permissions --agent {}`", agent.name);
    Refusal::new(DenialCode::AgentNotYours, words).hint(hint)
}
