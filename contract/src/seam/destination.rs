//! The payload of the change `destinations`: an address or another agent to which an agent may send messages by its own name for it.
//!
//! Never decides about a message: the host does. See [`crate::seam::change`] and [`crate::seam::bounds`].

use super::field::text;
use super::limits::{IDENTITY_BYTES_MAX, NAME_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// A destination of one agent, or its removal. It replaces the destination of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// The agent's name for it.
    pub name: String,
    /// Name of the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Address on that channel, which is linked to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Thread at that address; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Name of the agent that receives the messages, in place of an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// True if the change removes the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<bool>,
}

impl Destination {
    /// Returns whether it removes the destination.
    pub fn removes(&self) -> bool {
        self.remove == Some(true)
    }

    pub(super) fn within_bounds(&self) -> Result<(), String> {
        let Self { name, channel, address, thread, agent, remove } = self;
        text("name", name, NAME_BYTES_MAX)?;
        if name.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err("name has no blanks and no control characters".to_owned());
        }
        match (channel, address, agent, remove) {
            (Some(channel), Some(address), None, None) => {
                text("channel", channel, NAME_BYTES_MAX)?;
                text("address", address, IDENTITY_BYTES_MAX)?;
                text("thread", thread.as_deref().unwrap_or("-"), NAME_BYTES_MAX)
            }
            (None, None, Some(agent), None) if thread.is_none() => text("agent", agent, NAME_BYTES_MAX),
            (None, None, None, Some(true)) if thread.is_none() => Ok(()),
            _ => Err("a destination has channel and address, or agent, or remove is true; the other fields are absent"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{self, Change, ChangeKind, Payload};
    use serde_json::{Value, json};

    fn parse(payload: Value) -> Result<Change, change::Error> {
        Change::parse(ChangeKind::Destinations, &Payload::try_from(payload).expect("an object or a list"))
    }

    #[test]
    fn destinations_are_strict_and_bounded_and_read_back() {
        for payload in [
            json!({"name": "ana", "channel": "desk", "address": "ana@home.example"}),
            json!({"name": "ana", "channel": "desk", "address": "ana", "thread": "garden"}),
            json!({"name": "ana", "agent": "researcher"}),
            json!({"name": "ana", "remove": true}),
        ] {
            let change = parse(payload.clone()).expect("a destination");
            assert_eq!(change.payload().value(), &payload);
        }
        for payload in [
            json!({}),
            json!([]),
            json!({"name": "ana"}),
            json!({"name": "", "remove": true}),
            json!({"name": "ana lee", "remove": true}),
            json!({"name": "ana\u{1b}", "remove": true}),
            json!({"name": "ana", "remove": false}),
            json!({"name": "ana", "channel": "desk"}),
            json!({"name": "ana", "address": "ana"}),
            json!({"name": "ana", "channel": "desk", "address": ""}),
            json!({"name": "ana", "channel": "desk", "address": "ana", "remove": true}),
            json!({"name": "ana", "thread": "garden", "remove": true}),
            json!({"name": "ana", "agent": ""}),
            json!({"name": "ana", "agent": "researcher", "remove": true}),
            json!({"name": "ana", "agent": "researcher", "thread": "garden"}),
            json!({"name": "ana", "agent": "researcher", "channel": "desk", "address": "ana"}),
            json!({"name": "ana", "channel": "desk", "address": "x".repeat(400)}),
            json!({"name": "ana", "channel": "desk", "address": "ana", "url": "https://evil.example"}),
        ] {
            assert!(parse(payload.clone()).is_err(), "{payload}");
        }
    }
}
