//! The kind `persona`: the text that describes an agent to itself.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope, concerned};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::Agent;
use crate::registry::live_settings::HostPolicy;
use ironclaw_contract::seam::change::{Change, Persona};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Denied;
use ironclaw_text::diff::{self, LineMark};
use serde_json::{Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Agent, restarts_sessions: true };

impl Check for Persona {
    fn complete(&self, _tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        Ok(Change::Persona(self.clone()))
    }

    fn current(&self, _tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        Ok(agent.map_or(Value::Null, |agent| json!(Self { instructions: agent.persona.clone() })))
    }

    fn facts(&self, _tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({}))
    }
}

impl Page for Persona {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let text = &self.instructions;
        let now = page.before.get("instructions").and_then(Value::as_str).unwrap_or_default();
        match (now.is_empty(), text.is_empty()) {
            (_, true) => {
                page.add(format!("Remove the persona of {agent}: {}.", line_difference(now, text)));
                page.add("The agent then has no instructions of its own.".to_owned());
            }
            (true, false) => page.add(format!("Set the persona of {agent}: {}.", line_difference(now, text))),
            (false, false) => page.add(format!("Replace the persona of {agent}: {}.", line_difference(now, text))),
        }
        if !text.is_empty() {
            page.add("The agent follows the new text.".to_owned());
        }
        page.add(
            "The change takes effect with the next request to the model, in every conversation, also in running ones."
                .to_owned(),
        );
    }
}

impl Apply for Persona {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        writers::agents::set_persona(tx, approved, &agent, &self.instructions)?;
        Ok(format!("persona of agent {} replaced", agent.name))
    }
}

/// Returns the number of lines of a text that are removed and added.
fn line_difference(now: &str, then: &str) -> String {
    let lines = |text: &str| -> Vec<String> {
        if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() }
    };
    let fates: Vec<LineMark> = diff::lines(&lines(now), &lines(then)).into_iter().map(|(fate, _)| fate).collect();
    let count = |wanted: LineMark| match fates.iter().filter(|fate| **fate == wanted).count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    };
    match (now.is_empty(), then.is_empty()) {
        (true, _) => format!("{} added", count(LineMark::Added)),
        (false, true) => format!("{} removed", count(LineMark::Removed)),
        (false, false) => format!("{} removed, {} added", count(LineMark::Removed), count(LineMark::Added)),
    }
}
