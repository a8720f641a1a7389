//! The bounds of each kind of change: lengths, numbers of entries, and fields that exclude each other.
//!
//! Never decides about a change: the host and people do. See [`crate::seam::change`] and [`crate::seam::limits`].

use super::change::{Change, CreateAgent, EnabledTools, Mount, Packages, Permissions, Persona, ToolDifference, Wiring};
use super::field::{each_once, names, text};
use super::limits::{
    ENTRIES_MAX, IDENTITY_BYTES_MAX, INSTRUCTIONS_BYTES_MAX, MOUNTS_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX,
};

impl Change {
    /// Refuses a payload that is out of bounds or contradicts itself, with a sentence that names the field.
    pub(super) fn within_bounds(&self) -> Result<(), String> {
        match self {
            Self::Persona(persona) => persona.within_bounds(),
            Self::EnabledTools(tools) => tools.within_bounds(),
            Self::Packages(packages) => packages.within_bounds(),
            Self::Wiring(wiring) => wiring.within_bounds(),
            Self::Permissions(permissions) => permissions.within_bounds(),
            Self::Mounts(mounts) => mounts_within_bounds(mounts),
            Self::CreateAgent(agent) => agent.within_bounds(),
            Self::McpAccess(access) => access.within_bounds(),
            Self::McpRegister(server) => server.within_bounds(),
            Self::McpConfirm(confirmed) => confirmed.within_bounds(),
            Self::Egress(egress) => egress.within_bounds(),
            Self::Destinations(destination) => destination.within_bounds(),
            Self::Settings(settings) => settings.within_bounds(),
            Self::Schedule(schedule) => schedule.within_bounds(),
            Self::Groups(group) => group.within_bounds(),
            Self::Skills(skill) => skill.within_bounds(),
        }
    }
}

impl Persona {
    fn within_bounds(&self) -> Result<(), String> {
        match self.instructions.len() {
            0..=INSTRUCTIONS_BYTES_MAX => Ok(()),
            _ => Err(format!("instructions has at most {INSTRUCTIONS_BYTES_MAX} bytes")),
        }
    }
}

impl EnabledTools {
    fn within_bounds(&self) -> Result<(), String> {
        match self {
            Self::All(tools) => names("a tool", tools),
            Self::Difference(difference) => difference.within_bounds(),
        }
    }
}

impl ToolDifference {
    fn within_bounds(&self) -> Result<(), String> {
        let Self { add, remove } = self;
        if add.is_empty() && remove.is_empty() {
            return Err("it is empty: set add or remove".to_owned());
        }
        names("a tool", add)?;
        names("a tool", remove)?;
        match add.iter().find(|tool| remove.contains(tool)) {
            Some(tool) => Err(format!("{tool:?} is both added and removed")),
            None => Ok(()),
        }
    }
}

impl Packages {
    pub(super) fn within_bounds(&self) -> Result<(), String> {
        names("a package", &self.apt)?;
        names("a package", &self.npm)?;
        names("a package", &self.pypi)
    }
}

impl Permissions {
    fn within_bounds(&self) -> Result<(), String> {
        let Self { access, grant, revoke } = self;
        if access.is_none() && grant.is_empty() && revoke.is_empty() {
            return Err("it is empty: set access, grant or revoke".to_owned());
        }
        let granted: Vec<_> = grant.iter().map(|grant| grant.identity.clone()).collect();
        identities(&granted)?;
        identities(revoke)?;
        match granted.iter().find(|identity| revoke.contains(identity)) {
            Some(identity) => Err(format!("{identity:?} is both granted and revoked")),
            None => Ok(()),
        }
    }
}

pub(super) fn mounts_within_bounds(mounts: &[Mount]) -> Result<(), String> {
    if mounts.len() > MOUNTS_MAX {
        return Err(format!("at most {MOUNTS_MAX} mounts"));
    }
    for mount in mounts {
        text("source", &mount.source, PATH_BYTES_MAX)?;
        text("target", mount.target.as_deref().unwrap_or("/"), NAME_BYTES_MAX)?;
    }
    Ok(())
}

impl CreateAgent {
    fn within_bounds(&self) -> Result<(), String> {
        text("name", &self.name, NAME_BYTES_MAX)?;
        self.persona.as_ref().map_or(Ok(()), Persona::within_bounds)?;
        names("a tool", &self.enabled_tools)?;
        identities(&self.members)?;
        if self.wirings.len() > ENTRIES_MAX {
            return Err(format!("at most {ENTRIES_MAX} wirings"));
        }
        self.wirings.iter().try_for_each(Wiring::within_bounds)
    }
}

/// Checks a list of identities, each once.
fn identities(list: &[String]) -> Result<(), String> {
    each_once(list, "identities", "an identity", "must be", IDENTITY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::change::{ChangeKind, Error, Payload};
    use super::*;
    use serde_json::{Value, json};

    fn parse(kind: ChangeKind, payload: Value) -> Result<Change, Error> {
        Change::parse(kind, &Payload::try_from(payload).expect("an object or a list"))
    }

    #[test]
    fn payload_out_of_bounds_or_contradictory_is_refused() {
        let long = "x".repeat(100_000);
        for (kind, payload) in [
            (ChangeKind::Persona, json!({ "instructions": long })),
            (ChangeKind::EnabledTools, json!(["a", "a"])),
            (ChangeKind::EnabledTools, json!({})),
            (ChangeKind::EnabledTools, json!({"add": []})),
            (ChangeKind::EnabledTools, json!({"add": ["a", "a"]})),
            (ChangeKind::EnabledTools, json!({"add": ["a"], "remove": ["a"]})),
            (ChangeKind::EnabledTools, json!({"add": "a"})),
            (ChangeKind::EnabledTools, json!({"add": ["a"], "all": ["b"]})),
            (ChangeKind::EnabledTools, json!([{"add": ["a"]}])),
            (ChangeKind::EnabledTools, json!([""])),
            (ChangeKind::EnabledTools, json!(vec!["t"; 100])),
            (ChangeKind::Packages, json!([long])),
            (ChangeKind::Wiring, json!({"channel": "c", "engage": "pattern"})),
            (ChangeKind::Wiring, json!({"channel": "c", "engage": "all", "pattern": "x"})),
            (ChangeKind::Wiring, json!({"channel": "c", "engage": "ALL"})),
            (ChangeKind::Permissions, json!({})),
            (ChangeKind::Permissions, json!({"grant": [{"identity": "a:b", "role": "member"}], "revoke": ["a:b"]})),
            (ChangeKind::Permissions, json!({"grant": [{"identity": "a:b", "role": "owner"}]})),
            (ChangeKind::Persona, json!(["be brief"])),
            (ChangeKind::Mounts, json!([["/srv/data"]])),
            (ChangeKind::CreateAgent, json!({"name": "n", "persona": ["be brief"]})),
            (ChangeKind::Mounts, json!([{"source": ""}])),
            (ChangeKind::McpRegister, json!({"name": "n", "url": "https://x", "tools": [], "token": "plain"})),
            (ChangeKind::McpConfirm, json!({"server": "n", "digest": "sha256:short"})),
            (ChangeKind::Egress, json!({"host": "a.example", "port": 0, "methods": ["GET"]})),
            (ChangeKind::Egress, json!({"host": "a.example", "methods": [], "paths": ["/"]})),
            (ChangeKind::Egress, json!({"host": "", "methods": []})),
            (ChangeKind::Egress, json!({"host": "a.example", "methods": ["GET"], "commands": "tunnel"})),
            (ChangeKind::Egress, json!({"host": "a.example", "methods": [], "paths": ["/"], "commands": "tunnel"})),
            (ChangeKind::Egress, json!({"host": "a.example", "methods": [], "secret": "x", "commands": "tunnel"})),
            (
                ChangeKind::Egress,
                json!({"host": "a.example", "methods": ["PUT"], "paths": ["/"], "upload_bytes_max": 0}),
            ),
            (ChangeKind::Egress, json!({"host": "a.example", "methods": ["GET"], "paths": ["/"], "token": "plain"})),
        ] {
            assert!(parse(kind, payload.clone()).is_err(), "{kind} {payload}");
        }
        assert!(Payload::try_from(json!("text")).is_err());
    }

    #[test]
    fn error_about_a_list_names_the_kind_of_entry() {
        let many: Vec<String> = (0..65).map(|number| format!("x:{number}")).collect();
        for (kind, payload, what) in [
            (ChangeKind::EnabledTools, json!(many), "at most 64 entries in a list"),
            (ChangeKind::EnabledTools, json!([""]), "a tool has a name of 1 to 256 bytes"),
            (ChangeKind::Packages, json!(["jq", "jq"]), "a package is listed twice"),
            (ChangeKind::Permissions, json!({ "revoke": many }), "at most 64 identities"),
            (ChangeKind::Permissions, json!({ "revoke": [""] }), "an identity must be 1 to 320 bytes"),
            (ChangeKind::Permissions, json!({ "revoke": ["a:b", "a:b"] }), "an identity is listed twice"),
        ] {
            let error = parse(kind, payload).expect_err("out of bounds");
            assert_eq!(error.to_string(), format!("invalid payload of {kind}: {what}"));
        }
    }
}
