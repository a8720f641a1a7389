//! What comes in from outside, before anybody knows who sent it.
//!
//! A channel says what it received and delivers what it is given; it decides nothing. Next: `identity`.

pub mod loopback;

use ironclaw_contract::ids::PersonId;

/// One message as a channel received it. What it says of itself proves nothing.
#[derive(Debug, Clone)]
pub struct Received {
    /// Name of the channel, from the host's own code.
    pub channel: &'static str,
    /// Address on it that replies go to.
    pub platform_id: String,
    /// Thread there; empty where there are none.
    pub thread_id: String,
    /// The sender's id on the channel, whole and opaque.
    pub sender: String,
    /// The person whom the channel itself knows to be speaking, where it does (the loopback: whose token it is). An identity of
    /// anybody else is refused.
    pub speaker: Option<PersonId>,
    /// The platform's own id of the event; the same one again is the same message.
    pub event_id: Option<String>,
    /// Which agent it is for, by name or id.
    pub agent: String,
    /// What the sender typed.
    pub text: String,
    /// Files that came with it: name and text.
    pub files: Vec<(String, String)>,
}

/// What came of handing a delivery to its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It arrived.
    Received,
    /// It cannot arrive: there is no such channel here.
    NoSuchChannel,
}

/// Hands a delivery to its channel. Every channel here takes the delivery's id as an idempotency key.
pub fn send(channel: &str) -> Receipt {
    match channel {
        // Whoever waits for it is woken by the receipt's own ledger entry.
        loopback::NAME => Receipt::Received,
        _ => Receipt::NoSuchChannel,
    }
}
