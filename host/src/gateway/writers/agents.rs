//! Agents: their creation, persona, tools and guard mode, and their removal.

use super::{approved_entry, authorised_entry, changed_entry};
use crate::gateway::decide::proof::{Approved, Authority};
use crate::registry::{Agent, AgentDraft, Mode, allowances, check_agent_name, find_agent, models};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_judge::OwnReceiver;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables;

/// Bytes of a persona.
const PERSONA_BYTES_MAX: usize = 32 * 1024;

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
        receiver: OwnReceiver::default(),
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
    let is_lost = |tool: &str| crate::registry::tools::find(tool).is_some() && !tools.iter().any(|kept| kept == tool);
    allowances::end_of_tools(tx, agent.id, is_lost)?;
    let (before, after) = (canonical::to_string(&agent.enabled_tools), canonical::to_string(&tools));
    changed_entry(LedgerEvent::AgentTools, approved, agent.id, before.as_bytes(), after.as_bytes()).append(tx)?;
    Ok(())
}

fn check_draft(draft: &AgentDraft) -> Result<(), Refusal> {
    check_agent_name(&draft.name)?;
    if draft.persona.len() > PERSONA_BYTES_MAX {
        let (bytes, remedy) = (draft.persona.len(), "write a shorter persona");
        let bound = Bound::new("bytes of the persona", PERSONA_BYTES_MAX, bytes, remedy);
        return Err(Refusal::over(DenialCode::PersonaTooLong, bound));
    }
    crate::registry::tools::check(&draft.enabled_tools)
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

/// Sets the classes that an agent takes from each kind of author.
pub fn set_receiver(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    receiver: &OwnReceiver,
) -> Result<(), ironclaw_state::Error> {
    tables::agents::set_receiver(tx, agent.id, receiver)?;
    approved_entry(LedgerEvent::AgentReceiver, approved)
        .with("agent", agent.id)
        .with("receiver", canonical::to_string(receiver))
        .with("was", canonical::to_string(&agent.receiver))
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
