//! The lines on the review page about an MCP server for the catalogue.

use super::super::kind::Page;
use super::super::packages::{put_browser, put_clients, put_names, put_publishers};
use super::super::{local_network, mounts};
use crate::gateway::review_page::effects::Effects;
use crate::registry::mcp;
use crate::registry::mcp::issuer::name_in;
use ironclaw_contract::seam::change::{McpHeader, McpRegister, Packages};
use ironclaw_judge::egress::PLAIN;
use serde_json::{Value, json};

impl Page for McpRegister {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let name = page.show(&self.name);
        if self.remove {
            page.add(format!("Remove MCP server {name} from the catalogue of this host."));
            put_holders(page, &name);
            return;
        }
        match page.before.is_null() {
            true => page.add(format!("Add MCP server {name} to the catalogue of this host.")),
            false => put_replaced(page, self, &name),
        }
        put_place(page, self);
        match self.tools.as_slice() {
            [] => page.add("The host asks it for its tools. People confirm them with another change.".to_owned()),
            tools => page.add(format!(
                "The host asks it for its tools and takes only these: {}. People confirm them with another change.",
                page.list(tools.iter().map(|tool| tool.name.as_str()))
            )),
        }
        let is_used = put_holders(page, &name);
        if !is_used {
            page.add("No agent can use it yet. That needs another change.".to_owned());
        }
        put_secrets(page, self);
        if page.is_by_agent {
            let has_secret = mcp::secrets_of(self).next().is_some();
            let words = match (&self.url, has_secret) {
                (None, true) => {
                    "The AGENT chose the command AND the secret: check that this program may get this secret."
                }
                (None, false) => "The AGENT chose the command: check it.",
                (Some(_), false) => "The AGENT chose the address: check it.",
                (Some(_), true) => {
                    "The AGENT chose the address AND the secret: check that this address may get this secret."
                }
            };
            page.warn(words.to_owned());
        }
    }
}

/// Describes the place of a server: its address, or its command with what its jail has.
fn put_place(page: &mut Effects<'_>, server: &McpRegister) {
    if let Some(url) = &server.url {
        let shown = page.show(url);
        page.add(format!("It is at {shown}. The host makes each request itself."));
        let secrets: Vec<&str> = mcp::secrets_of(server).collect();
        local_network::put(page, &shown, url.starts_with(PLAIN), &secrets);
        return put_login(page, server);
    }
    let words: Vec<String> = server.command.iter().map(|word| page.show(word)).collect();
    page.add(format!("The host starts this program, with each word as shown: {}.", words.join(" ")));
    let network = if server.hosts.is_empty() { "no network" } else { "no network but these hosts" };
    page.add(format!("It runs in a jail of its own: {network}, no workspace, a directory of its own for its files."));
    put_hosts(page, server);
    if !server.packages.is_empty() {
        let names = put_names(page, &server.packages);
        page.add(format!("Install software in its jail, together with the packages that it depends on: {names}."));
        put_browser(page, &server.packages, "its jail");
        put_clients(page);
        put_publishers(page, "The server is a program of theirs.");
    }
    for one in &server.environment {
        let variable = page.show(&one.variable);
        match (&one.secret, &one.text) {
            (Some(secret), _) => {
                let secret = page.show(secret);
                page.warn(format!("SECRET {secret}: the program gets its value, in the variable {variable}."));
            }
            (None, text) => {
                let text = page.brief(text.as_deref().unwrap_or_default());
                page.add(format!("The program gets the variable {variable} with the text {text}."));
            }
        }
    }
    for mount in &server.mounts {
        let (source, target) = (page.show(&mount.source), page.show(mount.target.as_deref().unwrap_or_default()));
        match mount.read_only {
            Some(false) => page.warn(format!(
                "The server can WRITE to {source} of this machine, which it sees at {target}: it can change and delete everything in it."
            )),
            _ => page.warn(format!("The server can READ {source} of this machine, which it sees at {target}.")),
        }
    }
    mounts::put_ended(page);
}

/// Warns about each host of the network that the command reaches.
fn put_hosts(page: &mut Effects<'_>, server: &McpRegister) {
    let before: Vec<&Value> = page.before["hosts"].as_array().into_iter().flatten().collect();
    let gone = before.iter().filter(|old| !server.hosts.iter().any(|new| new.host == old["host"]));
    let gone: Vec<&str> = gone.filter_map(|old| old["host"].as_str()).collect();
    for one in &server.hosts {
        let (host, port) = (page.show(&one.host), one.port.unwrap_or(443));
        let bytes = one.upload_bytes_max.unwrap_or_default();
        let known = if before.iter().any(|old| **old == json!(one)) { "As now, the" } else { "The" };
        page.warn(format!(
            "{known} server REACHES {host}, port {port}: up to {bytes} bytes in a call, of everything that it has, and this host CANNOT READ them."
        ));
    }
    if !gone.is_empty() {
        page.add(format!("It no longer reaches these hosts: {}.", page.list(gone)));
    }
}

/// Describes the login of a server at a URL.
fn put_login(page: &mut Effects<'_>, server: &McpRegister) {
    let before = page.before["oauth"]["issuer"].as_str().unwrap_or_default();
    let had = name_in(before);
    let Some(oauth) = &server.oauth else {
        if !had.is_empty() {
            page.add(format!("Its login at {} ends.", page.show(had)));
        }
        return;
    };
    let name = name_in(&oauth.issuer);
    let issuer = page.show(name);
    page.add("A person logs in at its issuer. Each request then carries the token of that login.".to_owned());
    page.warn(match had {
        "" => format!("LOGIN at {issuer}: check that this page may ask people for a password."),
        had if had == name => format!("As now, people log in at {issuer}."),
        had => {
            format!("The LOGIN moves from {} to {issuer}: check that this page may ask for a password.", page.show(had))
        }
    });
    if name != oauth.issuer {
        let known = if before == oauth.issuer { "As now, the" } else { "The" };
        page.warn(format!(
            "{known} host logs in although {issuer} does NOT ANNOUNCE S256: an issuer that ignores it lets another program of this machine use a stolen code. The host sends S256 all the same."
        ));
    }
    if !oauth.scopes.is_empty() {
        let scopes = page.list(oauth.scopes.iter().map(String::as_str).collect::<Vec<_>>());
        page.add(format!("The login asks for these scopes: {scopes}."));
    }
    if let Some(client_id) = &oauth.client_id {
        page.add(format!("The host is the client {} of the issuer.", page.show(client_id)));
    }
    let is_same = page.before["oauth"]["client_secret"] == json!(oauth.client_secret) && had == name;
    if let Some(secret) = &oauth.client_secret {
        let secret = page.show(secret);
        page.warn(match is_same {
            true => format!("As now, the issuer gets secret {secret} when the host asks for a token."),
            false => format!("SECRET {secret}: the issuer gets its value when the host asks for a token."),
        });
    }
}

/// Describes the differences between a known server and its replacement.
fn put_replaced(page: &mut Effects<'_>, server: &McpRegister, name: &str) {
    page.add(format!("Replace MCP server {name} in the catalogue of this host."));
    if *page.before == json!(server) {
        return page.add("Nothing of it changes.".to_owned());
    }
    page.add("Its tools have to be confirmed again.".to_owned());
    let was = page.before["url"].as_str().unwrap_or_default();
    match server.url.as_deref() {
        Some(url) if url == was => page.add(format!("The address stays {}.", page.show(url))),
        Some(url) if !was.is_empty() => {
            page.warn(format!("The address CHANGES from {} to {}.", page.show(was), page.show(url)));
        }
        _ => {}
    }
    let before = Effects::texts(&page.before["command"]);
    if !before.is_empty() && before != server.command {
        page.warn(format!("The command CHANGES; it was: {}.", page.list(before)));
    }
    let before = |of: &str| Effects::texts(&page.before["packages"][of]).join(" ");
    let Packages { apt, npm, pypi } = &server.packages;
    let had = [("apt", apt), ("npm", npm), ("pypi", pypi)];
    if had.iter().any(|(of, names)| before(of) != names.join(" ")) {
        let had = had.map(|(of, _)| page.list(Effects::texts(&page.before["packages"][of])));
        page.add(format!("Its packages change; they were: apt: {}; npm: {}; pypi: {}.", had[0], had[1], had[2]));
    }
    let gone = page.before["environment"].as_array().into_iter().flatten();
    let gone = gone.filter(|old| !server.environment.iter().any(|new| json!(new) == **old));
    let gone: Vec<&str> = gone.filter_map(|old| old["secret"].as_str()).collect();
    if !gone.is_empty() {
        page.add(format!("Its program no longer gets these secrets in the same variables: {}.", page.list(gone)));
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
fn put_secrets(page: &mut Effects<'_>, server: &McpRegister) {
    let Some(address) = server.url.as_deref() else { return };
    let url = page.show(address);
    let moves = page.before["url"].as_str() != Some(address);
    for header in &server.headers {
        let (name, secret) = (page.show(&header.name), page.show(&header.secret));
        let carries = "every request to";
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
    Other(Vec<&'a str>),
}

fn secrets_of<'a>(before: &'a Value, header: &McpHeader) -> SecretNow<'a> {
    let headers = before["headers"].as_array();
    if headers.into_iter().flatten().any(|old| *old == json!(header)) {
        return SecretNow::Same;
    }
    SecretNow::Other(headers.into_iter().flatten().filter_map(|old| old["secret"].as_str()).collect())
}
