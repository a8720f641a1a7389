//! The registry of agents, people, identities and tokens, and of the model endpoints of the agents.
//!
//! Never decides about a message, and changes the rights of an agent only with an [`Approved`] or an [`Authority`]. See
//! [`crate::inbound::identity`] and [`crate::inbound::routing`].

pub mod allowances;
pub mod channels;
pub mod destinations;
pub mod egress;
pub mod groups;
pub mod mcp;
pub mod models;
pub mod mounts;
pub mod people;
pub mod person_removal;
pub mod places;
pub mod roles;
pub mod schedules;
pub mod skills;
pub mod software;
mod suggestion;
pub mod tokens;

pub use crate::tables::agents::{Agent, Mode, agent_by_id, agents, find_agent};
pub use crate::tables::people::Giver;
pub use ironclaw_contract::operator::TokenId;
pub use people::{
    Identity, Person, Role, add_person, create_owner, find_person, identities, known_person, owner, people,
    person_behind, person_by_id, person_name, person_of,
};
pub use suggestion::Unknown;
pub use tokens::{FreshToken, Token, TokenState, tokens};

use crate::gateway::decide::proof::{Approved, Authority};
use crate::refusal::{Denied, Refusal};
use crate::tables;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::Access;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::Value;
use std::fmt;

/// The channel that connects people with their own host.
pub const LOOPBACK: &str = "loopback";

/// Characters of an agent's name.
const AGENT_NAME_MAX: usize = 32;

/// Bytes of a persona.
const PERSONA_BYTES_MAX: usize = 32 * 1024;

impl Mode {
    /// Returns the warning for `status`; `None` for the default mode.
    pub const fn warning(self) -> Option<&'static str> {
        match self {
            Self::Enforce => None,
            Self::DangerousWarn => Some(
                "a call runs that would need a person, text without a seal reaches its model as quoted text, and the ledger records each case",
            ),
            Self::DangerousOff => Some(
                "no call needs a person for its scope or origin, no seal is checked, and the ledger records neither",
            ),
        }
    }
}

/// Returns the agent of this name or id, from a person's request.
///
/// # Errors
/// Refuses an unknown name or id, and suggests the nearest name that the person may see.
pub fn named_agent(tx: &ReadTx<'_>, by: &Person, name_or_id: &str) -> Result<Agent, Denied> {
    match find_agent(tx, name_or_id)? {
        Some(agent) => Ok(agent),
        None => Err(Unknown::Agent(name_or_id).suggest(tx, by, unknown_agent(name_or_id))?.into()),
    }
}

/// Returns the agent of this id, from a person's request.
///
/// # Errors
/// Refuses an unknown id.
pub fn known_agent(tx: &ReadTx<'_>, id: AgentId) -> Result<Agent, Denied> {
    agent_by_id(tx, id)?.ok_or_else(|| unknown_agent(&format!("{id}")).into())
}

pub(crate) fn unknown_agent(name_or_id: &str) -> Refusal {
    let shown: String = name_or_id.chars().take(64).collect();
    let hint = "`ironctl agent list` lists the agents; `ironctl agent add NAME` makes one";
    Refusal::new(DenialCode::AgentUnknown, format!("there is no agent {shown:?}")).hint(hint)
}

/// Returns the name, or the id if the object was removed.
pub fn name_or_id(name: Option<String>, id: impl fmt::Display) -> String {
    name.unwrap_or_else(|| id.to_string())
}

/// The properties of a new agent.
#[derive(Debug, Clone)]
pub struct AgentDraft {
    /// Its name.
    pub name: String,
    /// Name of its model endpoint; `None` or `default` to follow the default, also after a change of it.
    pub model: Option<String>,
    /// Its persona.
    pub persona: String,
    /// The tools that it may call.
    pub enabled_tools: Vec<String>,
    /// The people who may talk to it.
    pub access: Access,
}

/// Returns the ledger entry about an applied change.
pub(crate) fn approved_entry(event: LedgerEvent, approved: &Approved) -> Entry {
    let by: Vec<Value> = approved.givers().iter().map(|giver| giver.person.into()).collect();
    Entry::new(event).with("change", approved.id()).with("by", by)
}

/// Returns the ledger entry about an applied change or a command.
fn authorised_entry(event: LedgerEvent, authority: Authority<'_>) -> Entry {
    match authority {
        Authority::Approved(approved) => approved_entry(event, approved),
        Authority::Direct(direct) => Entry::new(event).with("by", direct.by()),
    }
}

/// Returns the ledger entry about a changed setting of an agent, with the digests of the old and the new value.
fn changed_entry(event: LedgerEvent, approved: &Approved, agent: AgentId, before: &[u8], after: &[u8]) -> Entry {
    approved_entry(event, approved)
        .with("agent", agent)
        .with("before", Digest::of(before).to_string())
        .with("after", Digest::of(after).to_string())
}

/// Creates an agent for a command or a change.
///
/// # Errors
/// Refuses a malformed or taken name, an unknown tool or model endpoint, and a persona that is too long.
pub fn create_agent<'a>(
    tx: &mut WriteTx<'_>,
    authority: impl Into<Authority<'a>>,
    draft: AgentDraft,
) -> Result<Agent, Denied> {
    let agent = insert_agent(tx, draft)?;
    authorised_entry(LedgerEvent::AgentCreated, authority.into())
        .with("agent", agent.id)
        .with("name", agent.name.clone())
        .with("model", agent.model.clone())
        .with("access", agent.access.name())
        .with("persona_digest", Digest::of(agent.persona.as_bytes()).to_string())
        .with("enabled_tools", agent.enabled_tools.clone())
        .append(tx)?;
    Ok(agent)
}

fn insert_agent(tx: &mut WriteTx<'_>, draft: AgentDraft) -> Result<Agent, Denied> {
    check_draft(&draft)?;
    if find_agent(tx, &draft.name)?.is_some() {
        let refusal = Refusal::new(DenialCode::AgentExists, format!("there is an agent `{}` already", draft.name));
        return Err(refusal.hint("choose another name, or look at it with `ironctl agent show`").into());
    }
    let (model, follows_default) = models::choose(tx, draft.model.as_deref())?;
    let agent = Agent {
        id: AgentId::new(),
        name: draft.name,
        model,
        follows_default,
        persona: draft.persona,
        enabled_tools: draft.enabled_tools,
        access: draft.access,
        mode: Mode::Enforce,
        created_at: tx.now(),
    };
    tables::agents::insert_agent(tx, &agent)?;
    Ok(agent)
}

/// Replaces the persona of an agent.
pub fn set_persona(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    persona: &str,
) -> Result<(), ironclaw_state::Error> {
    tables::agents::set_persona(tx, agent.id, persona)?;
    changed_entry(LedgerEvent::AgentPersona, approved, agent.id, agent.persona.as_bytes(), persona.as_bytes())
        .append(tx)?;
    Ok(())
}

/// Sets the tools that an agent may call.
pub fn set_tools(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    tools: &[String],
) -> Result<(), ironclaw_state::Error> {
    tables::agents::set_tools(tx, agent.id, tools)?;
    let is_lost = |tool: &str| crate::tools::find(tool).is_some() && !tools.iter().any(|kept| kept == tool);
    allowances::end_of_tools(tx, agent.id, is_lost)?;
    let (before, after) = (canonical::to_string(&agent.enabled_tools), canonical::to_string(&tools));
    changed_entry(LedgerEvent::AgentTools, approved, agent.id, before.as_bytes(), after.as_bytes()).append(tx)?;
    Ok(())
}

/// Checks the name of an agent.
///
/// # Errors
/// Refuses a malformed name, with the rules as a hint.
pub fn check_agent_name(name: &str) -> Result<(), Refusal> {
    let clean = name.len() <= AGENT_NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if clean {
        return Ok(());
    }
    let shown: String = name.chars().take(AGENT_NAME_MAX).collect();
    let refusal = Refusal::new(DenialCode::AgentName, format!("{shown:?} is not a valid agent name"));
    Err(refusal.hint("use 1 to 32 characters of a-z, 0-9 and -, starting with a letter"))
}

fn check_draft(draft: &AgentDraft) -> Result<(), Refusal> {
    check_agent_name(&draft.name)?;
    if draft.persona.len() > PERSONA_BYTES_MAX {
        return Err(Refusal::new(DenialCode::PersonaTooLong, format!("the persona is over {PERSONA_BYTES_MAX} bytes")));
    }
    crate::tools::check(&draft.enabled_tools)
}

/// Sets the guard mode of an agent.
pub fn set_mode(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    mode: Mode,
) -> Result<(), ironclaw_state::Error> {
    tables::agents::set_mode(tx, agent.id, mode)?;
    approved_entry(LedgerEvent::AgentMode, approved)
        .with("agent", agent.id)
        .with("mode", mode.name())
        .with("was", agent.mode.name())
        .append(tx)?;
    Ok(())
}

/// Removes an agent whose sessions are gone.
pub fn remove_agent(tx: &mut WriteTx<'_>, approved: &Approved, agent: &Agent) -> Result<(), ironclaw_state::Error> {
    tables::sessions::mark_uids_shared(tx, agent.id)?;
    allowances::end_of_agent(tx, agent.id)?;
    tables::agents::delete_agent(tx, agent.id)?;
    approved_entry(LedgerEvent::AgentRemoved, approved)
        .with("agent", agent.id)
        .with("name", agent.name.clone())
        .append(tx)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::seam::change::GuardMode;

    #[test]
    fn each_mode_of_the_contract_is_the_one_of_its_name() {
        for mode in GuardMode::ALL.iter().copied() {
            assert_eq!(Mode::from(mode).name(), mode.name());
            assert_eq!(GuardMode::from(Mode::from(mode)), mode);
        }
    }
}
