//! The lines on the review page about software in a jail.

use super::super::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::Packages;

impl Page for Packages {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let Self { apt, npm } = self;
        if apt.is_empty() && npm.is_empty() {
            page.add(format!("Remove all software that was installed for {agent}."));
            return page.add("Only the software of the host remains in its jail.".to_owned());
        }
        page.add(format!(
            "Install software for {agent}: apt: {}; npm: {}.",
            page.list(apt.iter().map(String::as_str)),
            page.list(npm.iter().map(String::as_str))
        ));
        page.add(
            "Only the jail of the agent gets it. This is the complete list; dependencies are installed too.".to_owned(),
        );
        for (of, setting, default) in
            [("apt", "sources", "the sources of this machine"), ("npm", "registry", "npm's own registry")]
        {
            let known = &page.facts["clients"][of];
            if let Some(client) = known["client"].as_str() {
                let from = match known[setting].as_str() {
                    Some(named) => format!("the {setting} {} of this host's settings", page.show(named)),
                    None => default.to_owned(),
                };
                page.add(format!("Fetch {of} packages with {}, from {from}.", page.show(client)));
            }
        }
        page.warn(
            "The PUBLISHERS of this software decide its content: the host fetches the version of that time, and the agent can use \
             all of it."
                .to_owned(),
        );
    }
}
