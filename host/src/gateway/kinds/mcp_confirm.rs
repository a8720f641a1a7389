//! The kind `mcp_confirm`: the tools of an MCP server as it lists them, with the rules for their calls.

mod own_text;
mod page;

use super::kind::{Apply, Check, CheckContext, Prepared, Properties, Scope};
use super::mounts::add_known_since;
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::registry::live_settings::HostPolicy;
use crate::registry::mcp::listing::Listing;
use crate::registry::mcp::{Likeness, Proposed};
use crate::registry::{Agent, mcp, tools};
use ironclaw_contract::seam::change::{Change, McpConfirm};
use ironclaw_judge::manifest::server::{self, Loosening, Tools};
use ironclaw_judge::manifest::{self, Manifest, text};
use ironclaw_operator::{MCP_EFFECT, McpListed, ToolArgument};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Denied;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, restarts_sessions: false };

/// The reason of a looser part that the host did not propose.
const CHOSEN: &str = "the request chose it, and the host did not propose it";

impl Check for McpConfirm {
    fn complete(&self, tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        mcp::confirmable(tx, self)?;
        // One form of each manifest, without comments: the page compares the fields.
        let manifest = self.manifest.as_deref().and_then(|given| manifest::parse(given).ok());
        let manifest = manifest.map(|manifests| text::to_toml(&manifests)).filter(|text| !text.is_empty());
        Ok(Change::McpConfirm(Self { manifest, ..self.clone() }))
    }

    fn current(&self, tx: &ReadTx<'_>, _agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(server) = mcp::find(tx, &self.server)? else { return Ok(Value::Null) };
        let Some(confirmed) = server.confirmed()? else { return Ok(Value::Null) };
        Ok(json!(Self { server: self.server.clone(), digest: confirmed.digest(), manifest: server.manifest }))
    }

    /// Returns the tools with their rules, what the server says about itself, and the agents that may call it.
    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let Some(server) = mcp::find(tx, &self.server)? else { return Ok(json!({})) };
        let (seen, confirmed) = (server.seen()?, server.confirmed()?);
        let Some(seen) = seen.filter(|seen| seen.digest() == self.digest) else { return Ok(json!({})) };
        let has_network = mcp::Place::for_description(&server.described).has_network();
        let proposed = mcp::proposed(&server, &seen, confirmed.as_ref());
        let Tools { manifests, unfit } = mcp::tools(&self.server, &seen, self.manifest.as_deref()).unwrap_or_default();
        let (held, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            manifests.into_iter().partition(|(tool, manifest)| proposed.is_held(tool, manifest));
        let others = Tools { manifests: others, unfit }.for_network(has_network);
        let described = others.manifests.iter().map(|(tool, manifest)| {
            let listed = seen.beside(confirmed.as_ref(), tool);
            describe_tool(tool, manifest, &seen, listed, &proposed)
        });
        let described: Vec<Value> = described.collect();
        let unfit: Vec<Value> = others.unfit.iter().map(|one| json!({ "name": one.name, "why": one.why })).collect();
        let gone = confirmed.iter().flat_map(Listing::names).filter(|tool| !seen.has(tool));
        let mut facts = json!({
            "at": server.place(),
            "instructions": seen.instructions,
            "has_network": has_network,
            "tools": described,
            "held": held.keys().collect::<Vec<_>>(),
            "gone": gone.collect::<Vec<_>>(),
            "agents": mcp::holders(tx, &self.server)?.into_iter().map(|held| held.agent_name).collect::<Vec<_>>(),
        });
        match proposed.likeness() {
            Likeness::Known(template) => facts["template"] = json!(template.name()),
            Likeness::LooksLike(template) => facts["looks_like"] = json!(template.name()),
            Likeness::Unknown => {}
        }
        if others.manifests.values().any(|manifest| !manifest.mine.is_empty()) {
            add_known_since(tx, &mut facts)?;
        }
        if !unfit.is_empty() {
            facts["unfit"] = json!(unfit);
        }
        if !seen.remarks.is_empty() {
            facts["remarks"] = json!(seen.remarks);
        }
        Ok(facts)
    }
}

/// Returns the rule of an argument in words for people: `control email, leaves`.
fn rule_words(argument: &ToolArgument) -> String {
    let words = ToolArgument { outward: false, ..argument.clone() }.words();
    let words = words.strip_prefix("floor").map_or_else(|| words.clone(), |rest| format!("control{rest}"));
    if argument.outward { format!("{words}, leaves") } else { words }
}

/// Returns a tool with its rules, why they are looser than the strictest, and how its listing differs from the confirmed one.
fn describe_tool(tool: &str, manifest: &Manifest, seen: &Listing, listed: McpListed, proposed: &Proposed<'_>) -> Value {
    let fields = tools::fields(manifest).into_iter();
    let arguments: Map<String, Value> = fields.map(|(name, argument)| (name, json!(rule_words(&argument)))).collect();
    let mut described = json!({
        "name": tool,
        "offered_as": manifest.name,
        "description": seen.description(tool),
        "class": manifest.class.name(),
        "always_ask": manifest.always_ask,
        "arguments": arguments,
        "looser": looser_parts(tool, manifest, proposed),
        "listed": listed,
    });
    let shown_as = Some(&manifest.effect).filter(|effect| *effect != MCP_EFFECT);
    if let Some(effect) = shown_as {
        described["effect"] = json!(effect);
    }
    if !manifest.also.is_empty() {
        described["also"] = json!(manifest.also);
    }
    if !manifest.mine.is_empty() {
        described["mine"] = json!(manifest.mine);
    }
    described
}

/// Returns the parts of a manifest that are looser than the strictest, each with its reason: `class`, the rules by their argument, and others
/// in words.
fn looser_parts(tool: &str, manifest: &Manifest, proposed: &Proposed<'_>) -> Value {
    let (mut class, mut rules, mut others) = (Value::Null, Map::new(), Map::new());
    for part in server::loosenings(manifest) {
        let because = json!(proposed.reason(tool, &part).unwrap_or(CHOSEN));
        match part {
            Loosening::Class(_) => class = because,
            Loosening::Rule { argument, rule: _ } => drop(rules.insert(argument, because)),
            Loosening::Needs { .. } | Loosening::Reversible | Loosening::Result { .. } | Loosening::Own { .. } => {
                others.insert(part.to_string(), because);
            }
        }
    }
    json!({ "class": class, "rules": rules, "others": others })
}

impl Apply for McpConfirm {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let mine = own_text::declared(tx, approved, self)?;
        let losing = writers::mcp::confirm(tx, approved, self, &mine)?;
        let lost = super::mcp_register::lost(losing);
        Ok(format!("the tools of MCP server {} are confirmed{lost}", self.server))
    }
}
