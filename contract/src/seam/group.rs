//! The payload of the change `groups`: agents that may send messages to each other, and the tools that they may ask each other to use.
//!
//! Never decides about a message: the host does. See [`crate::seam::change`] and [`crate::seam::bounds`].

use super::field::{names, text};
use super::limits::NAME_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// A trust group with its complete lists, or its removal. It replaces the group of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Names of its agents, at least two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The tools that a member may use at the request of another member. Without one, a member can only answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// True if the change removes the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<bool>,
}

impl Group {
    /// Returns whether it removes the group.
    pub fn removes(&self) -> bool {
        self.remove == Some(true)
    }

    pub(super) fn within_bounds(&self) -> Result<(), String> {
        let Self { name, agents, tools, remove } = self;
        text("name", name, NAME_BYTES_MAX)?;
        if name.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err("name has no blanks and no control characters".to_owned());
        }
        names("an agent", agents)?;
        names("a tool", tools)?;
        match remove {
            Some(true) if agents.is_empty() && tools.is_empty() => Ok(()),
            None if agents.len() >= 2 => Ok(()),
            _ => Err("a group has at least two agents, or remove is true and the other fields are absent".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{self, Change, ChangeKind, Payload};
    use serde_json::{Value, json};

    fn parse(payload: Value) -> Result<Change, change::Error> {
        Change::parse(ChangeKind::Groups, &Payload::try_from(payload).expect("an object or a list"))
    }

    #[test]
    fn groups_are_strict_and_bounded_and_read_back() {
        for payload in [
            json!({"name": "home", "agents": ["a", "b"]}),
            json!({"name": "home", "agents": ["a", "b"], "tools": ["read_file", "send_message"]}),
            json!({"name": "home", "remove": true}),
        ] {
            let change = parse(payload.clone()).expect("a group");
            assert_eq!(change.payload().value(), &payload);
        }
        for payload in [
            json!({}),
            json!([]),
            json!({"name": "home"}),
            json!({"name": "home", "agents": ["a"]}),
            json!({"name": "home", "agents": ["a", "a"]}),
            json!({"name": "home", "agents": ["a", ""]}),
            json!({"name": "", "agents": ["a", "b"]}),
            json!({"name": "my home", "agents": ["a", "b"]}),
            json!({"name": "home", "agents": ["a", "b"], "remove": true}),
            json!({"name": "home", "tools": ["read_file"], "remove": true}),
            json!({"name": "home", "remove": false}),
            json!({"name": "home", "agents": (0..100).map(|n| n.to_string()).collect::<Vec<_>>()}),
        ] {
            assert!(parse(payload.clone()).is_err(), "{payload}");
        }
    }
}
