//! The payload of the change `skills`: a skill of an agent, with the changes that it contains.
//!
//! Never decides about a skill: the host resolves it and fills in every field, and people decide. See [`crate::seam::change`] and
//! [`crate::seam::bounds`].

use super::change::{self, Change, ChangeKind, Payload};
use super::field::text;
use super::limits::{ENTRIES_MAX, NAME_BYTES_MAX, PERSONA_OF_SKILL_BYTES_MAX};
use crate::canonical::Digest;
use crate::ids::ScheduleId;
use serde::{Deserialize, Serialize};

/// A skill of an agent at one version, or its removal. It replaces the version that the agent has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// Its version; absent in a removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of its package; absent in a removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The id of the key that signed the package. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// Text that the prompt of the agent has while the skill is installed. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// The changes of the agent that the skill contains, each of its own kind. The host fills them in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The schedules of the earlier version that end. The host fills them in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<ScheduleId>,
    /// True if the change removes the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<bool>,
}

/// A change that a skill contains: `{"kind", "payload"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Part(Box<Change>);

/// A part as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: ChangeKind,
    payload: Payload,
}

impl Part {
    /// Returns whether a skill may contain a change of this kind. Never one that alters the people of the agent, the catalogue of the
    /// host or another skill.
    pub const fn admits(kind: ChangeKind) -> bool {
        match kind {
            ChangeKind::EnabledTools
            | ChangeKind::Packages
            | ChangeKind::Mounts
            | ChangeKind::McpAccess
            | ChangeKind::Egress
            | ChangeKind::Schedule => true,
            ChangeKind::Persona
            | ChangeKind::Wiring
            | ChangeKind::Permissions
            | ChangeKind::CreateAgent
            | ChangeKind::McpRegister
            | ChangeKind::McpConfirm
            | ChangeKind::Destinations
            | ChangeKind::Settings
            | ChangeKind::Groups
            | ChangeKind::Skills => false,
        }
    }

    /// Makes a part; `None` for a change that no skill may contain.
    pub fn new(change: Change) -> Option<Self> {
        Self::admits(change.kind()).then(|| Self(Box::new(change)))
    }

    /// Returns the change.
    pub const fn change(&self) -> &Change {
        &self.0
    }
}

impl From<Part> for Written {
    fn from(Part(change): Part) -> Self {
        Self { kind: change.kind(), payload: change.payload() }
    }
}

impl TryFrom<Written> for Part {
    type Error = String;

    fn try_from(Written { kind, payload }: Written) -> Result<Self, String> {
        // First, because a skill in a skill would be read without an end.
        if !Self::admits(kind) {
            return Err(format!("a skill contains no change of kind {kind}"));
        }
        let change = Change::parse(kind, &payload).map_err(|error: change::Error| error.to_string())?;
        Ok(Self(Box::new(change)))
    }
}

impl Skill {
    /// Returns whether it removes the skill.
    pub fn removes(&self) -> bool {
        self.remove == Some(true)
    }

    pub(super) fn within_bounds(&self) -> Result<(), String> {
        let Self { name, version, digest, signer, persona, parts, ends, remove } = self;
        let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(1..=64).contains(&name.len()) || !name.chars().all(is_good) {
            return Err("name must be 1 to 64 of a-z, 0-9 and -".to_owned());
        }
        for (field, value, max) in [
            ("version", version, NAME_BYTES_MAX),
            ("signer", signer, NAME_BYTES_MAX),
            ("persona", persona, PERSONA_OF_SKILL_BYTES_MAX),
        ] {
            text(field, value.as_deref().unwrap_or("-"), max)?;
        }
        if parts.len() > ENTRIES_MAX || ends.len() > ENTRIES_MAX {
            return Err(format!("a skill has at most {ENTRIES_MAX} parts"));
        }
        let has_package = version.is_some() && digest.is_some();
        let has_any = version.is_some() || digest.is_some() || signer.is_some() || persona.is_some();
        match remove {
            Some(true) if !has_any => Ok(()),
            None if has_package => Ok(()),
            _ => Err("a skill has a version and a digest, or remove is true and they are absent".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{self, Change, ChangeKind, Payload};
    use crate::canonical::Digest;
    use serde_json::{Value, json};

    fn parse(payload: Value) -> Result<Change, change::Error> {
        Change::parse(ChangeKind::Skills, &Payload::try_from(payload).expect("an object or a list"))
    }

    #[test]
    fn skills_are_strict_and_bounded_and_read_back() {
        let digest = Digest::of(b"package");
        let tools = json!({"kind": "enabled_tools", "payload": ["read_file"]});
        for payload in [
            json!({"name": "weather", "version": "1.2.0", "digest": digest}),
            json!({"name": "weather", "version": "1.2.0", "digest": digest, "signer": "0123456789ABCDEF", "persona": "Be brief.",
                "parts": [tools, {"kind": "egress", "payload": {"host": "api.example", "methods": ["GET"]}}]}),
            json!({"name": "weather", "remove": true}),
            json!({"name": "weather", "remove": true, "parts": [tools]}),
        ] {
            let change = parse(payload.clone()).expect("a skill");
            assert_eq!(change.payload().value(), &payload);
        }
        let part = |part: Value| json!({"name": "weather", "version": "1.2.0", "digest": digest, "parts": [part]});
        let inner = json!({"name": "other", "version": "1.0.0", "digest": digest});
        for payload in [
            json!({}),
            json!([]),
            json!({"name": "weather"}),
            json!({"name": "weather", "version": "1.2.0"}),
            json!({"name": "Weather", "version": "1.2.0", "digest": digest}),
            json!({"name": "../weather", "version": "1.2.0", "digest": digest}),
            json!({"name": "weather", "version": "1.2.0", "digest": digest, "remove": true}),
            json!({"name": "weather", "version": "1.2.0", "digest": digest, "remove": false}),
            json!({"name": "weather", "version": "1.2.0", "digest": digest, "approved": true}),
            part(json!({"kind": "skills", "payload": inner})),
            part(json!({"kind": "permissions", "payload": {"access": "everyone"}})),
            part(json!({"kind": "mcp_register", "payload": {"name": "n", "url": "https://u"}})),
            part(json!({"kind": "egress", "payload": {"host": "api.example", "methods": ["GET"], "approved": true}})),
            part(json!({"kind": "enabled_tools", "payload": ["read_file"], "label": "Person"})),
        ] {
            assert!(parse(payload.clone()).is_err(), "{payload}");
        }
    }
}
