//! The kind `mcp_confirm`: the tools of an MCP server as it lists them, with the rules for their calls.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::live_settings::HostPolicy;
use crate::registry::mcp::listing::Listing;
use crate::registry::{Agent, mcp, tools};
use ironclaw_contract::seam::change::{Change, McpConfirm};
use ironclaw_judge::manifest::{Manifest, Rule, server};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::Denied;
use serde_json::{Value, json};
use std::borrow::Cow;

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::Host, restarts_sessions: false };

impl Check for McpConfirm {
    fn complete(&self, tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        mcp::confirmable(tx, self)?;
        Ok(Change::McpConfirm(self.clone()))
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
        let tools = mcp::tools(&self.server, &seen, self.manifest.as_deref()).unwrap_or_default();
        let tools = tools.for_network(has_network);
        let unfit: Vec<Value> = tools.unfit.iter().map(|one| json!({ "name": one.name, "why": one.why })).collect();
        let tools: Vec<Value> = tools
            .manifests
            .iter()
            .map(|(tool, manifest)| describe_tool(tool, manifest, &seen, confirmed.as_ref()))
            .collect();
        let gone = confirmed.iter().flat_map(Listing::names).filter(|tool| !seen.has(tool));
        let mut facts = json!({
            "at": server.place(),
            "instructions": seen.instructions,
            "tools": tools,
            "gone": gone.collect::<Vec<_>>(),
            "agents": mcp::holders(tx, &self.server)?.into_iter().map(|held| held.agent_name).collect::<Vec<_>>(),
        });
        if !unfit.is_empty() {
            facts["unfit"] = json!(unfit);
        }
        if !seen.remarks.is_empty() {
            facts["remarks"] = json!(seen.remarks);
        }
        Ok(facts)
    }
}

/// Returns a tool with its rules, and how its listing differs from the confirmed one.
fn describe_tool(tool: &str, manifest: &Manifest, seen: &Listing, confirmed: Option<&Listing>) -> Value {
    let fields = tools::fields(manifest).into_iter();
    let arguments = fields.map(|(name, argument)| format!("{name}: {}", argument.words()));
    json!({
        "name": tool,
        "offered_as": manifest.name,
        "description": seen.description(tool),
        "class": manifest.class.name(),
        "always_ask": manifest.always_ask,
        "rules": arguments.collect::<Vec<_>>(),
        "loosened": server::loosenings(manifest),
        "floors": manifest.arguments.values().filter(|argument| argument.rule == Rule::Floor).count(),
        "listed": seen.beside(confirmed, tool),
    })
}

impl Page for McpConfirm {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let server = page.show(&self.server);
        let at = page.facts["at"].as_str().unwrap_or_default().to_owned();
        page.add(format!("Accept these tools of MCP server {server} ({}) as it lists them now:", page.show(&at)));
        let tools = page.facts["tools"].as_array().cloned().unwrap_or_default();
        for tool in &tools {
            put_tool(page, tool);
        }
        for tool in page.facts["unfit"].as_array().cloned().unwrap_or_default() {
            let (name, why) = (text_of(&tool["name"]), text_of(&tool["why"]["words"]));
            page.add(format!("NOT accepted is {}, which no agent can get: {}.", page.show(name), page.show(why)));
        }
        for remark in Effects::texts(&page.facts["remarks"]) {
            page.add(format!("The listing is perhaps not whole: {}.", page.show(remark)));
        }
        let gone = Effects::texts(&page.facts["gone"]);
        if !gone.is_empty() {
            page.add(format!("It no longer lists: {}.", page.list(gone)));
        }
        page.add("A call to a tool that the server changes later is refused until people confirm it again.".to_owned());
        let agents = Effects::texts(&page.facts["agents"]);
        if agents.is_empty() {
            page.add("No agent can use it yet. That needs another change.".to_owned());
        } else {
            page.warn(format!("These agents may call tools of it at once: {}.", page.list(agents)));
        }
        page.warn("The SERVER wrote the names, and the descriptions below; a model reads them.".to_owned());
    }

    /// Leaves out what the sentences have: the address, the agents, what is gone or unfit, remarks, and the rules of each tool.
    fn explained<'f>(&self, facts: &'f Value) -> Cow<'f, Value> {
        let mut rest = facts.clone();
        if let Some(fields) = rest.as_object_mut() {
            fields.retain(|name, _| !["at", "agents", "gone", "unfit", "remarks"].contains(&name.as_str()));
        }
        let tools = rest.get_mut("tools").and_then(Value::as_array_mut);
        for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
            tool.retain(|name, _| !["class", "always_ask", "rules", "loosened", "floors"].contains(&name.as_str()));
        }
        Cow::Owned(rest)
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn put_tool(page: &mut Effects<'_>, tool: &Value) {
    let text = |field: &str| tool[field].as_str().unwrap_or_default().to_owned();
    let name = page.show(&text("name"));
    let rules = match Effects::texts(&tool["rules"]) {
        rules if rules.is_empty() => "no arguments".to_owned(),
        rules => format!("arguments {}", page.list(rules)),
    };
    let asks = if tool["always_ask"] == true { ", every call asks a person" } else { "" };
    page.add(format!("Tool {name}, class {}{asks}, {rules}.", text("class")));
    match text("listed").as_str() {
        "changed" => page.warn(format!("Tool {name} DIFFERS from the one that people confirmed.")),
        "new" if !page.before.is_null() => page.warn(format!("Tool {name} is NEW.")),
        _ => {}
    }
    let loosened = Effects::texts(&tool["loosened"]);
    if !loosened.is_empty() {
        page.warn(format!("LOOSENED for {name}: {}.", page.list(loosened)));
    }
}

impl Apply for McpConfirm {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let losing = writers::mcp::confirm(tx, approved, self)?;
        let lost = super::mcp_register::lost(losing);
        Ok(format!("the tools of MCP server {} are confirmed{lost}", self.server))
    }
}
