//! The registry of agents, people, identities and tokens, and of the model endpoints of the agents.
//!
//! Never decides about a message, and gives an agent no right: see [`crate::gateway::writers`]. See also
//! [`crate::channels::inbound::identity`] and [`crate::channels::inbound::routing`].

pub mod allowances;
pub mod channels;
pub mod destinations;
pub mod egress;
pub mod groups;
pub mod latch;
pub mod live_settings;
pub mod local_network;
pub mod mcp;
pub mod models;
pub mod mounts;
pub mod people;
pub mod person_removal;
pub mod places;
pub mod policy;
pub mod quota;
pub mod roles;
pub mod schedules;
pub mod secret_users;
pub mod secrets;
mod signer;
pub mod skills;
pub mod software;
mod suggestion;
pub mod tokens;
pub mod tools;

pub use ironclaw_operator::TokenId;
pub use ironclaw_store::tables::agents::{Agent, Mode, agent_by_id, agents, find_agent, mode_warning};
pub use ironclaw_store::tables::people::{Giver, LOOPBACK};
pub use people::{
    Identity, Person, Role, add_person, create_owner, find_person, identities, known_person, name_or_id, owner, people,
    person_behind, person_by_id, person_name, person_of,
};
pub use signer::Signer;
pub use suggestion::Unknown;
pub use tokens::{Face, FreshToken, Token, TokenState, tokens};

use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::Access;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::excerpt::{quoted, start};

/// Characters of an agent's name.
const AGENT_NAME_MAX: usize = 32;

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

/// Returns the name of an agent, or the id if the agent was removed.
pub fn agent_name(tx: &ReadTx<'_>, id: AgentId) -> Result<String, ironclaw_state::Error> {
    Ok(name_or_id(agent_by_id(tx, id)?.map(|agent| agent.name), id))
}

pub(crate) fn unknown_agent(name_or_id: &str) -> Refusal {
    let hint = "`ironctl agent list` lists the agents; `ironctl agent add NAME` makes one";
    Refusal::new(DenialCode::AgentUnknown, format!("there is no agent {}", quoted(name_or_id))).hint(hint)
}

/// The properties of a new agent.
#[derive(Debug, Clone)]
pub struct AgentDraft {
    pub name: String,
    /// Name of its model endpoint; `None` or `default` to follow the default, also after a change of it.
    pub model: Option<String>,
    pub persona: String,
    /// The tools that it may call.
    pub enabled_tools: Vec<String>,
    /// The people who may talk to it.
    pub access: Access,
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
    let shown = start(name, AGENT_NAME_MAX);
    let refusal = Refusal::new(DenialCode::AgentName, format!("{shown:?} is not a valid agent name"));
    Err(refusal.hint("use 1 to 32 characters of a-z, 0-9 and -, starting with a letter"))
}
