//! Checks an MCP server for the catalogue.
//!
//! Never connects to a server. Of a secret it reads only whether it exists. See [`crate::registry::mcp`].

use super::super::kind::{Check, CheckContext};
use super::super::local_network as shown;
use super::super::mounts::{add_ended, complete as complete_mounts, describe_sources, refuse as own_directory_refused};
use super::super::packages::clients;
use crate::reach::jail_network::tunnel_variables;
use crate::reach::mcp_jail::{self, Process};
use crate::reach::packages;
use crate::registry::live_settings::HostPolicy;
use crate::registry::mcp::address;
use crate::registry::mcp::issuer::ApprovedIssuer;
use crate::registry::secrets::{self, SecretName};
use crate::registry::{Agent, local_network, mcp};
use axum::http::HeaderName;
use ironclaw_contract::seam::change::{Change, McpHeader, McpOauth, McpRegister, McpVariable};
use ironclaw_judge::egress::GrantError;
use ironclaw_judge::manifest::server;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::excerpt::quoted;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use url::Url;

/// Characters of a server's name, which begins the names of its tools for a model.
const NAME_CHARACTERS_MAX: usize = 32;

/// Headers of the transport; only the sender of a request sets them.
const TRANSPORT_HEADERS: [&str; 9] =
    ["connection", "content-length", "content-type", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"];

impl Check for McpRegister {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        complete(tx, self.clone(), context.host_policy).map(Change::McpRegister)
    }

    fn current(&self, tx: &ReadTx<'_>, _agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        Ok(mcp::find(tx, &self.name)?.map_or(Value::Null, |server| json!(server.described)))
    }

    fn facts(&self, tx: &ReadTx<'_>, policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let sources = describe_sources(&self.mounts);
        let mut facts =
            json!({ "secrets": existing_secrets(tx, self)?, "grants": granted_tools(tx, self)?, "sources": sources });
        if !self.packages.is_empty() {
            facts["clients"] = json!(clients(&policy.packages, &self.packages));
        }
        add_ended(tx, &mut facts, &self.mounts)?;
        shown::add(&mut facts, &local_network::for_server(tx, policy, self)?);
        Ok(facts)
    }

    fn addresses(&self, tx: &ReadTx<'_>, _agent: Option<&Agent>) -> Result<Vec<IpAddr>, ironclaw_state::Error> {
        Ok(mcp::find(tx, &self.name)?.map(|server| server.addresses).unwrap_or_default())
    }

    fn after(&self, payload: &Value, _agent: Option<&Agent>) -> Option<Value> {
        match self.remove {
            true => Some(Value::Null),
            // The same names again fetch the versions of today, or repair a damaged layer.
            false => self.packages.is_empty().then(|| payload.clone()),
        }
    }
}

/// Checks a server, and returns it with its parsed address, its completed mounts and sorted lists.
fn complete(tx: &ReadTx<'_>, wanted: McpRegister, host_policy: &HostPolicy) -> Result<McpRegister, Denied> {
    let McpRegister { name, url, command, mut packages, environment, mounts, hosts, mut tools, headers, oauth, remove } =
        wanted;
    check_name(&name)?;
    if remove {
        return match mcp::find(tx, &name)? {
            Some(_) => Ok(McpRegister { name, remove, ..McpRegister::default() }),
            None => Err(mcp::unknown(&name).into()),
        };
    }
    mcp::check_room(tx, &name)?;
    let url = url.map(|url| complete_url(tx, host_policy, &name, &url)).transpose()?;
    if url.is_none() {
        let own = environment.iter().map(|one| (one.variable.clone(), one.text.clone().unwrap_or_default()));
        let of_network = if hosts.is_empty() { Vec::new() } else { tunnel_variables() };
        let variables = own.chain(of_network).map(|(variable, value)| (variable, value.into())).collect();
        let process =
            Process { name: name.clone(), program: command.clone(), environment: variables, ..Process::default() };
        mcp_jail::refused(&process, !packages.is_empty()).map_or(Ok(()), Err)?;
    }
    for names in [&mut packages.apt, &mut packages.npm, &mut packages.pypi] {
        names.sort();
    }
    packages::refused(&host_policy.packages, &packages).map_or(Ok(()), Err)?;
    let mut environment =
        environment.into_iter().map(|one| complete_variable(tx, one)).collect::<Result<Vec<_>, Denied>>()?;
    environment.sort_by(|one, other| one.variable.cmp(&other.variable));
    let mounts = complete_mounts(mounts, host_policy)?;
    if let Some(mount) = mounts.iter().find(|mount| mount.mine.is_some()) {
        return Err(own_directory_refused(&mount.source, "an MCP server has it").into());
    }
    for tool in &tools {
        if let Err(why) = server::check_name(&tool.name) {
            let shown = quoted(&tool.name);
            let refusal = Refusal::new(DenialCode::McpToolName, format!("{shown} is not a valid tool name: {why}"));
            return Err(refusal.hint("name the tool as the server lists it: `ironctl mcp show NAME`").into());
        }
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let mut headers =
        headers.into_iter().map(|header| complete_header(tx, header)).collect::<Result<Vec<_>, Denied>>()?;
    headers.sort_by(|one, other| one.name.cmp(&other.name));
    let is_near = url.as_ref().is_some_and(address::is_near);
    if oauth.is_some() && url.as_ref().is_some_and(|url| url.scheme() == "http") && !is_near {
        let words = format!("the login at MCP server {name}: its token needs https");
        return Err(Refusal::new(DenialCode::McpOauth, words).hint("use the https address of the server").into());
    }
    let oauth = oauth.map(|oauth| complete_oauth(tx, oauth, &name, &headers, is_near)).transpose()?;
    let loopback = host_policy.egress.loopback();
    let hosts = mcp::hosts::complete(&hosts, loopback).map_err(|error| bad_host(&name, &error))?;
    let url = url.map(String::from);
    Ok(McpRegister { name, url, command, packages, environment, mounts, hosts, tools, headers, oauth, remove })
}

/// Checks an address. Plain http reaches this machine, and the local network at the addresses that the page shows.
fn complete_url(tx: &ReadTx<'_>, host_policy: &HostPolicy, name: &str, url: &str) -> Result<Url, Denied> {
    let url = address::parse_plain(url).map_err(|why| bad_url(name, why))?;
    let is_plain = url.scheme() == "http" && !address::is_near(&url);
    if !is_plain || !local_network::for_url(tx, host_policy, &url)?.is_empty() {
        return Ok(url);
    }
    let why = match host_policy.egress.lan.as_slice() {
        [] => "plain http to another machine is not encrypted",
        _ => "plain http to another machine is not encrypted, and it has no address in `[egress] lan`",
    };
    Err(bad_url(name, why).into())
}

/// Refuses a name that cannot begin the names of tools for a model.
fn check_name(name: &str) -> Result<(), Refusal> {
    if secrets::is_name(name) && name.len() <= NAME_CHARACTERS_MAX && !name.contains("__") && !name.ends_with('_') {
        return Ok(());
    }
    let refusal = Refusal::new(DenialCode::McpName, format!("{} is not a valid name of an MCP server", quoted(name)));
    Err(refusal.hint(
        "use 1 to 32 characters of a-z, 0-9, - and _, starting with a letter or a digit, without __ and without _ at the end",
    ))
}

/// Returns the refusal of an address. It does not repeat the address, which may contain a password.
fn bad_url(name: &str, why: &str) -> Refusal {
    let message = format!("the address of MCP server {name} cannot be used: {why}");
    Refusal::new(DenialCode::McpUrl, message).hint(
        "use https, or http on this machine or in a range of `[egress] lan`; name a password as the secret of a header",
    )
}

fn bad_host(name: &str, error: &GrantError) -> Refusal {
    let message = format!("MCP server {name} cannot reach a host that it names: {error}");
    Refusal::new(DenialCode::McpHost, message)
        .hint("name each host of the network that it may reach: HOST or HOST:PORT")
}

/// Checks the issuer of a login, and returns it in its one form, with sorted scopes.
fn complete_oauth(
    tx: &ReadTx<'_>,
    mut oauth: Box<McpOauth>,
    server: &str,
    headers: &[McpHeader],
    is_near: bool,
) -> Result<Box<McpOauth>, Denied> {
    let refuse = |why: &str| Refusal::new(DenialCode::McpOauth, format!("the login at MCP server {server}: {why}"));
    let issuer = ApprovedIssuer::parse(&oauth.issuer);
    let issuer = issuer.map_err(|why| refuse(&format!("the issuer cannot be used: {why}")))?;
    if issuer.name.as_str().starts_with("http:") && !is_near {
        return Err(refuse("the issuer of a server on another machine needs https").into());
    }
    if headers.iter().any(|header| header.name == "authorization") {
        let refusal = refuse("its token takes the header authorization");
        return Err(refusal.hint("leave out the header, or --oauth").into());
    }
    let is_token = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    if !oauth.scopes.iter().chain(&oauth.client_id).all(is_token) {
        return Err(refuse("a scope and the id of a client have visible ASCII characters only").into());
    }
    if oauth.client_secret.is_some() && oauth.client_id.is_none() {
        return Err(refuse("the secret of a client needs its id").hint("name the id with --client-id").into());
    }
    oauth.client_secret = oauth.client_secret.map(|secret| known_secret(tx, &secret)).transpose()?;
    oauth.scopes.sort();
    oauth.issuer = issuer.to_string();
    Ok(oauth)
}

fn complete_header(tx: &ReadTx<'_>, header: McpHeader) -> Result<McpHeader, Denied> {
    let McpHeader { name, secret, scheme } = header;
    let shown = quoted(&name);
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err(Refusal::new(DenialCode::McpHeader, format!("{shown} is not a valid header name")).into());
    };
    if TRANSPORT_HEADERS.contains(&parsed.as_str()) {
        return Err(Refusal::new(DenialCode::McpHeader, format!("header {shown} belongs to the transport")).into());
    }
    let is_token = |scheme: &String| scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if scheme.as_ref().is_some_and(|scheme| !is_token(scheme)) {
        let refusal = Refusal::new(DenialCode::McpHeader, format!("the scheme of header {shown} is not one word"));
        return Err(refusal.hint("a scheme is one word such as Bearer").into());
    }
    Ok(McpHeader { name: parsed.as_str().to_owned(), secret: known_secret(tx, &secret)?, scheme })
}

fn complete_variable(tx: &ReadTx<'_>, one: McpVariable) -> Result<McpVariable, Denied> {
    let secret = one.secret.map(|secret| known_secret(tx, &secret)).transpose()?;
    Ok(McpVariable { secret, ..one })
}

/// Returns the name of a secret that exists.
fn known_secret(tx: &ReadTx<'_>, name: &str) -> Result<String, Denied> {
    let secret = secrets::named(name)?;
    if secrets::find(tx, &secret)?.is_none() {
        let refusal = Refusal::new(DenialCode::SecretUnknown, format!("there is no {secret}"));
        return Err(refusal.hint(format!("an owner stores it first: `ironctl secret set {}`", secret.as_str())).into());
    }
    Ok(secret.as_str().to_owned())
}

/// Returns for each named secret whether it exists.
fn existing_secrets(tx: &ReadTx<'_>, server: &McpRegister) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let mut found = Map::new();
    for secret in mcp::secrets_of(server) {
        let exists = match secret.parse::<SecretName>() {
            Ok(name) => secrets::find(tx, &name)?.is_some(),
            Err(_) => false,
        };
        found.insert(secret.to_owned(), exists.into());
    }
    Ok(found)
}

/// Returns the agents with tools of the known server of this name, and the tools that each keeps.
fn granted_tools(tx: &ReadTx<'_>, server: &McpRegister) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let Some(was) = mcp::find(tx, &server.name)? else { return Ok(Map::new()) };
    let holders = mcp::holders(tx, &server.name)?.into_iter();
    let grants = holders.map(|grant| {
        let left = mcp::left_of(&grant, &was.described, server);
        (grant.agent_name, json!({ "agent": grant.agent, "has": grant.tools, "keeps": left }))
    });
    Ok(grants.collect())
}
