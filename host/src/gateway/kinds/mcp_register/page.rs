//! The lines on the review page about an MCP server for the catalogue.

use super::super::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::McpRegister;
use serde_json::Value;

impl Page for McpRegister {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let Self { name, url, tools, headers } = self;
        let before = page.before;
        let (name, url) = (page.show(name), page.show(url));
        match before.is_null() {
            true => page.add(format!("Add MCP server {name} at {url} to the catalogue of this host.")),
            false => {
                let was = before["url"].as_str().unwrap_or_default();
                let at = if was == self.url { "as now".to_owned() } else { format!("now: {}", page.show(was)) };
                page.add(format!("Replace MCP server {name} in the catalogue of this host."));
                page.warn(format!("MCP server {name} exists and is REPLACED: its address becomes {url} ({at})."));
            }
        }
        let declared = page.list(tools.iter().map(|tool| tool.name.as_str()));
        page.add(format!("Tools of the server: {declared}."));
        put_holders(page, &name, !headers.is_empty());
        for header in headers {
            let (header, secret) = (page.show(&header.name), page.show(&header.secret));
            page.warn(format!("The SECRET {secret} goes to {url} with every request, in the header {header}."));
        }
    }
}

/// Describes the effect on the agents that have tools of the server now.
fn put_holders(page: &mut Effects<'_>, server: &str, has_secrets: bool) {
    let mut is_used = false;
    for (agent, grant) in page.facts["grants"].as_object().into_iter().flatten() {
        let tools = |of: &str| -> Vec<String> {
            grant[of].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (has, keeps) = (tools("has"), tools("keeps"));
        let lost = has.iter().filter(|tool| !keeps.contains(tool)).map(String::as_str);
        let (agent, lost) = (page.named(grant["agent"].as_str().unwrap_or_default(), agent), page.list(lost));
        if keeps.is_empty() {
            page.add(format!("Agent {agent} loses all its tools of {server}: {lost}."));
            continue;
        }
        is_used = true;
        let keeps = page.list(keeps.iter().map(String::as_str));
        let sent = if has_secrets { "with the secrets named here" } else { "without a secret" };
        page.warn(format!(
            "Agent {agent} KEEPS these tools of {server}: {keeps} (it loses: {lost}), and its requests then go to this address \
             {sent}."
        ));
    }
    if !is_used {
        page.add("No agent can use it yet. That needs another change.".to_owned());
    }
}
