//! The lines on the review page about software in a jail.

use super::super::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::Packages;

impl Page for Packages {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let Self { apt, npm } = self;
        if apt.is_empty() && npm.is_empty() {
            return page.say(format!("{agent} would have no software in its jail beside the host's own."));
        }
        page.say(format!(
            "{agent} would have exactly this software in its jail, with whatever it needs: from apt {}; from npm {}.",
            page.list(apt.iter().map(String::as_str)),
            page.list(npm.iter().map(String::as_str))
        ));
        for (of, setting, else_from) in
            [("apt", "sources", "the sources of this machine"), ("npm", "registry", "npm's own registry")]
        {
            let known = &page.facts["clients"][of];
            if let Some(client) = known["client"].as_str() {
                let from = match known[setting].as_str() {
                    Some(named) => format!("the {setting} {} of this host's settings", page.show(named)),
                    None => else_from.to_owned(),
                };
                page.say(format!("What is of {of} would be fetched with {}, from {from}.", page.show(client)));
            }
        }
        page.warn(
            "The publishers of this software decide what comes: it would be the version that is there then. The agent could use all \
             of it."
                .to_owned(),
        );
    }
}
