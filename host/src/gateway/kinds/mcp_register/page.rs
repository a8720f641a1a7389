//! The lines on the review page about an MCP server for the catalogue.

use super::super::Page;
use super::super::mcp_access::NOT_CONNECTED;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::{McpHeader, McpRegister};
use serde_json::{Value, json};

impl Page for McpRegister {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let Self { name, url: _, tools: _, headers } = self;
        let name = page.show(name);
        let is_used = match page.before.is_null() {
            true => {
                put_new(page, self, &name);
                false
            }
            false => {
                put_replaced(page, self, &name);
                put_holders(page, &name)
            }
        };
        if !is_used {
            page.add("No agent can use it yet. That needs another change.".to_owned());
        }
        page.add(NOT_CONNECTED.to_owned());
        put_secrets(page, self, is_used);
        if page.is_by_agent {
            page.warn(match headers.is_empty() {
                true => "The AGENT chose the address: check it.".to_owned(),
                false => "The AGENT chose the address AND the secret: check that this address may get this secret."
                    .to_owned(),
            });
        }
    }
}

fn put_new(page: &mut Effects<'_>, server: &McpRegister, name: &str) {
    page.add(format!("Add MCP server {name} at {} to the catalogue of this host.", page.show(&server.url)));
    page.add(format!("Tools of the server: {}.", page.list(server.tools.iter().map(|tool| tool.name.as_str()))));
}

/// Describes the differences between a known server and its replacement.
fn put_replaced(page: &mut Effects<'_>, server: &McpRegister, name: &str) {
    let was = page.before["url"].as_str().unwrap_or_default();
    page.add(format!("Replace MCP server {name} in the catalogue of this host."));
    let url = page.show(&server.url);
    match was == server.url {
        true => page.add(format!("The address stays {url}.")),
        false => page.warn(format!("The address CHANGES from {} to {url}.", page.show(was))),
    }
    let had: Vec<&str> =
        page.before["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    let has: Vec<&str> = server.tools.iter().map(|tool| tool.name.as_str()).collect();
    let only = |these: &[&str], others: &[&str]| -> Vec<String> {
        these.iter().filter(|tool| !others.contains(tool)).map(|tool| (*tool).to_owned()).collect()
    };
    let (new, lost) = (only(&has, &had), only(&had, &has));
    page.add(format!("Tools of the server: {}.", page.list(has)));
    for (words, tools) in [("NEW tools", new), ("Tools that are REMOVED", lost)] {
        if !tools.is_empty() {
            page.add(format!("{words}: {}.", page.list(tools.iter().map(String::as_str))));
        }
    }
    let gone = page.before["headers"].as_array().into_iter().flatten();
    let gone = gone.filter_map(|header| header["secret"].as_str());
    let gone: Vec<&str> = gone.filter(|old| !server.headers.iter().any(|new| new.secret == *old)).collect();
    if !gone.is_empty() {
        page.add(format!("Its requests no longer carry these secrets: {}.", page.list(gone)));
    }
}

/// Describes the effect on the agents that have tools of the server now; returns whether one of them keeps a tool.
fn put_holders(page: &mut Effects<'_>, server: &str) -> bool {
    let mut is_used = false;
    for (agent, grant) in page.facts["grants"].as_object().into_iter().flatten() {
        let (has, keeps) = (Effects::texts(&grant["has"]), Effects::texts(&grant["keeps"]));
        let lost: Vec<&str> = has.into_iter().filter(|tool| !keeps.contains(tool)).collect();
        let agent = page.named(grant["agent"].as_str().unwrap_or_default(), agent);
        is_used |= !keeps.is_empty();
        let (loses, lost) = (!lost.is_empty(), page.list(lost));
        let (keeps_some, keeps) = (!keeps.is_empty(), page.list(keeps));
        page.add(match (loses, keeps_some) {
            (true, true) => format!("Agent {agent} LOSES tools of {server}: {lost}; it keeps {keeps}."),
            (true, false) => format!("Agent {agent} LOSES all its tools of {server}: {lost}."),
            (false, _) => format!("Agent {agent} keeps its tools of {server}: {keeps}."),
        });
    }
    is_used
}

/// Warns about each secret that requests carry. A secret is as now if the server has the same header and the same address.
fn put_secrets(page: &mut Effects<'_>, server: &McpRegister, is_used: bool) {
    let url = page.show(&server.url);
    let moves = page.before["url"].as_str() != Some(server.url.as_str());
    for header in &server.headers {
        let (name, secret) = (page.show(&header.name), page.show(&header.secret));
        let carries = match is_used {
            true => "every request to",
            false => "once an agent may use the server, every request to",
        };
        page.warn(match (page.before.is_null(), secrets_of(page.before, header), moves) {
            (true, _, _) => format!("SECRET {secret}: {carries} {url} carries it, in the header {name}."),
            (false, SecretNow::Same, false) => {
                format!("As now, secret {secret}: {carries} {url} carries it, in the header {name}.")
            }
            (false, SecretNow::Same, true) => {
                format!("SECRET {secret} goes to ANOTHER address: {carries} {url} carries it, in the header {name}.")
            }
            (false, SecretNow::Other(old), _) => {
                let now = if old.is_empty() { "none".to_owned() } else { page.list(old) };
                format!("ANOTHER SECRET {secret}: {carries} {url} carries it, in the header {name} (before: {now}).")
            }
        });
    }
}

/// The secrets that requests to the server carry now.
enum SecretNow<'a> {
    /// The same header with the same secret.
    Same,
    /// Other ones.
    Other(Vec<&'a str>),
}

fn secrets_of<'a>(before: &'a Value, header: &McpHeader) -> SecretNow<'a> {
    let headers = before["headers"].as_array();
    if headers.into_iter().flatten().any(|old| *old == json!(header)) {
        return SecretNow::Same;
    }
    SecretNow::Other(headers.into_iter().flatten().filter_map(|old| old["secret"].as_str()).collect())
}
