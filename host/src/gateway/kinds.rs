//! The kinds of change, each in a file or folder of its own: its check, its lines on the review page, and its effect.
//!
//! A kind implements [`Check`], [`Page`] and [`Apply`] for its payload, and is named in [`of`] and [`properties`]: a missing part
//! does not compile. See [`crate::gateway::checks`], [`crate::gateway::review_page`] and [`crate::gateway::apply`].

mod create_agent;
mod enabled_tools;
mod identities;
mod mcp_access;
mod mcp_register;
mod mounts;
mod packages;
mod permissions;
mod persona;
mod settings;
mod wiring;

pub(super) use settings::for_default_model;

use super::decide::proof::Approved;
use super::policy::{Policy, Rule};
use super::review_page::effects::Effects;
use super::{Grounds, Requester};
use crate::packages::Layer;
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Agent};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::{Change, ChangeKind, Packages};
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::Value;

/// The one kind that fetches software, and so is applied beside all others.
pub(crate) const FETCHING: ChangeKind = ChangeKind::Packages;

/// Returns the kind of a change by its aspects.
fn of(change: &Change) -> &dyn Kind {
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
        Change::Settings(settings) => settings,
    }
}

/// Returns what holds for every change of a kind.
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
        ChangeKind::Settings => settings::PROPERTIES,
    }
}

/// What holds for every change of a kind.
struct Properties {
    scope: Scope,
    /// Whether the sessions of the agent begin anew once it is applied, because they see only then what was set.
    begins_anew: bool,
}

/// The reach of a kind of change, which selects the roles that may decide.
///
/// Admins of an agent decide about changes of that agent alone. They do not decide about changes of the machine, of other agents, or
/// of MCP servers, because a server receives secrets of the operator.
enum Scope {
    /// One agent alone. A role of it is enough.
    Agent,
    /// One agent, and the machine or others with it. It takes a role of the whole host.
    AgentOnHost,
    /// No agent that there is. It takes a role of the whole host.
    Host,
}

/// What a change is checked beside.
struct CheckContext<'a> {
    grounds: &'a Grounds,
    requester: &'a Requester,
    /// The agent that it concerns, or whose wish it is.
    agent: Option<&'a Agent>,
}

/// What a change of a kind may not be, and what it alters.
trait Check {
    /// Returns the change with nothing left open, in the one order that its lists have.
    ///
    /// # Errors
    /// Refuses with the first check that it does not pass.
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied>;

    /// Returns the present setting in the shape of the payload; null where there is none.
    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error>;

    /// Returns what the names in it mean now.
    fn facts(&self, tx: &ReadTx<'_>, grounds: &Grounds) -> Result<Value, ironclaw_state::Error>;

    /// Returns what [`Check::current`] is once it is applied, where there is something to compare.
    fn after(&self, agent: Option<&Agent>) -> Option<Value>;

    /// Refuses it for an agent that it does not concern, and without one that it does.
    fn check_agent(&self, kind: ChangeKind, agent: Option<&Agent>) -> Result<(), Refusal> {
        if !concerns_agent(kind) || agent.is_some() {
            return Ok(());
        }
        let refusal = Refusal::new(DenialCode::AgentMissing, format!("a change of kind {kind} concerns an agent"));
        Err(refusal.hint("name it with --agent; `ironctl agent list` shows who there is"))
    }

    /// Returns the rule for it, made of that of the policy for its kind.
    fn rule(&self, of_kind: Rule, _before: &Value, _facts: &Value) -> Rule {
        of_kind
    }
}

/// What a person is shown of a kind of change.
trait Page {
    /// Says each effect on the agent, which is named at the beginning of a sentence.
    fn effects(&self, agent: &str, page: &mut Effects<'_>);
}

/// What a kind of change does.
trait Apply {
    /// Returns what it takes before it is applied.
    fn preparation(&self) -> Preparation<'_>;

    /// Applies it, and returns what came of it, a sentence in the host's own words.
    ///
    /// # Errors
    /// Refuses what cannot be done any more. A part may be written already then.
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied>;
}

trait Kind: Check + Page + Apply {}

impl<T: Check + Page + Apply> Kind for T {}

/// What a change takes before it is applied, because it takes longer than a transaction may.
#[derive(Debug)]
pub enum Preparation<'a> {
    /// It takes nothing.
    Nothing,
    /// A layer with this software.
    Layer(&'a Packages),
    /// The conversations of the agent that it removes are erased, for good.
    ConversationsErased,
}

/// What was made for a change before it is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// It takes nothing.
    Nothing,
    /// A layer with the software that the change names.
    Layer(Layer),
    /// The conversations of the agent that the change removes are erased, for good.
    ConversationsErased,
}

/// Returns whether a change of this kind is of one agent; the others are of the host, and of `settings` the default model is.
pub(crate) const fn concerns_agent(kind: ChangeKind) -> bool {
    match properties(kind).scope {
        Scope::Agent | Scope::AgentOnHost => true,
        Scope::Host => false,
    }
}

/// Returns whether a role of one agent is enough for a change of this kind, or it takes one of the whole host.
pub const fn is_of_agent(kind: ChangeKind) -> bool {
    match properties(kind).scope {
        Scope::Agent => true,
        Scope::AgentOnHost | Scope::Host => false,
    }
}

/// Returns whether the sessions of the agent begin anew once a change of this kind is applied.
pub const fn begins_anew(kind: ChangeKind) -> bool {
    properties(kind).begins_anew
}

/// Returns what a change takes before it is applied.
pub fn preparation(change: &Change) -> Preparation<'_> {
    of(change).preparation()
}

/// Returns the rule for a change, with how it stands and what its names mean.
pub(super) fn rule(policy: &Policy, change: &Change, before: &Value, facts: &Value) -> Rule {
    of(change).rule(policy.rule(change.kind()).clone(), before, facts)
}

/// Refuses a change for an agent that it does not concern, and without one that it does.
pub(super) fn check_agent(change: &Change, agent: Option<&Agent>) -> Result<(), Refusal> {
    of(change).check_agent(change.kind(), agent)
}

/// Returns a change with nothing left open, in the one order that its lists have.
///
/// # Errors
/// Refuses with the first check that it does not pass.
pub(super) fn complete(
    tx: &ReadTx<'_>,
    grounds: &Grounds,
    requester: &Requester,
    change: &Change,
    agent: Option<&Agent>,
) -> Result<Change, Denied> {
    of(change).complete(tx, &CheckContext { grounds, requester, agent })
}

/// Returns the present setting in the shape of the payload, and what the names in the change mean now.
pub(super) fn current(
    tx: &ReadTx<'_>,
    grounds: &Grounds,
    change: &Change,
    agent: Option<&Agent>,
) -> Result<(Value, Value), ironclaw_state::Error> {
    let kind = of(change);
    Ok((kind.current(tx, agent)?, kind.facts(tx, grounds)?))
}

/// Returns what the present setting is once the change is applied, where there is something to compare.
pub(super) fn after(change: &Change, agent: Option<&Agent>) -> Option<Value> {
    of(change).after(agent)
}

/// Says each effect of a change.
pub(super) fn effects(change: &Change, agent: &str, page: &mut Effects<'_>) {
    of(change).effects(agent, page);
}

/// Applies an approved change, and returns what came of it.
///
/// # Errors
/// Refuses what cannot be done any more.
pub(super) fn apply(tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied> {
    of(approved.change()).apply(tx, approved, prepared)
}

/// Returns the agent that a change concerns, as it is now.
fn concerned(tx: &ReadTx<'_>, approved: &Approved) -> Result<Agent, Denied> {
    let agent = approved.agent().ok_or_else(incomplete)?;
    registry::agent_by_id(tx, agent)?.ok_or_else(|| gone(format!("agent {agent}")).into())
}

fn gone(what: String) -> Refusal {
    Refusal::new(DenialCode::ChangeOutdated, format!("{what} was removed"))
}

/// A completed change leaves nothing open; one that does was never checked.
fn incomplete() -> Refusal {
    Refusal::new(DenialCode::ChangeIncomplete, "the change is not what the checks made of it")
}

/// Names in a row: every one of them passed a check for what a name looks like.
fn listed(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_of_an_agent_decides_nothing_that_reaches_beyond_it() {
        let of_agent: Vec<ChangeKind> = ChangeKind::ALL.iter().copied().filter(|kind| is_of_agent(*kind)).collect();
        assert_eq!(of_agent, [ChangeKind::Persona, ChangeKind::EnabledTools, ChangeKind::Permissions]);
    }

    #[test]
    fn texts_name_each_kind_that_concerns_no_agent() {
        let kinds: Vec<&str> =
            ChangeKind::ALL.iter().copied().filter(|kind| !concerns_agent(*kind)).map(ChangeKind::name).collect();
        let in_code: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        for (path, text) in [
            ("contract/src/operator/changes.rs", format!("none for {}, and `settings`", in_code.join(", "))),
            ("ironctl/src/commands/change.rs", format!("none for {} and the default model", kinds.join(", "))),
        ] {
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
            let source = std::fs::read_to_string(file).expect(path);
            assert!(source.contains(&text), "{path} does not say {text:?}");
        }
    }
}
