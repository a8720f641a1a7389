//! One kind of change: its checks, its sentences on the review page, its application, and the words that kinds share.
//!
//! Knows no kind by name. See [`super`] for the list.

use crate::gateway::Requester;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::reach::packages::Layer;
use crate::registry::live_settings::HostPolicy;
use crate::registry::policy::{Policy, Rule};
use crate::registry::{self, Agent, Person};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{Change, ChangeKind, McpRegister, Packages};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::waiting::changes;
use serde_json::Value;
use std::borrow::Cow;
use std::net::IpAddr;

/// The properties that all changes of a kind share.
pub(super) struct Properties {
    pub(super) scope: Scope,
    /// True if the sessions of the agent restart after the change; they see the new setting only then.
    pub(super) restarts_sessions: bool,
}

/// The reach of a kind of change, which selects the roles that may decide.
///
/// Admins of an agent decide about changes of that agent alone. They do not decide about changes of the machine, of other agents, or
/// of MCP servers, because a server receives secrets of the operator.
pub(super) enum Scope {
    /// One agent alone. A role of that agent is enough.
    Agent,
    /// One agent, together with the machine or other agents. A role of the host is necessary.
    AgentOnHost,
    /// No existing agent. A role of the host is necessary.
    Host,
}

/// The data that a check needs beside the change.
pub(super) struct CheckContext<'a> {
    pub(super) host_policy: &'a HostPolicy,
    pub(super) requester: &'a Requester,
    /// The agent that the change alters, or that requests it.
    pub(super) agent: Option<&'a Agent>,
}

impl CheckContext<'_> {
    /// Returns the requesting person; `None` for a request of an agent, which learns no name that it did not write.
    pub(super) fn person(&self, tx: &ReadTx<'_>) -> Result<Option<Person>, ironclaw_state::Error> {
        match self.requester {
            Requester::Person(person) => registry::person_by_id(tx, *person),
            Requester::Agent { .. } => Ok(None),
        }
    }
}

/// The checks of a kind and the settings that it alters.
pub(super) trait Check {
    /// Returns the change with every default filled in and every list sorted.
    ///
    /// # Errors
    /// Refuses a change that fails a check, with the first such check.
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied>;

    /// Returns the current setting in the shape of the payload; null if there is none.
    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error>;

    /// Returns the current meaning of the names in the change.
    fn facts(&self, tx: &ReadTx<'_>, host_policy: &HostPolicy) -> Result<Value, ironclaw_state::Error>;

    /// Returns [`Check::facts`] with those that depend on the agent that the change alters.
    fn facts_of_agent(
        &self,
        tx: &ReadTx<'_>,
        _agent: Option<&Agent>,
        host_policy: &HostPolicy,
    ) -> Result<Value, ironclaw_state::Error> {
        self.facts(tx, host_policy)
    }

    /// Returns the value of [`Check::current`] after the change, if it can be compared; usually the payload.
    fn after(&self, payload: &Value, _agent: Option<&Agent>) -> Option<Value> {
        Some(payload.clone())
    }

    /// Returns the addresses of the local network that people read with the current setting.
    fn addresses(&self, _tx: &ReadTx<'_>, _agent: Option<&Agent>) -> Result<Vec<IpAddr>, ironclaw_state::Error> {
        Ok(Vec::new())
    }

    /// Refuses a change of an agent without an agent; `concerns_agent` is the property of the kind.
    fn check_agent(&self, kind: ChangeKind, concerns_agent: bool, agent: Option<&Agent>) -> Result<(), Refusal> {
        if !concerns_agent || agent.is_some() {
            return Ok(());
        }
        let refusal = Refusal::new(DenialCode::AgentMissing, format!("a change of kind {kind} needs an agent"));
        Err(refusal.hint("name it with --agent; `ironctl agent list` shows the agents"))
    }

    /// Returns the rule for the change, derived from the policy's rule for its kind.
    fn rule(&self, of_kind: Rule, _policy: &Policy, _before: &Value, _facts: &Value) -> Rule {
        of_kind
    }
}

/// The sentences of a kind on the review page.
pub(super) trait Page {
    /// Adds each effect and each warning. `agent` is text for the middle of a sentence, such as `agent "helper"`.
    fn effects(&self, agent: &str, page: &mut Effects<'_>);

    /// Returns whether the sentences and rows of [`Page::effects`] have the whole change, so that its fields are details.
    fn is_told(&self) -> bool {
        false
    }

    /// Returns the meaning of the names without the parts that the sentences of [`Page::effects`] have whole.
    fn explained<'f>(&self, facts: &'f Value) -> Cow<'f, Value> {
        Cow::Borrowed(facts)
    }
}

/// The application of a kind.
pub(super) trait Apply {
    /// Returns the work that is necessary before the change is applied. Without it, [`Apply::apply`] refuses a change that needs some.
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    /// Applies the change, and returns the outcome as a sentence of the host.
    ///
    /// # Errors
    /// Refuses a change that is no longer possible. A part of it may be written already.
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied>;
}

/// The work before a change is applied: it takes longer than a transaction may.
#[derive(Debug)]
pub enum Preparation<'a> {
    /// No work.
    Nothing,
    /// Fetching a layer with this software for the agent.
    Layer(&'a Packages),
    /// Fetching a layer with the software of this MCP server.
    ServerLayer(&'a McpRegister),
    /// Erasing the conversations of the agent that the change removes.
    ConversationsErased,
}

/// The result of the work before a change is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// No work was necessary.
    Nothing,
    /// A layer with the software that the change names.
    Layer(Layer),
    /// The conversations of the agent that the change removes are erased.
    ConversationsErased,
}

/// Returns the current state of the agent that a change alters.
pub(super) fn concerned(tx: &ReadTx<'_>, approved: &Approved) -> Result<Agent, Denied> {
    let agent = approved.agent().ok_or_else(incomplete)?;
    registry::agent_by_id(tx, agent)?.ok_or_else(|| gone(format!("agent {agent}")).into())
}

/// Returns the person who proposed an approved change; `None` if an agent did.
pub(super) fn proposer(tx: &ReadTx<'_>, approved: &Approved) -> Result<Option<PersonId>, ironclaw_state::Error> {
    Ok(changes::find(tx, approved.id())?.and_then(|row| match row.requester {
        Requester::Person(person) => Some(person),
        Requester::Agent { .. } => None,
    }))
}

pub(super) fn gone(subject: String) -> Refusal {
    Refusal::new(DenialCode::ChangeOutdated, format!("{subject} was removed"))
}

/// Returns the refusal of a change with an open field: the checks never completed it.
pub(super) fn incomplete() -> Refusal {
    Refusal::new(DenialCode::ChangeIncomplete, "the change was not completed by the checks")
}

/// Returns names, separated by commas. The checks accepted each of them as a name.
pub(super) fn listed(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}
