//! The lines on the review page about a new agent.

use super::super::{Page, enabled_tools, persona};
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::CreateAgent;

impl Page for CreateAgent {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let Self { name, persona, enabled_tools, members, wirings } = self;
        let agent = format!("The new agent {}", page.show(name));
        page.say(format!("A new agent {} would be made.", page.show(name)));
        match persona.as_ref().filter(|persona| !persona.instructions.is_empty()) {
            Some(persona) => page.say(format!(
                "It would be told about itself what stands below, {} and {} bytes.",
                persona::lines_of(&persona.instructions),
                persona.instructions.len()
            )),
            None => page.say("It would be told nothing about itself.".to_owned()),
        }
        page.say(format!("It would be allowed to call: {}.", page.list(enabled_tools.iter().map(String::as_str))));
        enabled_tools::run_command(page, &agent, enabled_tools, false);
        let members = page.list(members.iter().map(String::as_str));
        page.say(format!("Beside owners and admins of this host, these could talk to it: {members}."));
        for wiring in wirings {
            wiring.effects(&agent, page);
        }
    }
}
