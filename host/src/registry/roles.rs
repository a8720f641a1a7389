//! The roles of people with one agent: the right to talk to it, and the right to decide on changes of it alone.
//!
//! Never reduces the roles of the host: its owners and admins may talk to every agent. See [`crate::channels::inbound::routing`] and
//! [`crate::gateway`].

pub use ironclaw_store::tables::agents::{role_of, roles_of as list_for_agent};

use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::{Access, AgentRole};
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables;
use ironclaw_store::tables::agents::Agent;
use ironclaw_store::tables::people::{Person, Role};

/// The rights of a person with one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentStanding {
    /// The role of the person on the host.
    pub host: Role,
    /// The role of the person with this agent, if any.
    pub own: Option<AgentRole>,
    /// The access rule of this agent.
    pub access: Access,
}

impl AgentStanding {
    /// Returns whether the person may talk to the agent.
    pub const fn may_talk(self) -> bool {
        match (self.host, self.access, self.own) {
            (Role::Owner | Role::Admin, _, _) => true,
            (Role::Member, Access::Everyone, _) => true,
            (Role::Member, Access::Members, Some(AgentRole::Admin | AgentRole::Member)) => true,
            (Role::Member, Access::Members, None) => false,
        }
    }

    /// Returns the role for decisions about this agent alone: the higher of the role on the host and the role with the agent.
    pub const fn role(self) -> Role {
        larger(self.host, self.own)
    }
}

/// Returns the higher of a role on the host and a role with an agent.
pub const fn larger(host: Role, own: Option<AgentRole>) -> Role {
    match (host, own) {
        (Role::Owner, _) => Role::Owner,
        (Role::Admin, _) => Role::Admin,
        (Role::Member, Some(AgentRole::Admin)) => Role::Admin,
        (Role::Member, Some(AgentRole::Member) | None) => Role::Member,
    }
}

/// Returns the rights of a person with an agent.
pub fn role_for(tx: &ReadTx<'_>, person: &Person, agent: &Agent) -> Result<AgentStanding, ironclaw_state::Error> {
    Ok(AgentStanding { host: person.role, own: role_of(tx, agent.id, person.id)?, access: agent.access })
}

/// Ends every role of a person who is removed, and returns the names of the agents. It only takes rights away, so it needs no approved
/// change.
pub(super) fn end_all(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    by: PersonId,
) -> Result<Vec<String>, ironclaw_state::Error> {
    let mut agents = Vec::new();
    for (agent, role) in tables::agents::roles_of_person(tx, person)? {
        tables::agents::delete_role(tx, agent.id, person)?;
        Entry::new(LedgerEvent::AgentRoles)
            .with("agent", agent.id)
            .with("person", person)
            .with("before", role.name())
            .with("after", None::<&str>)
            .with("by", by)
            .append(tx)?;
        agents.push(agent.name);
    }
    Ok(agents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_and_host_admins_talk_to_a_members_agent() {
        let talks = |host, access, own| AgentStanding { host, own, access }.may_talk();
        assert!(!talks(Role::Member, Access::Members, None));
        assert!(talks(Role::Member, Access::Members, Some(AgentRole::Member)));
        assert!(talks(Role::Member, Access::Everyone, None));
        for host in [Role::Owner, Role::Admin] {
            assert!(talks(host, Access::Members, None), "{host}");
        }
    }

    #[test]
    fn agent_role_never_makes_an_owner_or_lowers_a_host_role() {
        let role = |host, own| AgentStanding { host, own, access: Access::Members }.role();
        assert_eq!(role(Role::Member, Some(AgentRole::Member)), Role::Member);
        assert_eq!(role(Role::Member, Some(AgentRole::Admin)), Role::Admin);
        assert_eq!(role(Role::Owner, Some(AgentRole::Member)), Role::Owner);
        assert_eq!(role(Role::Admin, None), Role::Admin);
    }
}
