//! The kinds of change: eleven that an agent may propose by name, and `mcp_confirm`, `settings`, `schedule`, `groups` and `skills`, which it may not.
//! A call of `schedule_task` proposes a `schedule`, and one of `skill_install` a change of `skills`.
//!
//! Never decides about a change: the host and people do. No kind accepts a field of another. See `bounds`.

pub use super::destination::Destination;
pub use super::egress::Egress;
pub use super::group::Group;
pub use super::mcp::{McpAccess, McpConfirm, McpHeader, McpHost, McpOauth, McpRegister, McpTool, McpVariable};
pub use super::permissions::{Access, AgentRole, Grant, Permissions};
pub use super::schedule::{CatchUp, Flow, FlowSource, ReplyTo, RunContext, Schedule, WrittenBy};
pub use super::settings::{AskedClasses, GuardMode, Settings};
pub use super::skill::{Part, Skill};
pub use super::wiring::{Engage, Ignored, Senders, Sharing, UnknownSenders, Wiring};

use super::message::word;
use crate::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

word!(/// The kind of a change.
ChangeKind {
    /// The persona of the agent.
    Persona = "persona",
    /// The tools that it may call.
    EnabledTools = "enabled_tools",
    /// Software in its jail.
    Packages = "packages",
    /// The channels whose messages reach it.
    Wiring = "wiring",
    /// The people who may talk to it, and their roles.
    Permissions = "permissions",
    /// Directories of the host in its jail.
    Mounts = "mounts",
    /// A new agent.
    CreateAgent = "create_agent",
    /// Tools of a known MCP server.
    McpAccess = "mcp_access",
    /// A new MCP server, or its removal.
    McpRegister = "mcp_register",
    /// The tools of an MCP server with their manifests.
    McpConfirm = "mcp_confirm",
    /// A host of the network that the host of the agent may ask for it.
    Egress = "egress",
    /// An address to which the agent may send messages.
    Destinations = "destinations",
    /// Guard mode, model, ceilings or removal of an agent; or the default model.
    Settings = "settings",
    /// A schedule of an agent.
    Schedule = "schedule",
    /// Agents that may send messages to each other.
    Groups = "groups",
    /// A skill of an agent, with the changes that it contains.
    Skills = "skills",
});

impl ChangeKind {
    /// Returns whether an agent may propose it by its name. Any other kind is no action.
    pub const fn is_for_agents(self) -> bool {
        match self {
            Self::Persona
            | Self::EnabledTools
            | Self::Packages
            | Self::Wiring
            | Self::Permissions
            | Self::Mounts
            | Self::CreateAgent
            | Self::McpAccess
            | Self::McpRegister
            | Self::Egress
            | Self::Destinations => true,
            Self::McpConfirm | Self::Settings | Self::Schedule | Self::Groups | Self::Skills => false,
        }
    }

    /// Returns the kinds that an agent may propose by name.
    pub fn for_agents() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.is_for_agents())
    }
}

/// A payload that is not checked yet: a JSON object or list, strict and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Payload(Value);

impl TryFrom<Value> for Payload {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, &'static str> {
        if value.is_object() || value.is_array() { Ok(Self(value)) } else { Err("a payload is an object or a list") }
    }
}

impl From<Payload> for Value {
    fn from(payload: Payload) -> Self {
        payload.0
    }
}

impl Payload {
    /// Returns it as JSON.
    pub const fn value(&self) -> &Value {
        &self.0
    }
}

/// A change with its new values, read from a [`Payload`] by [`Change::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// `{"instructions": "…"}`
    Persona(Persona),
    /// `["tool", …]`: the complete list of its tools; or `{"add"?, "remove"?}`: the difference to its present tools.
    EnabledTools(EnabledTools),
    /// `{"apt": […], "npm": […]}`, or a list of names for apt: the complete set of its packages.
    Packages(Packages),
    /// `{"channel", "engage", "pattern"?, "from"?, "unknown"?, "ignored"?, "sharing"?}`
    Wiring(Wiring),
    /// `{"access"?, "grant"?, "revoke"?}`
    Permissions(Permissions),
    /// `[{"source", "target"?, "read_only"?}, …]`: the complete list of its mounts.
    Mounts(Vec<Mount>),
    /// `{"name", "persona"?, "enabled_tools"?, "members"?, "wirings"?}`
    CreateAgent(CreateAgent),
    /// `{"server", "tools"?}`
    McpAccess(McpAccess),
    /// `{"name", "url", "tools"?, "headers"?}`, `{"name", "command", "packages"?, "environment"?, "mounts"?, "tools"?}` or `{"name", "remove": true}`
    McpRegister(McpRegister),
    /// `{"server", "digest", "manifest"?}`
    McpConfirm(McpConfirm),
    /// `{"host", "port"?, "methods", "paths"?, "secret"?, "upload_bytes_max"?}`
    Egress(Egress),
    /// `{"name", "channel", "address", "thread"?}`, `{"name", "agent"}` or `{"name", "remove": true}`
    Destinations(Destination),
    /// `{"mode"?, "model"?, "tokens_per_day"?, "cost_per_day_micros"?}`, `{"remove": true}` or `{"default_model"}`
    Settings(Settings),
    /// `{"prompt", "cron" | "every" | "at", "zone"?, "catch_up"?, "may"?, "reply_to"?}` or `{"id", …}` with the fields to change
    Schedule(Schedule),
    /// `{"name", "agents", "tools"?}` or `{"name", "remove": true}`
    Groups(Group),
    /// `{"name", "version", "digest", "signer", "persona"?, "parts"?, "ends"?}` or `{"name", "remove": true, "parts"?, "ends"?}`
    Skills(Skill),
}

/// The text that tells an agent about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persona {
    /// The whole text, at most [`INSTRUCTIONS_BYTES_MAX`](super::limits::INSTRUCTIONS_BYTES_MAX) bytes; an empty one removes it.
    pub instructions: String,
}

/// The tools that an agent may call: the complete list, or a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EnabledTools {
    /// The complete list.
    All(Vec<String>),
    /// The difference to its present tools.
    Difference(ToolDifference),
}

/// The tools to add and the tools to remove; not both empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDifference {
    /// Names of tools to add. A tool that the agent already has is no error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Names of tools to remove. A tool that the agent does not have is no error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// Software in the jail of an agent or of an MCP server, by name. A name of npm may have an exact version, `name@1.2.3`, and one of pypi
/// `name==1.2.3`; the package managers choose the other versions. The host pins the result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// Names for apt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apt: Vec<String>,
    /// Names for npm, with the scope if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub npm: Vec<String>,
    /// Names for pypi. Only wheels are fetched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pypi: Vec<String>,
}

impl Packages {
    /// Returns true if there is no name.
    pub fn is_empty(&self) -> bool {
        self.names().next().is_none()
    }

    /// Returns all names: those for apt, npm, then pypi.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.apt.iter().chain(&self.npm).chain(&self.pypi)
    }
}

/// A directory of the host in an agent's jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Absolute path on the host.
    pub source: String,
    /// `/` and one name; absent: the last part of the source path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// True if the agent can only read it; absent: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// True if a person calls its text theirs. Only the change of a person may say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mine: Option<bool>,
}

/// A new agent. It has only the rights that this payload names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateAgent {
    /// Its name.
    pub name: String,
    /// Its persona.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<Persona>,
    /// The tools that it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enabled_tools: Vec<String>,
    /// Identities of the people who may talk to it; owners always may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The channels to which it is connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wirings: Vec<Wiring>,
}

/// The reason why a payload is not valid for its kind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field is missing, unknown, of another kind, or of the wrong type.
    #[error("invalid payload of {kind}: {what}")]
    Shape {
        /// The kind of the change.
        kind: ChangeKind,
        /// The error, as [`canonical::said`] words it.
        what: String,
    },
    /// A field is too long, empty, or in conflict with another one.
    #[error("invalid payload of {kind}: {what}")]
    Bounds {
        /// The kind of the change.
        kind: ChangeKind,
        /// The field and its bound.
        what: String,
    },
}

impl Change {
    /// Reads a payload in the shape of its kind. Fills in nothing except a form that `docs/contract.md` defines. Else an [`Error`].
    pub fn parse(kind: ChangeKind, payload: &Payload) -> Result<Self, Error> {
        let change = match kind {
            ChangeKind::Persona => Self::Persona(read(kind, payload)?),
            ChangeKind::EnabledTools => Self::EnabledTools(match payload.0.is_array() {
                true => EnabledTools::All(read(kind, payload)?),
                false => EnabledTools::Difference(read(kind, payload)?),
            }),
            ChangeKind::Packages => match payload.0.is_array() {
                true => Self::Packages(Packages { apt: read(kind, payload)?, ..Packages::default() }),
                false => Self::Packages(read(kind, payload)?),
            },
            ChangeKind::Wiring => Self::Wiring(read(kind, payload)?),
            ChangeKind::Permissions => Self::Permissions(read(kind, payload)?),
            ChangeKind::Mounts => Self::Mounts(read(kind, payload)?),
            ChangeKind::CreateAgent => Self::CreateAgent(read(kind, payload)?),
            ChangeKind::McpAccess => Self::McpAccess(read(kind, payload)?),
            ChangeKind::McpRegister => Self::McpRegister(read(kind, payload)?),
            ChangeKind::McpConfirm => Self::McpConfirm(read(kind, payload)?),
            ChangeKind::Egress => Self::Egress(read(kind, payload)?),
            ChangeKind::Destinations => Self::Destinations(read(kind, payload)?),
            ChangeKind::Settings => Self::Settings(read(kind, payload)?),
            ChangeKind::Schedule => Self::Schedule(read(kind, payload)?),
            ChangeKind::Groups => Self::Groups(read(kind, payload)?),
            ChangeKind::Skills => Self::Skills(read(kind, payload)?),
        };
        let bounds = |what| Error::Bounds { kind, what };
        let is_flat = matches!(change, Self::Packages(_)) && payload.0.is_array();
        if !is_flat && !is_of_form(&payload.0, &change.payload().0) {
            return Err(bounds("expected an object, found a list".to_owned()));
        }
        change.within_bounds().map_err(bounds)?;
        Ok(change)
    }

    /// Returns its kind.
    pub const fn kind(&self) -> ChangeKind {
        match self {
            Self::Persona(_) => ChangeKind::Persona,
            Self::EnabledTools(_) => ChangeKind::EnabledTools,
            Self::Packages(_) => ChangeKind::Packages,
            Self::Wiring(_) => ChangeKind::Wiring,
            Self::Permissions(_) => ChangeKind::Permissions,
            Self::Mounts(_) => ChangeKind::Mounts,
            Self::CreateAgent(_) => ChangeKind::CreateAgent,
            Self::McpAccess(_) => ChangeKind::McpAccess,
            Self::McpRegister(_) => ChangeKind::McpRegister,
            Self::McpConfirm(_) => ChangeKind::McpConfirm,
            Self::Egress(_) => ChangeKind::Egress,
            Self::Destinations(_) => ChangeKind::Destinations,
            Self::Settings(_) => ChangeKind::Settings,
            Self::Schedule(_) => ChangeKind::Schedule,
            Self::Groups(_) => ChangeKind::Groups,
            Self::Skills(_) => ChangeKind::Skills,
        }
    }

    /// Returns its payload in the one form that [`Change::parse`] reads back.
    pub fn payload(&self) -> Payload {
        let value = match self {
            Self::Persona(persona) => serde_json::json!(persona),
            Self::EnabledTools(tools) => serde_json::json!(tools),
            Self::Packages(packages) => serde_json::json!(packages),
            Self::Wiring(wiring) => serde_json::json!(wiring),
            Self::Permissions(permissions) => serde_json::json!(permissions),
            Self::Mounts(mounts) => serde_json::json!(mounts),
            Self::CreateAgent(agent) => serde_json::json!(agent),
            Self::McpAccess(access) => serde_json::json!(access),
            Self::McpRegister(server) => serde_json::json!(server),
            Self::McpConfirm(confirmed) => serde_json::json!(confirmed),
            Self::Egress(egress) => serde_json::json!(egress),
            Self::Destinations(destination) => serde_json::json!(destination),
            Self::Settings(settings) => serde_json::json!(settings),
            Self::Schedule(schedule) => serde_json::json!(schedule),
            Self::Groups(group) => serde_json::json!(group),
            Self::Skills(skill) => serde_json::json!(skill),
        };
        Payload(value)
    }
}

fn read<T: serde::de::DeserializeOwned>(kind: ChangeKind, payload: &Payload) -> Result<T, Error> {
    T::deserialize(payload.0.clone()).map_err(|error| Error::Shape { kind, what: canonical::said(&error) })
}

/// Returns whether lists and objects are at the same places as in the value that was read: serde takes a list for a struct.
fn is_of_form(given: &Value, read: &Value) -> bool {
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => {
            given.iter().all(|(name, given)| read.get(name).is_none_or(|read| is_of_form(given, read)))
        }
        (Value::Array(given), Value::Array(read)) => {
            given.iter().zip(read).all(|(given, read)| is_of_form(given, read))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(kind: ChangeKind, payload: Value) -> Result<Change, Error> {
        Change::parse(kind, &Payload::try_from(payload).expect("an object or a list"))
    }

    /// Returns one valid payload of each kind.
    fn samples() -> Vec<(ChangeKind, Value)> {
        vec![
            (ChangeKind::Persona, json!({"instructions": "be brief"})),
            (ChangeKind::EnabledTools, json!(["read_file"])),
            (ChangeKind::Packages, json!({"apt": ["jq"], "npm": ["left-pad"]})),
            (ChangeKind::Wiring, json!({"channel": "hook", "engage": "pattern", "pattern": "^!bot"})),
            (ChangeKind::Permissions, json!({"grant": [{"identity": "chat:alice", "role": "admin"}]})),
            (ChangeKind::Mounts, json!([{"source": "/srv/data", "target": "/data", "read_only": false}])),
            (ChangeKind::CreateAgent, json!({"name": "helper", "members": ["chat:alice"]})),
            (ChangeKind::McpAccess, json!({"server": "files", "tools": ["read"]})),
            (
                ChangeKind::McpRegister,
                json!({"name": "files", "url": "https://mcp.example", "tools": [{"name": "read"}]}),
            ),
            (ChangeKind::McpConfirm, json!({"server": "files", "digest": crate::canonical::Digest::of(b"listing")})),
            (ChangeKind::Egress, json!({"host": "a.example", "methods": ["GET"], "paths": ["/a/{b}"]})),
            (ChangeKind::Destinations, json!({"name": "ana", "channel": "desk", "address": "ana"})),
            (ChangeKind::Settings, json!({"mode": "dangerous_warn"})),
            (ChangeKind::Schedule, json!({"prompt": "water the plants", "cron": "0 8 * * *"})),
            (ChangeKind::Groups, json!({"name": "home", "agents": ["a", "b"]})),
            (ChangeKind::Skills, json!({"name": "weather", "version": "1.0.0", "digest": canonical::Digest::of(b"")})),
        ]
    }

    #[test]
    fn payload_of_another_kind_or_with_its_field_is_refused() {
        for (kind, payload) in samples() {
            assert_eq!(parse(kind, payload.clone()).expect("its own").kind(), kind);
            for (other, foreign) in samples() {
                // A flat list of names is a valid payload of two kinds; only the kind tells them apart.
                let lists = [ChangeKind::EnabledTools, ChangeKind::Packages];
                if other != kind && !(lists.contains(&other) && lists.contains(&kind)) {
                    assert!(parse(kind, foreign.clone()).is_err(), "{kind} takes the payload of {other}");
                }
                let (Some(own), Some(foreign)) = (payload.as_object(), foreign.as_object()) else { continue };
                for (field, value) in foreign.iter().filter(|(field, _)| !own.contains_key(*field)) {
                    let takes = match kind {
                        ChangeKind::Permissions => ["access", "revoke"].contains(&field.as_str()),
                        ChangeKind::Groups => field == "tools",
                        ChangeKind::Schedule => field == "name",
                        ChangeKind::CreateAgent => ["persona", "enabled_tools", "wirings"].contains(&field.as_str()),
                        ChangeKind::McpRegister => {
                            ["headers", "command", "packages", "environment", "mounts"].contains(&field.as_str())
                        }
                        _ => false,
                    };
                    let mut both = own.clone();
                    both.insert(field.clone(), value.clone());
                    assert!(takes || parse(kind, both.into()).is_err(), "{kind} takes {field} of {other}");
                }
            }
        }
    }

    #[test]
    fn error_about_a_shape_is_short_and_quotes_nothing() {
        let server = |headers| json!({"name": "n", "url": "https://x", "tools": [{"name": "t"}], "headers": headers});
        let long = "ä\", expected ".repeat(20_000);
        for (kind, payload, what) in [
            (ChangeKind::McpRegister, server(json!(["Bearer s3cret"])), "string, expected struct McpHeader"),
            (ChangeKind::McpRegister, server(json!("s3cret \", expected s3cret")), "string, expected a sequence"),
            (ChangeKind::Persona, json!({ "instructions": { "s3cret": long } }), "map, expected a string"),
            (ChangeKind::Mounts, json!({ "source": long }), "map, expected a sequence"),
            (ChangeKind::McpRegister, server(json!(long)), "string, expected a sequence"),
            (ChangeKind::Persona, json!({ "instructions": "i", "ä".repeat(50_000): 1 }), "unknown field `ää"),
        ] {
            let error = parse(kind, payload).expect_err("another shape");
            assert!(std::error::Error::source(&error).is_none(), "{error:?}");
            let Error::Shape { what: said, .. } = &error else { panic!("{error:?}") };
            assert!(said.contains(what) && !said.contains("s3cret"), "{said}");
            assert!(said.chars().count() <= canonical::SAID_CHARACTERS_MAX, "{said}");
            assert_eq!(said.ends_with('…'), said.chars().count() == canonical::SAID_CHARACTERS_MAX, "{said}");
        }
    }

    #[test]
    fn payload_reads_back_and_flat_packages_have_one_form() {
        for (kind, payload) in samples() {
            let change = parse(kind, payload).expect("good");
            assert_eq!(Change::parse(kind, &change.payload()).expect("reads back"), change);
        }
        let flat = parse(ChangeKind::Packages, json!(["jq"])).expect("good");
        assert_eq!(flat.payload().value(), &json!({"apt": ["jq"]}));
    }
}
