//! Messages from outside, before their sender is identified.
//!
//! A channel says what it received and sends what it is given; it decides nothing. See [`crate::inbound::identity`].

pub mod loopback;
pub mod webhook;

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;

/// One message as a channel received it. Its claims about itself prove nothing.
#[derive(Debug, Clone)]
pub struct Received {
    /// Name of the channel: the loopback's, or one that an operator gave.
    pub channel: String,
    /// Address on it that replies go to.
    pub platform_id: String,
    /// Thread there; empty where there are none.
    pub thread_id: String,
    /// The sender's id on the channel, whole and opaque.
    pub sender: String,
    /// The speaking person, where the channel itself knows it (the loopback: the owner of the token). An identity of another
    /// person is refused.
    pub speaker: Option<PersonId>,
    /// The platform's own id of the event; the same one again is the same message.
    pub event_id: Option<String>,
    /// Digest of the event as it came, where the channel has it as a whole: another one under the same id is refused.
    pub event_digest: Option<Digest>,
    /// Name or id of the agent that it is for.
    pub agent: String,
    /// Text that the sender typed.
    pub text: String,
    /// Files that came with it: name and text.
    pub files: Vec<(String, String)>,
}
