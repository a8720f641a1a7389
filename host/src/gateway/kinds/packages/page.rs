//! The lines on the review page about software in a jail.

use super::super::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::Packages;
use serde_json::Value;

impl Page for Packages {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let Self { apt, npm } = self;
        if apt.is_empty() && npm.is_empty() {
            page.add(format!("Remove all packages that were installed for {agent}: {}.", page.list(had(page.before))));
            return page.add("Only the software of this machine remains in its jail.".to_owned());
        }
        page.add(format!(
            "Install software for {agent}: apt: {}; npm: {}.",
            page.list(apt.iter().map(String::as_str)),
            page.list(npm.iter().map(String::as_str))
        ));
        let lost: Vec<&str> = [("apt", apt), ("npm", npm)]
            .into_iter()
            .flat_map(|(of, wanted)| {
                Effects::texts(&page.before[of]).into_iter().filter(move |name| !wanted.iter().any(|kept| kept == name))
            })
            .collect();
        page.add(
            "They are installed in the jail of the agent only, together with the packages that they depend on."
                .to_owned(),
        );
        if !lost.is_empty() {
            page.add(format!("The agent LOSES these packages: {}.", page.list(lost)));
        }
        page.add("No install script of a package runs.".to_owned());
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
            "The PUBLISHERS of these packages decide their content: the host fetches the versions that apt and npm choose at the time \
             of installation, usually the newest. The agent can use all of them."
                .to_owned(),
        );
    }
}

/// Returns the names of the present packages.
fn had(before: &Value) -> Vec<&str> {
    ["apt", "npm"].iter().flat_map(|of| Effects::texts(&before[*of])).collect()
}
