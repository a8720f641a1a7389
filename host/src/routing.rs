//! Says which agent's which session a message goes to.
//!
//! Never touches a queue or a process. Next: `inbox`.

use crate::custody::WrappingKey;
use crate::identity::Authenticated;
use crate::refusal::{Fault, Refusal};
use crate::registry;
use crate::session::store::{self, NewError, Origin, Session};
use crate::state::Tx;

/// A message with the session that it goes to. Made by [`route`] alone.
#[derive(Debug, Clone)]
pub struct Routed {
    message: Authenticated,
    session: Session,
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
}

/// Finds the agent, and the session of this origin, made on the first message.
///
/// # Errors
/// The inner error refuses a message to an agent that does not exist.
pub fn route(
    tx: &mut Tx<'_>,
    message: Authenticated,
    wrapping: &WrappingKey,
) -> Result<Result<Routed, Refusal>, NewError> {
    let received = message.received();
    let Some(agent) = registry::find_agent(tx, &received.agent)? else {
        let shown: String = received.agent.chars().take(64).collect();
        let refusal = Refusal::new(Fault::Sender, "agent_unknown", format!("there is no agent {shown:?}"));
        return Ok(Err(refusal.hint("`ironctl agent list` shows who there is; `ironctl agent create NAME` makes one")));
    };
    let origin = Origin {
        channel: received.channel.clone(),
        platform_id: received.platform_id.clone(),
        thread_id: received.thread_id.clone(),
    };
    let session = store::of_origin_or_new(tx, &agent, &origin, wrapping)?;
    Ok(Ok(Routed { message, session }))
}
