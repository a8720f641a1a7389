//! The lines on the review page about a new agent.

use super::super::{Page, enabled_tools, persona};
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::CreateAgent;

impl Page for CreateAgent {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let Self { name, persona, enabled_tools, members, wirings } = self;
        page.add(format!("Create an agent with the name {}.", page.show(name)));
        match persona.as_ref().filter(|persona| !persona.instructions.is_empty()) {
            Some(persona) => page.add(format!(
                "It follows the persona below: {} bytes ({}).",
                persona.instructions.len(),
                persona::lines_of(&persona.instructions)
            )),
            None => page.add("It has no persona.".to_owned()),
        }
        page.add(format!("Tools that it may call: {}.", page.list(enabled_tools.iter().map(String::as_str))));
        enabled_tools::warn_of_programs(page, "The new agent", enabled_tools, false);
        let members = page.list(members.iter().map(String::as_str));
        page.add(format!("People who may talk to it, beside owners and admins of this host: {members}."));
        for wiring in wirings {
            wiring.effects("the new agent", page);
        }
    }
}
