//! The lines on the review page about a new agent.

use super::super::kind::Page;
use super::super::{enabled_tools, permissions};
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::CreateAgent;

impl Page for CreateAgent {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let Self { name, persona, enabled_tools, members, wirings } = self;
        page.add(format!("Create an agent with the name {}.", page.show(name)));
        match persona.as_ref().filter(|persona| !persona.instructions.is_empty()) {
            Some(_) => page.add("It follows the persona below.".to_owned()),
            None => page.add("It has no persona.".to_owned()),
        }
        // Not parts of the payload; `gateway::writers::agents::create_agent` sets them.
        page.add("It uses the default model endpoint of this host, and the guard mode enforce.".to_owned());
        page.add(format!("Tools that it may call: {}.", page.list(enabled_tools.iter().map(String::as_str))));
        enabled_tools::warn_of_programs(page, "The new agent", enabled_tools, false);
        let members = members.iter().map(|identity| permissions::person(page, identity)).collect::<Vec<_>>();
        let members = if members.is_empty() { "none".to_owned() } else { members.join(", ") };
        page.add(format!("People who may talk to it, besides owners and admins of this host: {members}."));
        for wiring in wirings {
            wiring.effects("the new agent", page);
        }
    }
}
