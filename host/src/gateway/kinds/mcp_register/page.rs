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
            true => page.say(format!("MCP server {name} at {url} would be known to this host.")),
            false => {
                let was = before["url"].as_str().unwrap_or_default();
                let at = if was == self.url { "as now".to_owned() } else { format!("now: {}", page.show(was)) };
                page.warn(format!(
                    "MCP server {name}, which this host knows already, would be REPLACED: it would be at {url} ({at})."
                ));
            }
        }
        let declared = page.list(tools.iter().map(|tool| tool.name.as_str()));
        page.say(format!("It would have these tools: {declared}."));
        holders(page, &name, !headers.is_empty());
        for header in headers {
            let (header, secret) = (page.show(&header.name), page.show(&header.secret));
            page.warn(format!("Every request to {url} would carry the SECRET {secret}, in the header {header}."));
        }
    }
}

/// Says what it means for the agents that have tools of the server now.
fn holders(page: &mut Effects<'_>, server: &str, is_sent: bool) {
    let mut is_used = false;
    for (agent, grant) in page.facts["grants"].as_object().into_iter().flatten() {
        let tools = |of: &str| -> Vec<String> {
            grant[of].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (has, keeps) = (tools("has"), tools("keeps"));
        let lost = has.iter().filter(|tool| !keeps.contains(tool)).map(String::as_str);
        let (agent, lost) = (page.named(grant["agent"].as_str().unwrap_or_default(), agent), page.list(lost));
        if keeps.is_empty() {
            page.say(format!("Agent {agent} would lose every tool that it has of {server}: {lost}."));
            continue;
        }
        is_used = true;
        let keeps = page.list(keeps.iter().map(String::as_str));
        let sent = if is_sent { "with the secrets that are named below" } else { "without a secret" };
        page.warn(format!(
            "Agent {agent} has tools of {server} and would KEEP these: {keeps}. It would lose: {lost}. From then on its requests \
             would go out as is said here, {sent}."
        ));
    }
    if !is_used {
        page.say("No agent could use it yet: that is a change of its own.".to_owned());
    }
}
