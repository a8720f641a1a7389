//! Gives an agent the layer with its software.

use super::super::kind::{Apply, Preparation, Prepared, concerned, listed};
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::reach::packages::Layer;
use crate::store::refusal::{Denied, Refusal};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::Packages;
use ironclaw_state::WriteTx;

/// Fetched packages that the outcome names. The digest of the layer covers all of them.
const FETCHED_SHOWN_MAX: usize = 20;

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
pub fn fetched(layer: &Layer, asked: &[String]) -> String {
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
    format!(" (fetched: {}{left_out})", shown.join(", "))
}
