//! The kind `permissions`: the people who may talk to an agent, and those with a role of it.

use super::enabled_tools::RUNS_PROGRAMS;
use super::identities;
use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope, concerned};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::live_settings::HostPolicy;
use crate::registry::{Agent, roles};
use ironclaw_contract::seam::change::{Access, AgentRole, Change, Grant, Permissions};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Denied;
use serde_json::{Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Agent, restarts_sessions: true };

impl Check for Permissions {
    fn complete(&self, tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        let Self { access, mut grant, mut revoke } = self.clone();
        grant.sort_by(|one, other| one.identity.cmp(&other.identity));
        revoke.sort();
        let named = grant.iter().map(|Grant { identity, .. }| identity);
        identities::each_once(tx, named.chain(&revoke))?;
        Ok(Change::Permissions(Self { access, grant, revoke }))
    }

    /// Returns the access to the agent, and the current role of each person that the change names.
    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let mut named: Vec<&String> = self.grant.iter().map(|grant| &grant.identity).collect();
        named.extend(&self.revoke);
        named.sort();
        let mut current = Self { access: Some(agent.access), grant: Vec::new(), revoke: Vec::new() };
        for identity in named {
            let role = match identities::find(tx, identity)? {
                Some(person) => roles::role_of(tx, agent.id, person.id)?,
                None => None,
            };
            match role {
                Some(role) => current.grant.push(Grant { identity: identity.clone(), role }),
                None => current.revoke.push(identity.clone()),
            }
        }
        Ok(json!(current))
    }

    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let granted = self.grant.iter().map(|grant| grant.identity.as_str());
        Ok(json!({ "identities": identities::facts(tx, granted.chain(self.revoke.iter().map(String::as_str)))? }))
    }

    fn after(&self, _payload: &Value, agent: Option<&Agent>) -> Option<Value> {
        let access = self.access.or(agent.map(|agent| agent.access));
        agent.map(|_| json!(Self { access, ..self.clone() }))
    }
}

impl Page for Permissions {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let Self { access, grant, revoke } = self;
        let is_open_now = page.before["access"].as_str() == Some(Access::Everyone.name());
        match access {
            Some(Access::Everyone) => {
                page.add(format!("Let every person of this host talk to {agent}."));
                page.add(
                    "These are all people that `ironctl person list` shows, with any role, also people who are added later."
                        .to_owned(),
                );
                page.warn(
                    "EVERY person of this host can give the agent orders, which it follows with its tools and files, and read the answers that it gives them."
                        .to_owned(),
                );
            }
            Some(Access::Members) => {
                page.add(format!(
                    "Let only these people talk to {agent}: owners and admins of this host, and people with a role of this agent."
                ));
                if is_open_now {
                    page.add("All other people of this host can talk to it now, and LOSE this access.".to_owned());
                }
            }
            None => page.add(format!("Change the roles of these people at {agent}.")),
        }
        for grant in grant {
            let person = person(page, &grant.identity);
            match grant.role {
                AgentRole::Admin => {
                    page.add(format!("Make {person} an admin of this agent."));
                    page.warn(format!(
                        "{person} becomes an ADMIN of this agent: they can talk to it, and APPROVE changes of its persona, of its \
                         tools (also run_command, which {RUNS_PROGRAMS}) and of the people who may talk to it."
                    ));
                }
                AgentRole::Member => {
                    page.add(format!("Make {person} a member of this agent: they can talk to it."));
                }
            }
        }
        let is_open = access.map_or(is_open_now, |access| access == Access::Everyone);
        for identity in revoke {
            let person = person(page, identity);
            let access = match is_open {
                true => "they can still talk to it, as every person of this host",
                false => "they can no longer talk to it, unless they are an owner or admin of this host",
            };
            page.add(format!("{person} loses every role of this agent: {access}."));
        }
        if page.is_by_agent && alters_admins(page.before, self) {
            page.warn("The AGENT asks to change the people who decide on its own changes.".to_owned());
        }
    }
}

/// Returns a person by name with the identity; without a name, the identity alone.
pub(super) fn person(page: &Effects<'_>, identity: &str) -> String {
    match page.facts["identities"][identity]["name"].as_str() {
        Some(name) => format!("{} ({})", page.show(name), page.show(identity)),
        None => page.show(identity),
    }
}

/// Returns whether a person becomes an admin of the agent, or is one and loses that role.
fn alters_admins(before: &Value, wanted: &Permissions) -> bool {
    let granted = before["grant"].as_array();
    let is_admin = |identity: &str| {
        granted.into_iter().flatten().any(|grant| {
            grant["identity"].as_str() == Some(identity) && grant["role"].as_str() == Some(AgentRole::Admin.name())
        })
    };
    wanted.grant.iter().any(|grant| (grant.role == AgentRole::Admin) != is_admin(&grant.identity))
        || wanted.revoke.iter().any(|identity| is_admin(identity))
}

impl Apply for Permissions {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        let Self { access, grant, revoke } = self;
        if let Some(access) = access.filter(|access| *access != agent.access) {
            writers::roles::set_access(tx, approved, &agent, access)?;
        }
        let given = grant.iter().map(|Grant { identity, role }| (identity, Some(*role)));
        for (identity, role) in given.chain(revoke.iter().map(|identity| (identity, None))) {
            let person = identities::person(tx, identity)?;
            if roles::role_of(tx, agent.id, person.id)? != role {
                writers::roles::set(tx, approved, agent.id, person.id, role)?;
            }
        }
        let access = match access.unwrap_or(agent.access) {
            Access::Everyone => "every person of this host",
            Access::Members => "its members",
        };
        let (given, taken) = (grant.len(), revoke.len());
        Ok(format!("agent {} is open to {access}; roles granted: {given}, revoked: {taken}", agent.name))
    }
}
