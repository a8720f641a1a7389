//! One connection: the request headers with their secrets, or the process in its jail, and the first listing.

use super::servers::{Connected, Servers};
use crate::reach::jail_network::roots::Roots;
use crate::reach::jail_network::{self, Gateway, Reach, tunnel_variables};
use crate::reach::mcp_jail::{self, Process, Running};
use crate::reach::packages::browser;
use crate::registry::mcp::{self, address, listing::Listing, login};
use crate::registry::secrets::{self, SecretName};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{McpHeader, McpRegister, McpTool};
use ironclaw_jail::Mount;
use ironclaw_jail::launcher::Jailed;
use ironclaw_judge::egress::{Grant, Loopback};
use ironclaw_judge::manifest::server::UNREAD;
use ironclaw_mcp::{Client, Era, Limits, ListedTool};
use ironclaw_net::fetch;
use ironclaw_state::ReadTx;
use ironclaw_state::home::LayerOwner;
use ironclaw_state::keys::SecretText;
use ironclaw_store::record::Record;
use ironclaw_text::excerpt;
use ironclaw_text::visible;
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;

/// Characters of an error of a server, or of the last line of its standard error.
const SHOWN_CHARACTERS_MAX: usize = 300;

impl Connected {
    /// Asks the server for its tools.
    pub(super) async fn list(&self, described: &McpRegister) -> Result<Listing, Failed> {
        match self.client.list().await {
            Ok(listed) => listing_of(described, listed, &self.secrets),
            Err(error) => Err(Failed::after_request(described, &error, &self.secrets)),
        }
    }
}

/// The reason why a server cannot be used, in words without a secret.
pub(super) struct Failed {
    words: String,
    /// Whether the server refused the token of its login.
    pub(super) is_unauthorized: bool,
}

impl Failed {
    /// Wraps words of this host.
    pub(super) fn words(words: String) -> Self {
        Self { words, is_unauthorized: false }
    }

    pub(super) fn login_needed(server: &str) -> Self {
        Self::words(format!("a person has to log in at it: ironctl mcp login {server}"))
    }

    /// Returns the failure of a request without the secrets of the connection.
    fn after_request(described: &McpRegister, error: &ironclaw_mcp::Error, secrets: &[SecretText]) -> Self {
        let is_unauthorized = described.oauth.is_some() && is_unauthorized(error);
        let remedy = if is_unauthorized { log_in_again(&described.name) } else { String::new() };
        Self { words: shown(error, secrets) + &remedy, is_unauthorized }
    }
}

/// Returns the remedy for a token that a server refused.
pub(super) fn log_in_again(server: &str) -> String {
    format!("; if it refuses the next token too, log in again: ironctl mcp login {server}")
}

/// Removes the secrets that a server got from its words.
pub(super) fn without_secrets(words: String, secrets: &[SecretText]) -> String {
    secrets.iter().fold(words, |words, secret| fetch::without_secret(&words, secret))
}

/// Returns the start of a server's words on one line, with invisible characters written out. The secrets are removed before the cut, so
/// that no part of one is left.
pub(super) fn shown(words: &impl fmt::Display, secrets: &[SecretText]) -> String {
    let words = without_secrets(words.to_string(), secrets);
    let start = excerpt::start(&words, SHOWN_CHARACTERS_MAX);
    let rest = if start.len() < words.len() { "…" } else { "" };
    visible::line(&start.replace(['\n', '\r'], " ")).text + rest
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl From<ironclaw_state::Error> for Failed {
    fn from(error: ironclaw_state::Error) -> Self {
        tracing::error!(%error, "the record of an MCP server cannot be read or written");
        Self::words("the host could not read or write its record".to_owned())
    }
}

/// Returns the listing of the record in the form of a server's answer. Refuses one with a secret of the connection, because people and
/// models read it.
fn listing_of(
    described: &McpRegister,
    listed: ironclaw_mcp::Listing,
    secrets: &[SecretText],
) -> Result<Listing, Failed> {
    let era = match listed.server.era {
        ironclaw_mcp::Era::Session => "session",
        ironclaw_mcp::Era::Stateless => "stateless",
    };
    let mut remarks: Vec<String> =
        listed.cut.map(|cut| format!("{cut}, so the host read no further")).into_iter().collect();
    let mut tools: Vec<Value> = listed.tools.into_iter().map(entry).collect();
    let wanted: Vec<&str> = described.tools.iter().map(|McpTool { name, .. }| name.as_str()).collect();
    if !wanted.is_empty() {
        tools.retain(|tool| wanted.iter().any(|name| tool["name"] == *name));
        let missing = wanted.iter().filter(|name| !tools.iter().any(|tool| tool["name"] == **name));
        remarks.extend(missing.map(|name| format!("it does not list the tool {name}, which its registration names")));
    }
    if tools.is_empty() {
        let words = if remarks.is_empty() { "it lists no tools".to_owned() } else { remarks.join("; ") };
        return Err(Failed::words(words));
    }
    tools.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
    let listing = Listing { era: era.to_owned(), instructions: listed.server.instructions, tools, remarks };
    let text = listing.text();
    match secrets.iter().any(|secret| ironclaw_net::fetch::without_secret(&text, secret) != text) {
        true => Err(Failed::words("its listing contains a secret that this host gave it".to_owned())),
        false => Ok(listing),
    }
}

/// Returns an entry in the form of the record.
fn entry(tool: ListedTool) -> Value {
    match tool.unread {
        Some(why) => json!({ "name": tool.name, UNREAD: why }),
        None => tool.listed,
    }
}

/// Connects to a server and lists its tools.
pub(super) async fn connect(
    servers: &Servers,
    described: &McpRegister,
    agent: Option<AgentId>,
) -> Result<(Connected, Listing), Failed> {
    let limits = Limits::default();
    let connected = match &described.url {
        Some(url) => {
            let (client, secrets) = over_http(servers, url, described, limits).await?;
            Connected { client, secrets, gateway: None, jailed: None }
        }
        None => {
            let jail = Jail::read(servers, described).await?;
            let begun = match over_jail(servers, &jail, agent, limits.clone()).await {
                // Some servers end at a request before `initialize`.
                Err((_, true)) => {
                    let limits = Limits { era: Some(Era::Session), ..limits };
                    over_jail(servers, &jail, agent, limits).await
                }
                begun => begun,
            };
            let (client, jailed, gateway) = begun.map_err(|(failed, _)| failed)?;
            Connected { client, secrets: jail.secrets, gateway, jailed: Some(jailed) }
        }
    };
    let listing = connected.list(described).await?;
    Ok((connected, listing))
}

/// Returns whether a server refused a request for want of a login.
pub(super) fn is_unauthorized(error: &ironclaw_mcp::Error) -> bool {
    matches!(error, ironclaw_mcp::Error::Refused { code: 401, .. })
}

/// Starts the process of a server and connects to it. A failure says whether the server ended by itself.
async fn over_jail(
    servers: &Servers,
    jail: &Jail<'_>,
    agent: Option<AgentId>,
    limits: Limits,
) -> Result<(Client, Jailed, Option<Gateway>), (Failed, bool)> {
    let Running { read, write, mut jailed, stderr } =
        jail.launch(servers, agent).await.map_err(|failed| (failed, false))?;
    // Before the server can ask for a connection in vain.
    let gateway = jail.gateway(servers, &mut jailed).map_err(|failed| (failed, false))?;
    match Client::over_streams(read, write, limits).await {
        Ok(client) => Ok((client, jailed, gateway)),
        Err(error) => {
            let has_ended = matches!(error, ironclaw_mcp::Error::Gone);
            // The next process has the same directory.
            jailed.kill();
            jailed.exited().await;
            let last = mcp_jail::errors_of(&stderr).unwrap_or_default();
            let last = last.lines().last().unwrap_or_default();
            let last = shown(&last, &jail.secrets);
            let says = if last.is_empty() { String::new() } else { format!("; its last words are {last:?}") };
            Err((Failed::words(shown(&error, &jail.secrets) + &says), has_ended))
        }
    }
}

async fn over_http(
    servers: &Servers,
    url: &str,
    described: &McpRegister,
    limits: Limits,
) -> Result<(Client, Vec<SecretText>), Failed> {
    let url: Url = url.parse().map_err(|_| Failed::words("its address is not a URL".to_owned()))?;
    let (record, wanted) = (Arc::clone(&servers.record), described.clone());
    let read = servers.record.state.read(move |tx| {
        let (mut headers, mut secrets) = header_values(tx, &record, &wanted.headers)?;
        if wanted.oauth.is_some() {
            let (value, token) = bearer(tx, &record, &wanted.name)?;
            headers.insert(header::AUTHORIZATION, value);
            secrets.push(token);
        }
        let addresses = mcp::find(tx, &wanted.name)?.map(|server| server.addresses).unwrap_or_default();
        Ok::<_, Failed>((headers, secrets, addresses))
    });
    let (headers, secrets, addresses) = read.await?;
    let http = match addresses.is_empty() {
        true if url.scheme() == "http" && !address::is_near(&url) => {
            return Err(Failed::words("plain http to another machine needs the address that people read".to_owned()));
        }
        true => ironclaw_net::client_for(&url),
        false => ironclaw_net::client_for_shown(&url, servers.fetchers.shown(addresses)),
    };
    let http = http.map_err(Failed::words)?;
    match Client::over_http(url, headers, http, limits).await {
        Ok(client) => Ok((client, secrets)),
        Err(error) => Err(Failed::after_request(described, &error, &secrets)),
    }
}

/// Returns the token of the login at a server, alone and as the value of a header.
fn bearer(tx: &ReadTx<'_>, record: &Record, server: &str) -> Result<(HeaderValue, SecretText), Failed> {
    let needed = || Failed::login_needed(server);
    let login = login::find(tx, server)?.ok_or_else(needed)?;
    let token = login::tokens(&record.wrapping, &login)?.ok_or_else(needed)?.access;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).map_err(|_| needed())?;
    value.set_sensitive(true);
    Ok((value, token))
}

/// Returns the headers with the values of their secrets. An error names a secret that is missing.
fn header_values(
    tx: &ReadTx<'_>,
    record: &Record,
    headers: &[McpHeader],
) -> Result<(HeaderMap, Vec<SecretText>), Failed> {
    let (mut map, mut secrets) = (HeaderMap::new(), Vec::new());
    for McpHeader { name, secret, scheme } in headers {
        let missing =
            || Failed::words(format!("the secret {secret} of its header {name} is missing or cannot be sent"));
        let named: SecretName = secret.parse().map_err(|_| missing())?;
        let found = secrets::get(tx, &record.wrapping, &named).map_err(|_| missing())?;
        let held = found.ok_or_else(missing)?;
        let text = scheme.iter().map(|scheme| format!("{scheme} ")).collect::<String>() + held.expose();
        let (Ok(name), Ok(mut value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&text)) else {
            return Err(missing());
        };
        value.set_sensitive(true);
        map.insert(name, value);
        secrets.push(held);
    }
    Ok((map, secrets))
}

/// The parts of the jail of a server that the record has: its layer, and the secrets of its variables.
struct Jail<'a> {
    described: &'a McpRegister,
    layer: Option<PathBuf>,
    /// The variables with a secret, and their secrets in the same order.
    variables: Vec<String>,
    secrets: Vec<SecretText>,
    /// The hosts that it reaches, with the present settings.
    tunnels: Vec<Grant>,
    loopback: Loopback,
}

impl<'a> Jail<'a> {
    /// Reads them, and checks the layer and the directories as at each launch of a session.
    async fn read(servers: &Servers, described: &'a McpRegister) -> Result<Self, Failed> {
        for mount in &described.mounts {
            // The settings may have changed since the approval.
            let admits = servers.settings.now().host_policy.admits(Path::new(&mount.source));
            if !admits.map_err(|error| Failed::words(error.to_string()))? {
                let source = visible::name(&mount.source);
                return Err(Failed::words(format!("its directory {source} is no longer in [mounts] allow")));
            }
        }
        let (record, name) = (Arc::clone(&servers.record), described.name.clone());
        let wanted = described.environment.clone();
        let read = servers.record.state.read(move |tx| {
            let layer = mcp::find(tx, &name)?.and_then(|server| server.layer);
            let with_secret = wanted.into_iter().filter_map(|one| Some((one.variable, one.secret?)));
            let value = |(variable, secret): (String, String)| {
                let missing = || Failed::words(format!("the secret {secret} of its variable {variable} is missing"));
                let named: SecretName = secret.parse().map_err(|_| missing())?;
                let found = secrets::get(tx, &record.wrapping, &named).map_err(|_| missing())?;
                let found = found.ok_or_else(missing)?;
                Ok::<_, Failed>((variable, found))
            };
            let (variables, secrets) = with_secret.map(value).collect::<Result<_, Failed>>()?;
            Ok::<(_, Vec<_>, Vec<_>), Failed>((layer, variables, secrets))
        });
        let (layer, variables, secrets) = read.await?;
        let layer = match (mcp_jail::is_demo(&described.command), layer) {
            (true, None) => Some(servers.demo.get(&servers.home).await.map_err(|error| unstarted(described, &error))?),
            (_, Some(digest)) => {
                let place = servers.home.layer(&LayerOwner::Server(described.name.clone()), &digest);
                let verified = servers.verified_layers.verify(&place, digest).await;
                verified.map_err(|error| Failed::words(error.refusal().to_string()))?;
                Some(place)
            }
            (false, None) => None,
        };
        let loopback = servers.settings.now().host_policy.egress.loopback();
        let tunnels = mcp::hosts::grants(&described.hosts, loopback);
        let tunnels = tunnels.map_err(|error| Failed::words(error.to_string()))?;
        Ok(Self { described, layer, variables, secrets, tunnels, loopback })
    }

    /// Starts the gateway of a launched jail.
    fn gateway(&self, servers: &Servers, jailed: &mut Jailed) -> Result<Option<Gateway>, Failed> {
        let Some(listener) = jailed.listener.take() else { return Ok(None) };
        let (hosts, tunnels, loopback) = (Arc::default(), self.tunnels.clone(), self.loopback);
        let reach = Reach { hosts, tunnels, loopback, command: None };
        let gateway = Gateway::start(listener, &reach, Arc::clone(&servers.fetchers), None);
        gateway.map(Some).map_err(|error| Failed::words(format!("its gateway cannot be started: {error}")))
    }

    async fn launch(&self, servers: &Servers, agent: Option<AgentId>) -> Result<Running, Failed> {
        let described = self.described;
        let mount = |mount: &ironclaw_contract::seam::change::Mount| Mount {
            source: mount.source.clone().into(),
            target: mount.target.clone().unwrap_or_default(),
            read_only: mount.read_only.unwrap_or(true),
            granted: true,
        };
        // Another command under the same name never gets the files of this one.
        let of = Digest::of(&canonical::to_vec(&(&described.command, &described.mounts))).to_string();
        let user = format!("{}-{}", agent.map_or_else(|| "look".to_owned(), |agent| agent.to_string()), &of[..16]);
        let with_text =
            described.environment.iter().filter_map(|one| Some((one.variable.clone(), one.text.clone()?.into())));
        let with_secret = self.variables.iter().zip(&self.secrets);
        let with_secret = with_secret.map(|(name, secret)| (name.clone(), secret.expose().to_owned().into()));
        let has_network = !self.tunnels.is_empty();
        let of_network = if has_network { tunnel_variables() } else { Vec::new() };
        let of_network = of_network.into_iter().map(|(name, value)| (name, value.into()));
        let process = Process {
            name: format!("mcp_{}", described.name),
            program: described.command.clone(),
            environment: with_text.chain(with_secret).chain(of_network).collect(),
            listener: has_network.then_some(jail_network::PORT),
            roots: Roots::find().filter(|_| has_network).map(|roots| roots.mount()),
            layer: self.layer.clone(),
            browser: browser::has(&described.packages),
            mounts: described.mounts.iter().map(mount).collect(),
            state: servers.home.mcp_state(&described.name, &user),
        };
        servers.jails.launch(&process).await.map_err(|error| unstarted(described, &error))
    }
}

fn unstarted(described: &McpRegister, error: &mcp_jail::Error) -> Failed {
    tracing::warn!(%error, server = described.name, "an MCP server could not be started");
    Failed::words(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_of_an_error_leaves_no_part_of_a_secret() {
        let secrets = [SecretText::new("s3cret-of-papers".to_owned())];
        for before in SHOWN_CHARACTERS_MAX - 20..SHOWN_CHARACTERS_MAX + 2 {
            let words = format!("{}s3cret-of-papers is too old", "x".repeat(before));
            let shown = shown(&words, &secrets);
            assert!(!shown.contains("s3c") && shown.contains('…'), "{before}: {shown}");
        }
    }

    #[test]
    fn error_of_a_server_is_one_visible_line() {
        assert_eq!(shown(&"a\nb\u{202e}c", &[]), "a b⟦U+202E⟧c");
    }
}
