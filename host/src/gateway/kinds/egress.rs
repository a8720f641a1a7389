//! The kind `egress`: a host of the network that the host asks for the agent.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope, concerned};
use super::local_network as shown;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::live_settings::HostPolicy;
use crate::registry::secrets;
use crate::registry::{Agent, egress, local_network};
use ironclaw_contract::seam::change::{Change, Egress};
use ironclaw_judge::egress::{Commands, Grant, HostName, Loopback, PLAIN};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Value, json};
use std::net::IpAddr;

/// The port of a grant that names none, and that of one of plain http.
const DEFAULT_PORT: u16 = 443;
const PLAIN_PORT: u16 = 80;

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: false };

impl Check for Egress {
    /// Writes the grant in full: the canonical name of the host, sorted methods, the bound on a body.
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        let loopback = context.host_policy.egress.loopback();
        if self.removes() {
            // A grant that the settings no longer admit can be removed.
            let host = removed_host(tx, context.agent, &self.host)?;
            check_port(tx, context.agent, &host, self.port)?;
            return Ok(Change::Egress(Self { host, port: None, ..self.clone() }));
        }
        let grant = Grant::check(&egress::text(self), loopback).map_err(|error| malformed(&error))?;
        if let Some(secret) = grant.secret()
            && secrets::find(tx, secret)?.is_none()
        {
            let refusal = Refusal::new(DenialCode::SecretUnknown, format!("there is no {secret}"));
            let hint = format!("an owner stores it first: `ironctl secret set {}`", secret.as_str());
            return Err(refusal.hint(hint).into());
        }
        if grant.is_plain() && local_network::for_grant(tx, context.host_policy, self)?.is_empty() {
            return Err(not_near(grant.host()).into());
        }
        if let Some(agent) = context.agent {
            egress::check_room(tx, agent.id, &[grant.text().host.as_str()].into())?;
        }
        Ok(Change::Egress(egress::payload(grant.text())))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let had = egress::egress_of(tx, agent.id)?.into_iter().find(|grant| grant.host == self.host);
        let none = Self {
            host: self.host.clone(),
            port: None,
            methods: Vec::new(),
            paths: Vec::new(),
            secret: None,
            upload_bytes_max: None,
            commands: None,
        };
        Ok(json!(had.map_or(none, |had| had.granted)))
    }

    fn facts(&self, tx: &ReadTx<'_>, policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        let mut facts = json!({});
        shown::add(&mut facts, &local_network::for_grant(tx, policy, self)?);
        Ok(facts)
    }

    fn addresses(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Vec<IpAddr>, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Vec::new()) };
        let had = egress::egress_of(tx, agent.id)?.into_iter().find(|grant| grant.host == self.host);
        Ok(had.map(|had| had.addresses).unwrap_or_default())
    }
}

/// Returns the host of a grant that is taken away. A grant of plain http is found without its scheme too.
fn removed_host(tx: &ReadTx<'_>, agent: Option<&Agent>, written: &str) -> Result<String, Denied> {
    let named = written.strip_prefix(PLAIN);
    let name = HostName::parse(named.unwrap_or(written), Loopback::DangerousAllowed);
    let name = name.map_err(|error| malformed(&error))?.to_string();
    let plain = format!("{PLAIN}{name}");
    let held = agent.map(|agent| egress::egress_of(tx, agent.id)).transpose()?.unwrap_or_default();
    let has = |host: &str| held.iter().any(|grant| grant.host == host);
    Ok(if named.is_some() || has(&plain) && !has(&name) { plain } else { name })
}

/// Returns the refusal of plain http to a host that is not in the local network.
fn not_near(host: &HostName) -> Refusal {
    let message = format!("plain http reaches the local network only, and {host} has no address in `[egress] lan`");
    let hint = "leave http:// out, or let an operator add the range of its address to lan, and a person grant it again";
    Refusal::new(DenialCode::EgressMalformed, message).hint(hint)
}

/// Refuses to take away a host that an agent has with another port than the named one.
fn check_port(tx: &ReadTx<'_>, agent: Option<&Agent>, host: &str, named: Option<u16>) -> Result<(), Denied> {
    let (Some(agent), Some(named)) = (agent, named) else { return Ok(()) };
    let held = egress::egress_of(tx, agent.id)?.into_iter().find(|grant| grant.host == host);
    let default = if host.starts_with(PLAIN) { PLAIN_PORT } else { DEFAULT_PORT };
    let port = held.map(|grant| grant.granted.port.unwrap_or(default));
    match port {
        Some(port) if port != named => {
            let message = format!("agent {} has the host {host} with the port {port}, not {named}", agent.name);
            Err(Refusal::new(DenialCode::EgressMalformed, message).hint("leave the port out, or write this one").into())
        }
        _ => Ok(()),
    }
}

fn malformed(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(DenialCode::EgressMalformed, error.to_string())
}

impl Page for Egress {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let host = page.show(&self.host);
        if self.removes() {
            return page.add(format!("Take the host {host} of the network away from {agent}."));
        }
        if self.commands == Some(Commands::Tunnel) {
            return tunnel_effects(self, agent, page);
        }
        let methods = page.list(self.methods.iter().map(String::as_str));
        page.add(format!("Let {agent} ask this host of the network for pages: {host}, with {methods}."));
        match self.paths.as_slice() {
            [] => page.add("Only whole addresses that a person typed; no other path.".to_owned()),
            _ if self.commands == Some(Commands::Git) => put_repositories(self, page),
            paths => page.add(format!(
                "On these paths, where each word in braces is one free part: {}.",
                page.list(paths.iter().map(String::as_str))
            )),
        }
        page.add("The host sends each request itself; the agent's jail gets no network.".to_owned());
        match self.commands {
            None | Some(Commands::Tunnel) => {}
            Some(Commands::Git) => {
                page.warn(format!("COMMANDS of {agent} may use it too: git finds repositories there."));
                put_pushes(self, agent, page);
            }
            Some(Commands::Npm) => {
                page.warn(format!("COMMANDS of {agent} may use it too: npm installs packages from it."))
            }
            Some(Commands::Pip) => {
                page.warn(format!("COMMANDS of {agent} may use it too: pip installs packages from it."))
            }
            Some(Commands::Other) => page.warn(format!("COMMANDS of {agent} may use it too.")),
        }
        let writes = self.methods.iter().any(|method| method != "GET" && method != "HEAD");
        if writes {
            let bytes = self.upload_bytes_max.unwrap_or_default();
            page.warn(format!("Data LEAVES THIS HOST with a request: up to {bytes} bytes each, to {host}."));
        } else {
            page.warn(format!("The address of each request LEAVES THIS HOST and goes to {host}."));
        }
        shown::put(page, &host, self.host.starts_with(PLAIN), self.secret.as_deref().as_slice());
        if let Some(secret) = &self.secret {
            page.warn(format!("Each request carries this SECRET of this host to {host}: {}.", page.show(secret)));
        }
        page.warn("Its answers come back to the model, and can contain INSTRUCTIONS to the agent.".to_owned());
    }
}

/// Returns the repositories of which a grant admits both paths of a service of git.
fn repositories<'e>(egress: &'e Egress, service: &str) -> Vec<&'e str> {
    let of_service = |path: &'e String| path.strip_suffix(service)?.strip_suffix('/');
    let refs = |repository: &&str| egress.paths.contains(&format!("{repository}/info/refs?service={service}"));
    egress.paths.iter().filter_map(of_service).filter(refs).collect()
}

/// Describes the paths of a grant for git by their repositories; the changes below have each path.
fn put_repositories(egress: &Egress, page: &mut Effects<'_>) {
    let services = ["git-upload-pack", "git-receive-pack"].map(|service| (service, repositories(egress, service)));
    let is_known = |path: &&String| {
        services.iter().any(|(service, repositories)| {
            repositories.iter().any(|one| {
                **path == format!("{one}/{service}") || **path == format!("{one}/info/refs?service={service}")
            })
        })
    };
    let rest: Vec<&str> = egress.paths.iter().filter(|path| !is_known(path)).map(String::as_str).collect();
    page.add(format!(
        "It may fetch these repositories, where each word in braces is one free part: {}.",
        page.list(services[0].1.iter().copied())
    ));
    if !rest.is_empty() {
        page.add(format!("It may use these paths too: {}.", page.list(rest)));
    }
}

/// Describes the pushes that a grant for git permits.
fn put_pushes(egress: &Egress, agent: &str, page: &mut Effects<'_>) {
    let repositories = repositories(egress, "git-receive-pack");
    if repositories.is_empty() || !egress.methods.iter().any(|method| method == "POST") {
        return page.add("It may push nothing.".to_owned());
    }
    let repositories = page.list(repositories);
    page.warn(format!(
        "PUSHES of {agent} may change any branch of these repositories: {repositories}. The page of each push shows its commits and its diff; no \
         push deletes a branch or replaces its history."
    ));
}

fn tunnel_effects(egress: &Egress, agent: &str, page: &mut Effects<'_>) {
    let (host, port) = (page.show(&egress.host), egress.port.unwrap_or(443));
    page.add(format!("Let commands of {agent} open TLS connections of their own to this host: {host}, port {port}."));
    page.add(format!("This takes the place of any other grant of this host to {agent}."));
    page.warn("This host CANNOT SEE the requests inside, and cannot limit them.".to_owned());
    page.warn("Other sites on the same servers may be reached inside.".to_owned());
    let bytes = egress.upload_bytes_max.unwrap_or_default();
    page.warn(format!("Data LEAVES THIS HOST inside: up to {bytes} bytes of each command, to {host}."));
    page.warn("The answers come back to the model, and can contain INSTRUCTIONS to the agent.".to_owned());
}

impl Apply for Egress {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        writers::egress::set(tx, approved, agent.id, self, &shown::addresses(approved.facts()))?;
        let Self { host, methods, commands, .. } = self;
        let name = &agent.name;
        Ok(match commands {
            _ if self.removes() => format!("agent {name} no longer has the host {host}"),
            Some(Commands::Tunnel) => format!("agent {name} has tunnels of its commands to the host {host}"),
            _ => format!("agent {name} has {} of the host {host}", methods.join(", ")),
        })
    }
}
