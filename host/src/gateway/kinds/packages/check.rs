//! Checks the software for an agent and the sources of that software.

use super::super::kind::{Check, CheckContext};
use crate::reach::packages;
use crate::registry::live_settings::HostPolicy;
use crate::registry::{Agent, software};
use crate::store::refusal::Denied;
use ironclaw_contract::seam::change::{Change, Packages};
use ironclaw_state::ReadTx;
use serde_json::{Map, Value, json};

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

    fn after(&self, _agent: Option<&Agent>) -> Option<Value> {
        // The same names again fetch the versions of today, or repair a damaged layer.
        self.is_empty().then(|| json!(self))
    }
}

/// Returns the programs that fetch the software, with the sources that the settings name.
pub fn clients(config: &packages::Config, wanted: &Packages) -> Map<String, Value> {
    let Packages { apt, npm, pypi } = wanted;
    let sources = config.apt_sources.as_ref().map(|path| path.display().to_string());
    let of_apt = json!({ "client": config.apt().display().to_string(), "sources": sources });
    let of_npm = json!({ "client": config.npm().display().to_string(), "registry": config.npm_registry });
    let of_pypi = json!({ "client": config.pip().display().to_string(), "index": config.pypi_index });
    let asked =
        [("apt", of_apt, !apt.is_empty()), ("npm", of_npm, !npm.is_empty()), ("pypi", of_pypi, !pypi.is_empty())];
    asked.into_iter().filter(|(_, _, asked)| *asked).map(|(of, client, _)| (of.to_owned(), client)).collect()
}
