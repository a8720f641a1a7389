//! Creates an agent with the capabilities that the change names.

use super::super::kind::{Apply, Preparation, Prepared};
use super::super::{identities, wiring};
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::registry::AgentDraft;
use crate::store::refusal::Denied;
use ironclaw_contract::seam::change::{Access, AgentRole, CreateAgent};
use ironclaw_state::WriteTx;

impl Apply for CreateAgent {
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let Self { name, persona, enabled_tools, members, wirings } = self;
        let draft = AgentDraft {
            name: name.clone(),
            model: None,
            persona: persona.as_ref().map(|persona| persona.instructions.clone()).unwrap_or_default(),
            enabled_tools: enabled_tools.clone(),
            access: Access::Members,
        };
        let agent = writers::agents::create_agent(tx, approved, draft)?;
        for identity in members {
            let person = identities::person(tx, identity)?;
            writers::roles::set(tx, approved, agent.id, person.id, Some(AgentRole::Member))?;
        }
        for wanted in wirings {
            wiring::wire(tx, approved, &agent, wanted)?;
        }
        Ok(format!("agent {} ({}) created", agent.name, agent.id))
    }
}
