//! The kinds of change. Each has a file or folder with its checks, its sentences on the review page, and its application.
//!
//! A kind implements [`Check`], [`Page`] and [`Apply`] for its payload, and is named in [`kind_of`] and [`properties`]: a missing part
//! does not compile. Only the preparation and the value after the change have a usual form. See [`crate::gateway::checks`], [`crate::gateway::review_page`] and [`crate::gateway::apply`].

mod create_agent;
mod destinations;
mod egress;
mod enabled_tools;
mod groups;
mod identities;
mod kind;
pub(super) mod local_network;
mod mcp_access;
mod mcp_confirm;
mod mcp_register;
mod mounts;
mod packages;
mod permissions;
mod persona;
pub(super) mod schedule;
mod settings;
mod skills;
mod wiring;

pub use kind::{Preparation, Prepared};
pub use mounts::{check_allowable, look_at, to_look_at};
pub use schedule::lost as lost_right;
pub(super) use settings::for_default_model;

use super::Requester;
use super::decide::proof::Approved;
use super::review_page::effects::Effects;
use crate::registry::live_settings::HostPolicy;
use crate::registry::policy::{Policy, Rule};
use crate::registry::{self, Agent};
use ironclaw_contract::seam::change::{Change, ChangeKind};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use kind::{Apply, Check, CheckContext, Page, Properties, Scope};
use serde_json::Value;
use std::borrow::Cow;

/// Returns the implementation of a change's kind.
fn kind_of(change: &Change) -> &dyn Kind {
    match change {
        Change::Persona(persona) => persona,
        Change::EnabledTools(tools) => tools,
        Change::Packages(packages) => packages,
        Change::Wiring(wiring) => wiring,
        Change::Permissions(permissions) => permissions,
        Change::Mounts(mounts) => mounts,
        Change::CreateAgent(agent) => agent,
        Change::McpAccess(access) => access,
        Change::McpRegister(server) => server,
        Change::McpConfirm(confirmed) => confirmed,
        Change::Egress(egress) => egress,
        Change::Destinations(destination) => destination,
        Change::Settings(settings) => settings,
        Change::Schedule(schedule) => schedule,
        Change::Groups(group) => group,
        Change::Skills(skill) => skill,
    }
}

const fn properties(kind: ChangeKind) -> Properties {
    match kind {
        ChangeKind::Persona => persona::PROPERTIES,
        ChangeKind::EnabledTools => enabled_tools::PROPERTIES,
        ChangeKind::Packages => packages::PROPERTIES,
        ChangeKind::Wiring => wiring::PROPERTIES,
        ChangeKind::Permissions => permissions::PROPERTIES,
        ChangeKind::Mounts => mounts::PROPERTIES,
        ChangeKind::CreateAgent => create_agent::PROPERTIES,
        ChangeKind::McpAccess => mcp_access::PROPERTIES,
        ChangeKind::McpRegister => mcp_register::PROPERTIES,
        ChangeKind::McpConfirm => mcp_confirm::PROPERTIES,
        ChangeKind::Egress => egress::PROPERTIES,
        ChangeKind::Destinations => destinations::PROPERTIES,
        ChangeKind::Settings => settings::PROPERTIES,
        ChangeKind::Schedule => schedule::PROPERTIES,
        ChangeKind::Groups => groups::PROPERTIES,
        ChangeKind::Skills => skills::PROPERTIES,
    }
}

trait Kind: Check + Page + Apply {}

impl<T: Check + Page + Apply> Kind for T {}

/// Returns whether a change of this kind alters one agent. The others alter the host, and so does the default model of `settings`.
pub(crate) const fn concerns_agent(kind: ChangeKind) -> bool {
    match properties(kind).scope {
        Scope::Agent | Scope::AgentOnHost => true,
        Scope::Host => false,
    }
}

/// Returns whether a role of the agent is enough to decide on a change of this kind. Otherwise a role of the host is necessary.
pub const fn is_of_agent(kind: ChangeKind) -> bool {
    match properties(kind).scope {
        Scope::Agent => true,
        Scope::AgentOnHost | Scope::Host => false,
    }
}

/// Returns whether the sessions of the agent restart after a change of this kind.
pub const fn restarts_sessions(kind: ChangeKind) -> bool {
    properties(kind).restarts_sessions
}

/// Returns whether a change fetches software. Such a change is applied concurrently with all others.
pub(crate) fn fetches(change: &Change) -> bool {
    match change {
        Change::Packages(_) => true,
        Change::McpRegister(server) => !server.packages.is_empty(),
        Change::Skills(skill) => skill.parts.iter().any(|part| fetches(part.change())),
        _ => false,
    }
}

/// Returns the work that is necessary before a change is applied.
pub fn preparation(change: &Change) -> Preparation<'_> {
    kind_of(change).preparation()
}

/// Returns the rule for a change, given the current setting and the meaning of its names.
pub(super) fn rule(policy: &Policy, change: &Change, before: &Value, facts: &Value) -> Rule {
    kind_of(change).rule(policy.rule(change.kind()).clone(), policy, before, facts)
}

/// Refuses a change of an agent without an agent, and a change of the host with one.
pub(super) fn check_agent(change: &Change, agent: Option<&Agent>) -> Result<(), Refusal> {
    kind_of(change).check_agent(change.kind(), concerns_agent(change.kind()), agent)
}

/// Returns a change with every default filled in and every list sorted.
///
/// # Errors
/// Refuses a change that fails a check, with the first such check.
pub(super) fn complete(
    tx: &ReadTx<'_>,
    host_policy: &HostPolicy,
    requester: &Requester,
    change: &Change,
    agent: Option<&Agent>,
) -> Result<Change, Denied> {
    kind_of(change).complete(tx, &CheckContext { host_policy, requester, agent })
}

/// Returns the current setting in the shape of the payload, and the current meaning of the names in the change.
pub(super) fn current(
    tx: &ReadTx<'_>,
    host_policy: &HostPolicy,
    change: &Change,
    agent: Option<&Agent>,
) -> Result<(Value, Value), ironclaw_state::Error> {
    let kind = kind_of(change);
    Ok((kind.current(tx, agent)?, kind.facts_of_agent(tx, agent, host_policy)?))
}

/// Returns the setting after the change, if it can be compared.
pub(super) fn after(change: &Change, agent: Option<&Agent>) -> Option<Value> {
    kind_of(change).after(change.payload().value(), agent)
}

/// Returns whether the host has a change already, with the addresses that its facts have.
pub(super) fn has_addresses(
    tx: &ReadTx<'_>,
    change: &Change,
    agent: Option<&Agent>,
    facts: &Value,
) -> Result<bool, ironclaw_state::Error> {
    Ok(kind_of(change).addresses(tx, agent)? == local_network::addresses(facts))
}

/// Adds each effect and each warning of a change.
pub(super) fn effects(change: &Change, agent: &str, page: &mut Effects<'_>) {
    kind_of(change).effects(agent, page);
}

/// Returns whether the effects have the whole change, so that its fields are details.
pub(super) fn is_told(change: &Change) -> bool {
    kind_of(change).is_told()
}

/// Returns the meaning of the names in a change without the parts that its effects have whole.
pub(super) fn explained<'f>(change: &Change, facts: &'f Value) -> Cow<'f, Value> {
    kind_of(change).explained(facts)
}

/// Applies an approved change, and returns the outcome.
///
/// # Errors
/// Refuses a change that is no longer possible.
pub(super) fn apply(tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied> {
    if gives_what_skills_bring(approved.change())
        && let Some(agent) = approved.agent().map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten()
    {
        skills::forget_lost(tx, &agent)?;
    }
    kind_of(approved.change()).apply(tx, approved, prepared)
}

/// Returns whether a change gives an agent grants of a kind that a skill can bring too.
const fn gives_what_skills_bring(change: &Change) -> bool {
    match change {
        Change::EnabledTools(_)
        | Change::McpAccess(_)
        | Change::Egress(_)
        | Change::Mounts(_)
        | Change::Packages(_) => true,
        // The plan of a skill says which grants each skill brought.
        Change::Skills(_)
        | Change::Schedule(_)
        | Change::Persona(_)
        | Change::Wiring(_)
        | Change::Permissions(_)
        | Change::CreateAgent(_)
        | Change::McpRegister(_)
        | Change::McpConfirm(_)
        | Change::Destinations(_)
        | Change::Settings(_)
        | Change::Groups(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_of_an_agent_decides_only_on_kinds_of_that_agent() {
        let of_agent: Vec<ChangeKind> = ChangeKind::ALL.iter().copied().filter(|kind| is_of_agent(*kind)).collect();
        assert_eq!(
            of_agent,
            [ChangeKind::Persona, ChangeKind::EnabledTools, ChangeKind::Permissions, ChangeKind::Schedule]
        );
    }

    #[test]
    fn texts_name_each_kind_that_concerns_no_agent() {
        let kinds: Vec<&str> =
            ChangeKind::ALL.iter().copied().filter(|kind| !concerns_agent(*kind)).map(ChangeKind::name).collect();
        let in_code: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        for (path, text) in [
            ("contract/operator/src/changes.rs", format!("none for {}, and `settings`", in_code.join(", "))),
            ("ironctl/src/commands/change.rs", format!("absent for {} and the default model", kinds.join(", "))),
        ] {
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
            let source = std::fs::read_to_string(file).expect(path);
            assert!(source.contains(&text), "{path} does not say {text:?}");
        }
    }
}
