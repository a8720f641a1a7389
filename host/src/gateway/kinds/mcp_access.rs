//! The kind `mcp_access`: the tools of an MCP server that an agent may call.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope};
use super::kind::{concerned, gone, incomplete, listed};
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::live_settings::HostPolicy;
use crate::registry::{Agent, mcp};
use ironclaw_contract::seam::change::{Change, McpAccess};
use ironclaw_contract::seam::limits::ENTRIES_MAX;
use ironclaw_judge::manifest::server::Tools;
use ironclaw_operator::{Bound, DenialCode, McpUnfit};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::excerpt::quoted;
use ironclaw_text::visible;
use serde_json::{Map, Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: false };

impl Check for McpAccess {
    /// Writes all tools out. Without a list they are all confirmed tools; an empty list removes the access.
    fn complete(&self, tx: &ReadTx<'_>, _context: &CheckContext<'_>) -> Result<Change, Denied> {
        let Self { server, tools } = self.clone();
        let Some(found) = mcp::find(tx, &server)? else { return Err(mcp::unknown(&server).into()) };
        if tools.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Change::McpAccess(Self { server, tools }));
        }
        let confirmed = found.confirmed_tools()?;
        if confirmed.manifests.is_empty() {
            let message = format!("people did not confirm the tools of MCP server {server}");
            let refusal = Refusal::new(DenialCode::McpUnconfirmed, message);
            return Err(refusal.hint(format!("an operator confirms them: `ironctl mcp show {server}`")).into());
        }
        let mut tools = tools.unwrap_or_else(|| confirmed.manifests.keys().cloned().collect());
        if let Some(unknown) = tools.iter().find(|tool| !confirmed.manifests.contains_key(*tool)) {
            let message = match unfit(&found, &confirmed, unknown)? {
                Some(why) => format!(
                    "no agent can get the tool {} of MCP server {server}: {}",
                    quoted(unknown),
                    visible::line(&why.words).text
                ),
                None => format!("MCP server {server} has no confirmed tool {}", quoted(unknown)),
            };
            let known: Vec<&str> = confirmed.manifests.keys().map(String::as_str).collect();
            let refusal = Refusal::new(DenialCode::McpToolUnknown, message);
            return Err(refusal.hint(format!("it has {}", known.join(", "))).into());
        }
        if tools.len() > ENTRIES_MAX {
            let name = format!("tools of MCP server {server} in one grant");
            let bound = Bound::new(name, ENTRIES_MAX, tools.len(), "name the tools that the agent needs with --tools");
            return Err(Refusal::over(DenialCode::McpToolsTooMany, bound).into());
        }
        tools.sort();
        Ok(Change::McpAccess(Self { server, tools: Some(tools) }))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let had = mcp::grants_of(tx, agent.id)?.into_iter().find(|grant| grant.server == self.server);
        let tools = had.map(|grant| grant.tools).unwrap_or_default();
        Ok(json!(Self { server: self.server.clone(), tools: Some(tools) }))
    }

    /// Returns the server's place, its confirmed tools with their classes, and the names of the secrets that it gets.
    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let Some(server) = mcp::find(tx, &self.server)? else {
            return Ok(json!({ "servers": { self.server.as_str(): Value::Null } }));
        };
        let mut tools = Map::new();
        if let Some(confirmed) = server.confirmed()?
            && let Ok(known) = mcp::tools(&self.server, &confirmed, server.manifest.as_deref())
        {
            tools.extend(known.manifests.into_iter().map(|(tool, manifest)| (tool, manifest.class.name().into())));
        }
        let mut facts = json!({
            "at": server.place(),
            "is_local": server.described.url.is_none(),
            "tools": tools,
            "headers": server.described.headers,
        });
        if let Some(oauth) = &server.described.oauth {
            facts["issuer"] = json!(mcp::issuer::name_in(&oauth.issuer));
        }
        Ok(json!({ "servers": { self.server.as_str(): facts } }))
    }
}

/// Returns the reason why no agent can get a tool of the confirmed listing, or of the last one.
fn unfit(server: &mcp::Server, confirmed: &Tools, tool: &str) -> Result<Option<McpUnfit>, ironclaw_state::Error> {
    if let Some(why) = confirmed.unfit(tool) {
        return Ok(Some(why.clone()));
    }
    Ok(server.seen()?.and_then(|seen| seen.strictest(server.name()).unfit(tool).cloned()))
}

impl Page for McpAccess {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let server = page.show(&self.server);
        let had = Effects::texts(&page.before["tools"]);
        match &self.tools {
            Some(tools) if tools.is_empty() => {
                return page
                    .add(format!("Take all tools of MCP server {server} away from {agent}: {}.", page.list(had)));
            }
            Some(tools) => {
                page.add(format!(
                    "Let {agent} call exactly these tools of MCP server {server}: {}.",
                    page.list(tools.iter().map(String::as_str))
                ));
                let lost: Vec<&str> =
                    had.iter().copied().filter(|tool| !tools.iter().any(|kept| kept == tool)).collect();
                page.add(format!("This list replaces its present tools of that server: {}.", page.list(had)));
                if !lost.is_empty() {
                    page.add(format!("It LOSES: {}.", page.list(lost)));
                }
            }
            None => page.add(format!("Let {agent} call every confirmed tool of MCP server {server}.")),
        }
        let facts = &page.facts["servers"][self.server.as_str()];
        let classes: Vec<String> = self
            .tools
            .iter()
            .flatten()
            .map(|tool| {
                format!("{} ({})", page.show(tool), facts["tools"][tool.as_str()].as_str().unwrap_or("unknown"))
            })
            .collect();
        page.add(format!("Their classes: {}. Each call is judged, and can ask a person.", classes.join(", ")));
        let at = page.show(facts["at"].as_str().unwrap_or_default());
        match facts["is_local"] == true {
            true => page.warn(format!("The content of each call goes to the program {at} in its jail on this host.")),
            false => page.warn(format!("Data LEAVES THIS HOST with each call: its content goes to {at}.")),
        }
        let headers = page.facts["servers"][self.server.as_str()]["headers"].as_array();
        let secrets: Vec<&str> = headers.into_iter().flatten().filter_map(|header| header["secret"].as_str()).collect();
        if !secrets.is_empty() {
            page.warn(format!("Each call carries these SECRETS of this host to the server: {}.", page.list(secrets)));
        }
        if let Some(issuer) = page.facts["servers"][self.server.as_str()]["issuer"].as_str() {
            let issuer = page.show(issuer);
            page.warn(format!(
                "Each call carries the token of a LOGIN at {issuer}: it has the rights of that person there."
            ));
        }
        page.warn(
            "The answers of the server come back to the model, and can contain INSTRUCTIONS to the agent.".to_owned(),
        );
    }
}

impl Apply for McpAccess {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let Self { server, tools } = self;
        let agent = concerned(tx, approved)?;
        let tools = tools.as_ref().ok_or_else(incomplete)?;
        if mcp::find(tx, server)?.is_none() {
            return Err(gone(format!("MCP server {server}")).into());
        }
        writers::mcp::grant(tx, approved, agent.id, server, tools)?;
        Ok(format!("agent {} has {} of MCP server {server}", agent.name, listed(tools, "no tool")))
    }
}
