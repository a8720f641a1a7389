//! The proofs that a change of a capability needs: [`Approved`] by people, or [`Direct`] for a command that the policy leaves to one
//! person.
//!
//! Only [`crate::gateway::decide`] makes one, because fields and constructors are private to it. Every function that changes a
//! capability or a setting of an agent takes a proof by reference. See [`crate::gateway::kinds`].

use crate::registry::Giver;
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_contract::seam::change::Change;
use serde_json::Value;

/// A change that enough people approved, and whose approvals this transaction uses up.
///
/// Any code can take it:
///
/// ```
/// use ironclaw_host::driven::Approved;
///
/// fn change_a_capability(approved: &Approved) -> String {
///     approved.id().to_string()
/// }
/// ```
///
/// No code outside of the decision can make it, by its constructor or by its fields:
///
/// ```compile_fail,E0624
/// use ironclaw_host::driven::Approved;
///
/// let forge = Approved::new;
/// ```
///
/// ```compile_fail,E0451
/// use ironclaw_host::driven::Approved;
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

    pub const fn id(&self) -> ChangeId {
        self.id
    }

    /// Returns the agent that the change concerns.
    pub const fn agent(&self) -> Option<AgentId> {
        self.agent
    }

    /// Returns the change itself.
    pub const fn change(&self) -> &Change {
        &self.change
    }

    /// Returns the meaning of the names in the change.
    pub const fn facts(&self) -> &Value {
        &self.facts
    }

    /// Returns the approval of a change that this one contains, with the meaning of its names.
    pub(in crate::gateway) fn part(&self, change: &Change, facts: Value) -> Self {
        Self { id: self.id, agent: self.agent, change: change.clone(), facts, givers: self.givers.clone() }
    }

    /// Returns the people who approved it, each with the token that they used; at least one.
    pub fn givers(&self) -> &[Giver] {
        &self.givers
    }
}

/// The proof that the policy leaves the work of one kind of change to a command of this person alone.
///
/// ```compile_fail,E0624
/// use ironclaw_host::driven::Direct;
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

    pub const fn by(&self) -> PersonId {
        self.by
    }
}

/// Either proof, for work that a change does and a command as well.
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

    /// Returns the proof for a function that does not read the change.
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
