//! The kind `packages`: software in the jail of an agent.

use super::kind::{Apply, Check, CheckContext, Page, Preparation, Prepared, Properties, Scope, concerned, listed};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::reach::packages::{self, Layer, browser};
use crate::registry::live_settings::HostPolicy;
use crate::registry::{Agent, software};
use ironclaw_contract::seam::change::{Change, Packages};
use ironclaw_jail::browser::SHARED_MEMORY_ROOM;
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Map, Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };

/// Fetched packages that the outcome names. The digest of the layer covers all of them.
const FETCHED_SHOWN_MAX: usize = 20;

impl Check for Packages {
    fn complete(&self, _tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        let mut wanted = self.clone();
        wanted.apt.sort();
        wanted.npm.sort();
        wanted.pypi.sort();
        match packages::refused(&context.host_policy.packages, &wanted) {
            Some(refusal) => Err(refusal.into()),
            None => Ok(Change::Packages(wanted)),
        }
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        Ok(json!(software::for_agent(tx, agent.id)?.map(|software| software.packages).unwrap_or_default()))
    }

    fn facts(&self, _tx: &ReadTx<'_>, host_policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({ "clients": clients(&host_policy.packages, self) }))
    }

    fn after(&self, payload: &Value, _agent: Option<&Agent>) -> Option<Value> {
        // The same names again fetch the versions of today, or repair a damaged layer.
        self.is_empty().then(|| payload.clone())
    }
}

/// Returns the programs that fetch the software, with the sources that the settings name.
pub(super) fn clients(config: &packages::Config, wanted: &Packages) -> Map<String, Value> {
    let Packages { apt, npm, pypi } = wanted;
    let sources = config.apt_sources.as_ref().map(|path| path.display().to_string());
    let of_apt = json!({ "client": config.apt().display().to_string(), "sources": sources });
    let of_npm = json!({ "client": config.npm().display().to_string(), "registry": config.npm_registry });
    let of_pypi = json!({ "client": config.pip().display().to_string(), "index": config.pypi_index });
    let asked =
        [("apt", of_apt, !apt.is_empty()), ("npm", of_npm, !npm.is_empty()), ("pypi", of_pypi, !pypi.is_empty())];
    asked.into_iter().filter(|(_, _, asked)| *asked).map(|(of, client, _)| (of.to_owned(), client)).collect()
}

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
        put_browser(page, self, "the jail of its commands with a network");
        put_clients(page);
        put_publishers(page, "The agent can use all of them.");
    }
}

/// Returns the names for each package manager: those for apt and npm always, those for pypi if there are any.
pub(super) fn put_names(page: &Effects<'_>, packages: &Packages) -> String {
    let list = |names: &[String]| page.list(names.iter().map(String::as_str));
    let Packages { apt, npm, pypi } = packages;
    let of_pypi = if pypi.is_empty() { String::new() } else { format!("; pypi: {}", list(pypi)) };
    format!("apt: {}; npm: {}{of_pypi}", list(apt), list(npm))
}

/// Describes the programs that fetch the packages, and their sources.
pub(super) fn put_clients(page: &mut Effects<'_>) {
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

/// Describes the jail of a browser, or says that a package lacks one. `place` names the jail.
pub(super) fn put_browser(page: &mut Effects<'_>, packages: &Packages, place: &str) {
    if browser::has(packages) {
        let room = SHARED_MEMORY_ROOM.0 >> 20;
        page.add(format!(
            "A BROWSER is among them: {place} has shared memory of up to {room} MiB, a copy of the description of the processors, the few names of /proc \
             that Chromium needs, and a managed policy with which the browser names each server in clear (EncryptedClientHelloEnabled=false)."
        ));
        page.warn(
            "The browser runs WITHOUT A SANDBOX of its own: a web page that takes it over has everything that this jail has.".to_owned(),
        );
    }
    if let Some(name) = browser::unread(packages) {
        page.warn(format!(
            "REFUSED BROWSER: {name} reads no policy and hides the names of servers, so this host refuses each of its connections. Install chromium."
        ));
    }
    let lacking = browser::without(packages);
    if !lacking.is_empty() {
        let lacking = page.list(lacking);
        page.warn(format!(
            "NO BROWSER: {lacking} starts a browser and does not bring one, and its own download never runs. Install one as a package of apt: chromium."
        ));
    }
}

/// Warns about the publishers of the packages. `use_of_them` says who uses the packages.
pub(super) fn put_publishers(page: &mut Effects<'_>, use_of_them: &str) {
    page.warn(format!(
        "The PUBLISHERS of these packages decide their content: the host fetches the named versions, and otherwise those that the \
         package managers choose at the time of installation, usually the newest. {use_of_them}"
    ));
}

/// Returns the names of the present packages.
fn had(before: &Value) -> Vec<&str> {
    ["apt", "npm", "pypi"].iter().flat_map(|of| Effects::texts(&before[*of])).collect()
}

impl Apply for Packages {
    fn preparation(&self) -> Preparation<'_> {
        if self.is_empty() { Preparation::Nothing } else { Preparation::Layer(self) }
    }

    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        let names: Vec<String> = self.names().cloned().collect();
        match (names.is_empty(), prepared) {
            (true, _) => {
                writers::software::set(tx, approved, agent.id, None)?;
                Ok(format!("agent {} has no software of its own in its jail", agent.name))
            }
            (false, Prepared::Layer(layer)) => {
                writers::software::set(tx, approved, agent.id, Some((self, &layer.digest)))?;
                let fetched = fetched(layer, &names);
                Ok(format!("agent {} has {} in its jail{fetched}", agent.name, listed(&names, "")))
            }
            (false, Prepared::Nothing | Prepared::ConversationsErased) => {
                let message = format!("the software of agent {} was not fetched", agent.name);
                Err(Refusal::new(DenialCode::PackagesNotFetched, message).into())
            }
        }
    }
}

/// Returns whether a requested package, perhaps with a version, has this name.
fn is_of(asked: &str, name: &str) -> bool {
    let rest = asked.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@') || rest.starts_with("=="))
}

/// Returns the fetched versions, requested packages first, and the files that a layer leaves out.
pub(super) fn fetched(layer: &Layer, asked: &[String]) -> String {
    let is_requested = |installed: &&String| {
        installed.rsplit_once('=').is_some_and(|(name, _)| asked.iter().any(|asked| is_of(asked, name)))
    };
    let (first, rest): (Vec<&String>, Vec<&String>) = layer.installed.iter().partition(is_requested);
    let mut shown: Vec<String> = first.into_iter().chain(rest).take(FETCHED_SHOWN_MAX).cloned().collect();
    if layer.installed.len() > shown.len() {
        shown.push(format!("and {} more", layer.installed.len() - shown.len()));
    }
    // The host names a fixed number of places, so the list is short.
    let left_out: Vec<String> = layer.left_out.iter().map(|(place, count)| format!("{count} of {place}")).collect();
    let left_out = match left_out.is_empty() {
        true => String::new(),
        false => format!("; files left out, because they are not below /usr: {}", left_out.join(", ")),
    };
    let behind = match layer.behind.as_slice() {
        [] => String::new(),
        behind => format!("; this machine has programs of the same names, so these are at {}", behind.join(", ")),
    };
    format!(" (fetched: {}{left_out}{behind})", shown.join(", "))
}
