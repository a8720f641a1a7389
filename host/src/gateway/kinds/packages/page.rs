//! The lines on the review page about software in a jail.

use super::super::kind::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::Packages;
use serde_json::Value;

impl Page for Packages {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let Self { apt, npm, pypi } = self;
        if self.is_empty() {
            page.add(format!("Remove all packages that were installed for {agent}: {}.", page.list(had(page.before))));
            return page.add("Only the software of this machine remains in its jail.".to_owned());
        }
        page.add(format!("Install software for {agent}: {}.", put_names(page, self)));
        let lost: Vec<&str> = [("apt", apt), ("npm", npm), ("pypi", pypi)]
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
        put_clients(page);
        put_publishers(page, "The agent can use all of them.");
    }
}

/// Returns the names for each package manager: those for apt and npm always, those for pypi if there are any.
pub fn put_names(page: &Effects<'_>, packages: &Packages) -> String {
    let list = |names: &[String]| page.list(names.iter().map(String::as_str));
    let Packages { apt, npm, pypi } = packages;
    let of_pypi = if pypi.is_empty() { String::new() } else { format!("; pypi: {}", list(pypi)) };
    format!("apt: {}; npm: {}{of_pypi}", list(apt), list(npm))
}

/// Describes the programs that fetch the packages, and their sources.
pub fn put_clients(page: &mut Effects<'_>) {
    page.add("No install script of a package runs.".to_owned());
    for (of, setting, default) in [
        ("apt", "sources", "the sources of this machine"),
        ("npm", "registry", "npm's own registry"),
        ("pypi", "index", "pip's own index"),
    ] {
        let known = &page.facts["clients"][of];
        if let Some(client) = known["client"].as_str() {
            let from = match known[setting].as_str() {
                Some(named) => format!("the {setting} {} of this host's settings", page.show(named)),
                None => default.to_owned(),
            };
            page.add(format!("Fetch {of} packages with {}, from {from}.", page.show(client)));
        }
    }
}

/// Warns about the publishers of the packages. `use_of_them` says who uses the packages.
pub fn put_publishers(page: &mut Effects<'_>, use_of_them: &str) {
    page.warn(format!(
        "The PUBLISHERS of these packages decide their content: the host fetches the named versions, and otherwise those that the \
         package managers choose at the time of installation, usually the newest. {use_of_them}"
    ));
}

/// Returns the names of the present packages.
fn had(before: &Value) -> Vec<&str> {
    ["apt", "npm", "pypi"].iter().flat_map(|of| Effects::texts(&before[*of])).collect()
}
