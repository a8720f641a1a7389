//! `ironctl mcp show`: prints all that the host knows about a server.
//!
//! The words of the server come last, each line behind a bar. See [`super::wording`].

use super::wording::{self, name, place};
use super::{manifest, table};
use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{
    AgentMount, McpHolder, McpServer, McpServerHeader, McpServerHost, McpServerLogin, McpServerTool, McpServerVariable,
    routes,
};
use serde_json::json;

pub async fn run(at: &At, server: &str, has_manifest: bool) -> Result<(), Error> {
    let server = at.client()?.call(routes::MCP_SERVER, [&server]).await?;
    if has_manifest {
        let text = manifest::text(&server)?;
        at.out.json(&json!({ "server": server.name, "manifest": text }))?;
        return at.out.part(&text);
    }
    at.out.json(&server)?;
    at.out.table(["SERVER", &server.name], rows(&server))?;
    table::print(at.out, &server)?;
    if let Some(digest) = &server.digest {
        // A table would break the digest in two.
        at.out.line(format!("digest of this listing: {digest}"))?;
    }
    words(at.out, &server)
}

/// Prints one tool of a server, by the name that models see, or by the server, two underscores and its full name.
pub async fn show_tool(at: &At, offered: &str) -> Result<(), Error> {
    let unknown = || {
        let error = Error::failed("tool_unknown", format!("there is no tool {offered:?}"));
        error.hinting("`ironctl tool list` shows the tools of the host, `ironctl mcp show SERVER` those of a server")
    };
    if !offered.contains(SEPARATOR) {
        return Err(unknown());
    }
    let servers = at.client()?.call(routes::MCP_SERVERS, []).await?;
    let is_meant = |server: &McpServer, tool: &McpServerTool| {
        let full_name = format!("{}{SEPARATOR}{}", server.name, tool.name);
        tool.offered_as.as_deref() == Some(offered) || full_name == offered
    };
    let found = servers.iter().find_map(|server| {
        let tool = server.tools.iter().find(|tool| is_meant(server, tool))?;
        Some((server, tool))
    });
    let (server, tool) = found.ok_or_else(unknown)?;
    at.out.json(&json!({ "server": server.name, "tool": tool }))?;
    at.out.line(format!("{offered}: {} of the MCP server {}", name(&tool.name), name(&server.name)))?;
    if let Some(unfit) = &tool.unfit {
        return at.out.line(format!("no agent can get it: {}", wording::prose(&unfit.words)));
    }
    table::print_one(at.out, tool)?;
    let agents: Vec<&str> = server
        .agents
        .iter()
        .filter(|holder| holder.tools.contains(&tool.name))
        .map(|holder| holder.agent.as_str())
        .collect();
    at.out.line(if agents.is_empty() {
        "no agent has it".to_owned()
    } else {
        format!("agents: {}", agents.join(" "))
    })?;
    if !tool.description.is_empty() {
        at.out.line("description by the server:")?;
        quote(at.out, &tool.description)?;
    }
    Ok(())
}

/// Between the server and the tool in the name that models see.
const SEPARATOR: &str = "__";

fn rows(server: &McpServer) -> Vec<[String; 2]> {
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut add = |what: &str, text: String| rows.push([what.to_owned(), text]);
    add("transport", server.transport.to_string());
    add(if server.command.is_empty() { "url" } else { "command" }, place(server));
    if let Some(packages) = &server.packages {
        for (of, names) in [("apt", &packages.apt), ("npm", &packages.npm), ("pypi", &packages.pypi)] {
            if !names.is_empty() {
                add(of, names.join(" "));
            }
        }
        add("layer", packages.layer.to_string());
    }
    for McpServerVariable { variable, secret, text } in &server.environment {
        let secret = secret.as_ref().map(|secret| format!("secret:{secret}"));
        let value = secret.unwrap_or_else(|| format!("text:{}", wording::prose(text.as_deref().unwrap_or_default())));
        add("variable", format!("{variable}={value}"));
    }
    for AgentMount { source, target, read_only, mine: _ } in &server.mounts {
        add("mount", format!("{source} at {target}, {}", if *read_only { "read only" } else { "writable" }));
    }
    for McpServerHost { host, port, upload_bytes_max } in &server.hosts {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        add("host", format!("{host}{port}, up to {upload_bytes_max} bytes in a call"));
    }
    for McpServerHeader { name, secret, scheme } in &server.headers {
        let scheme = scheme.as_ref().map(|scheme| format!("{scheme} ")).unwrap_or_default();
        add("header", format!("{name}: {scheme}secret:{secret}"));
    }
    login(server).into_iter().for_each(|(what, text)| add(what, text));
    add("state", wording::state(server).to_owned());
    for (what, text) in [("failure", &server.failure), ("problem", &server.problem)] {
        if let Some(text) = text {
            add(what, wording::prose(text));
        }
    }
    if let Some(era) = &server.era {
        add("protocol", era.clone());
    }
    let times = [
        ("registered", Some(&server.made_at)),
        ("listed", server.seen_at.as_ref()),
        ("confirmed", server.confirmed_at.as_ref()),
    ];
    for (what, time) in times {
        if let Some(time) = time {
            add(what, clock::date_and_time(time));
        }
    }
    for McpHolder { agent, tools } in &server.agents {
        let tools: Vec<String> = tools.iter().map(|tool| name(tool)).collect();
        add("agent", format!("{agent}: {}", tools.join(" ")));
    }
    rows
}

/// Returns the rows about the login at a server.
fn login(server: &McpServer) -> Vec<(&'static str, String)> {
    let Some(login) = &server.login else { return Vec::new() };
    let McpServerLogin { issuer, scopes, client_id, client_secret, expires_at, reason, .. } = login;
    let mut rows = vec![("issuer", wording::prose(issuer))];
    if login.accepts_unannounced_s256 {
        rows.push(("S256", "people accepted that the issuer does not announce it; the host sends it".to_owned()));
    }
    if !scopes.is_empty() {
        rows.push(("scopes", scopes.join(" ")));
    }
    rows.extend(client_id.clone().map(|client_id| ("client", client_id)));
    rows.extend(client_secret.as_ref().map(|secret| ("client secret", format!("secret:{secret}"))));
    let until = expires_at.as_ref().map(|at| format!("; its token ends at {}", clock::date_and_time(at)));
    let trouble = reason.as_ref().map(|why| format!("; its last renewal failed: {}", wording::prose(why)));
    let active = || format!("active{}{}", until.unwrap_or_default(), trouble.unwrap_or_default());
    rows.push(("login", wording::login_needed(server).unwrap_or_else(active)));
    rows
}

/// Prints the words that the server wrote about itself and its tools.
fn words(out: Output, server: &McpServer) -> Result<(), Error> {
    if let Some(instructions) = &server.instructions {
        out.line("\ninstructions of the server, which no model gets:")?;
        quote(out, instructions)?;
    }
    for tool in server.tools.iter().filter(|tool| !tool.description.is_empty()) {
        let McpServerTool { offered_as, description, .. } = tool;
        let offered = offered_as.as_ref().map(|offered| format!(", for models {}", name(offered))).unwrap_or_default();
        out.line(format!("\ndescription of {} by the server{offered}:", name(&tool.name)))?;
        quote(out, description)?;
    }
    Ok(())
}

fn quote(out: Output, text: &str) -> Result<(), Error> {
    wording::quotation(out, text).into_iter().try_for_each(|line| out.line(line))
}
