//! The proofs that a change of a capability takes: [`Approved`] by people, or [`Direct`] for a command that the policy leaves to one
//! person.
//!
//! Only `gateway::decide` makes one: fields and constructors are private to it. Everything that changes what an agent is or may do
//! takes one by reference. Next: `gateway::decide`, `gateway::kinds`.

use crate::registry::Giver;
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_contract::seam::change::Change;
use serde_json::Value;

/// A change that enough people approved and whose approvals are used up in this very transaction.
///
/// Anything can ask for it:
///
/// ```
/// use ironclaw_host::gateway::Approved;
///
/// fn change_a_capability(approved: &Approved) -> String {
///     approved.id().to_string()
/// }
/// ```
///
/// Nothing outside of the decision can make it, by its constructor or by its fields:
///
/// ```compile_fail,E0624
/// use ironclaw_host::gateway::Approved;
///
/// let forge = Approved::new;
/// ```
///
/// ```compile_fail,E0451
/// use ironclaw_host::gateway::Approved;
///
/// fn forge(approved: Approved) -> Approved {
///     Approved { givers: Vec::new(), ..approved }
/// }
/// ```
#[derive(Debug)]
pub struct Approved {
    id: ChangeId,
    agent: Option<AgentId>,
    change: Change,
    facts: Value,
    givers: Vec<Giver>,
}

impl Approved {
    pub(super) const fn new(
        id: ChangeId,
        agent: Option<AgentId>,
        change: Change,
        facts: Value,
        givers: Vec<Giver>,
    ) -> Self {
        Self { id, agent, change, facts, givers }
    }

    /// Its id.
    pub const fn id(&self) -> ChangeId {
        self.id
    }

    /// The agent that it concerns.
    pub const fn agent(&self) -> Option<AgentId> {
        self.agent
    }

    /// What is set.
    pub const fn change(&self) -> &Change {
        &self.change
    }

    /// What the names in it mean.
    pub const fn facts(&self) -> &Value {
        &self.facts
    }

    /// The people who approved it, each with the token that they came with; at least one.
    pub fn givers(&self) -> &[Giver] {
        &self.givers
    }
}

/// That the policy leaves what one kind of change does to a command of this person alone.
///
/// ```compile_fail,E0624
/// use ironclaw_host::gateway::Direct;
///
/// let forge = Direct::new;
/// ```
#[derive(Debug)]
pub struct Direct {
    by: PersonId,
}

impl Direct {
    pub(super) const fn new(by: PersonId) -> Self {
        Self { by }
    }

    /// The person.
    pub const fn by(&self) -> PersonId {
        self.by
    }
}

/// Either proof, for what operators do by a command as well.
#[derive(Debug, Clone, Copy)]
pub enum Authority<'a> {
    /// People approved a change.
    Approved(&'a Approved),
    /// The policy leaves it to one person.
    Direct(&'a Direct),
}

impl<'a> From<&'a Approved> for Authority<'a> {
    fn from(approved: &'a Approved) -> Self {
        Self::Approved(approved)
    }
}

impl<'a> From<&'a Direct> for Authority<'a> {
    fn from(direct: &'a Direct) -> Self {
        Self::Direct(direct)
    }
}

#[cfg(test)]
impl Approved {
    /// Returns a checked proposal as if this person had approved it.
    pub(crate) fn in_test(agent: Option<AgentId>, change: Change, facts: Value, by: PersonId) -> Self {
        Self::new(ChangeId::new(), agent, change, facts, vec![by.into()])
    }

    /// Returns the proof alone, for what takes one and looks at no change.
    pub(crate) fn by_test(by: PersonId) -> Self {
        Self::in_test(None, Change::Mounts(Vec::new()), Value::Null, by)
    }
}

#[cfg(test)]
impl Direct {
    /// Returns the proof that a command of this person would have.
    pub(crate) const fn by_test(by: PersonId) -> Self {
        Self::new(by)
    }
}
