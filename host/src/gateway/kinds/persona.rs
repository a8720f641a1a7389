//! The kind `persona`: the text that describes an agent to itself.

use super::{Apply, Check, CheckContext, Page, Preparation, Prepared, Properties, Scope, concerned};
use crate::gateway::HostPolicy;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::refusal::Denied;
use crate::registry::{self, Agent};
use ironclaw_contract::seam::change::{Change, Persona};
use ironclaw_state::{ReadTx, WriteTx};
use serde_json::{Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Agent, begins_anew: true };

impl Check for Persona {
    fn complete(&self, _tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        Ok(Change::Persona(self.clone()))
    }

    fn current(&self, _tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        Ok(agent.map_or(Value::Null, |agent| json!(Self { instructions: agent.persona.clone() })))
    }

    fn facts(&self, _tx: &ReadTx<'_>, _grounds: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({}))
    }

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        Some(json!(self))
    }
}

impl Page for Persona {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let text = &self.instructions;
        let now = page.before.get("instructions").and_then(Value::as_str).map_or(0, str::len);
        if text.is_empty() {
            page.add(format!("Remove the persona of {agent}: {now} -> 0 bytes."));
            return page.add("The agent has no instructions of its own then, in every conversation.".to_owned());
        }
        page.add(format!("Replace the persona of {agent}: {now} -> {} bytes ({}).", text.len(), lines_of(text)));
        page.add("The agent follows this text. Takes effect in every conversation.".to_owned());
    }
}

impl Apply for Persona {
    fn preparation(&self) -> Preparation<'_> {
        Preparation::Nothing
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        registry::set_persona(tx, approved, &agent, &self.instructions)?;
        Ok(format!("persona of agent {} replaced", agent.name))
    }
}

/// Returns `1 line`, `2 lines` and so on.
pub(super) fn lines_of(text: &str) -> String {
    match text.split('\n').count() {
        1 => "1 line".to_owned(),
        many => format!("{many} lines"),
    }
}
