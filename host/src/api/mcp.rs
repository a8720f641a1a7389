//! The catalogue of MCP servers over the API, with the table of each server's tools.
//!
//! Changes nothing but the last listing of a server: a server enters the catalogue, and its tools are confirmed, by approved changes. See
//! [`crate::registry::mcp`].

mod login;

use super::handler::{Answer, Api, Body, Caller, Reply};
use crate::reach::mcp::ResolvedCommand;
use crate::registry::mcp::{self, Server, listing::Listing};
use crate::registry::{self, tools};
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_contract::seam::change::{McpHeader, McpHost, McpVariable, Mount, Packages};
use ironclaw_judge::manifest::server::{self, Loosening, Tools};
use ironclaw_judge::provenance::{Labels, Provenance};
use ironclaw_operator::{
    AgentMount, AgentPackages, McpCommand, McpHolder, McpListed, McpLoginAnswer, McpLoginBegun, McpLook,
    McpResolvedCommand, McpServer, McpServerHeader, McpServerHost, McpServerTool, McpServerVariable, McpTransport,
    NewMcpLogin, OwnSource,
};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;

/// `GET /v1/mcp`
pub async fn list(State(api): State<Api>) -> Reply<Vec<McpServer>> {
    let look = |tx: &ReadTx<'_>| mcp::servers(tx)?.into_iter().map(|server| view(tx, server, None)).collect();
    let mut all: Vec<McpServer> =
        api.state().read(look).await.map_err(|error: ironclaw_state::Error| Answer::from(error))?;
    let mut failures = api.servers.failures().await;
    for server in &mut all {
        server.failure = failures.remove(&server.name);
    }
    Ok(Json(all))
}

/// `GET /v1/mcp/{server}`
pub async fn show(State(api): State<Api>, Path(name): Path<String>) -> Reply<McpServer> {
    Ok(Json(one(&api, name, None).await?))
}

/// `POST /v1/mcp/{server}/look`: asks the server for its listing now.
pub async fn look(State(api): State<Api>, Path(name): Path<String>, Body(asked): Body<McpLook>) -> Reply<McpServer> {
    api.servers.relist(&name).await.map_err(Denied::<Error>::from)?;
    Ok(Json(one(&api, name, asked.manifest).await?))
}

/// `POST /v1/mcp-commands/resolve`: finds the packages and the program of a command.
pub async fn resolve_command(State(api): State<Api>, Body(asked): Body<McpCommand>) -> Reply<McpResolvedCommand> {
    let resolved = api.servers.resolve(asked.command).await.map_err(Denied::<Error>::from)?;
    let ResolvedCommand { command, packages: Packages { npm, pypi, .. }, programs } = resolved;
    Ok(Json(McpResolvedCommand { command, npm, pypi, programs }))
}

/// `POST /v1/mcp/{server}/login`
pub async fn begin_login(
    Caller { api, person: by, .. }: Caller,
    Path(server): Path<String>,
    Body(new): Body<NewMcpLogin>,
) -> Reply<McpLoginBegun> {
    let begun = api.servers.logins.begin(&server, &new.redirect_uri, by.id).await.map_err(Denied::<Error>::from)?;
    let expires_at = ironclaw_ledger::rfc3339(begun.until);
    Ok(Json(McpLoginBegun { issuer: begun.issuer, url: begun.url.into(), expires_at }))
}

/// `POST /v1/mcp/{server}/login/finish`
pub async fn finish_login(
    Caller { api, person: by, .. }: Caller,
    Path(server): Path<String>,
    Body(answer): Body<McpLoginAnswer>,
) -> Reply<McpServer> {
    api.servers.logins.finish(&server, &answer.address, by.id).await.map_err(Denied::<Error>::from)?;
    api.servers.forget_failures(&server);
    Ok(Json(one(&api, server, None).await?))
}

/// `POST /v1/mcp/{server}/logout`
pub async fn log_out(Caller { api, person: by, .. }: Caller, Path(server): Path<String>) -> Reply<McpServer> {
    if let Some(removed) = api.servers.logins.remove(&server, by.id).await.map_err(Denied::<Error>::from)? {
        // The old tokens may stay valid at the issuer, so no copy of them stays.
        api.state().checkpoint().await.map_err(Error::from)?;
        api.record.forget_snapshots().await.map_err(Error::from)?;
        api.servers.logins.revoke(removed).await.map_err(Denied::<Error>::from)?;
    }
    Ok(Json(one(&api, server, None).await?))
}

async fn one(api: &Api, name: String, manifest: Option<String>) -> Result<McpServer, Answer> {
    let named = name.clone();
    let found = api.state().read(move |tx| {
        let server = mcp::find(tx, &named).map_err(Error::from)?.ok_or_else(|| mcp::unknown(&named))?;
        if let (Some(manifest), Some(seen)) = (&manifest, server.seen().map_err(Error::from)?) {
            mcp::tools(&named, &seen, Some(manifest))?;
        }
        view(tx, server, manifest.as_deref()).map_err(|error| Denied::Failed(Error::from(error)))
    });
    let mut found = found.await?;
    found.failure = api.servers.failures().await.remove(&name);
    Ok(found)
}

/// Returns a server with the table of its tools, by these manifests or by the proposed ones.
fn view(tx: &ReadTx<'_>, server: Server, manifest: Option<&str>) -> Result<McpServer, ironclaw_state::Error> {
    let (seen, confirmed) = (server.seen()?, server.confirmed()?);
    let has_network = mcp::Place::for_description(&server.described).has_network();
    let proposed = seen.as_ref().map(|seen| mcp::proposed(&server, seen, confirmed.as_ref()).text());
    let proposed = proposed.unwrap_or_default();
    // Manifests may not fit the listing; a tool whose manifest does not fit has the strictest.
    let entries = seen.as_ref().map(|seen| seen.tools.as_slice()).unwrap_or_default();
    let known = server::fitting_manifests(server.name(), entries, manifest.or(Some(&proposed)));
    let known = known.for_network(has_network);
    let problem = (known.manifests.is_empty() && seen.is_some())
        .then(|| format!("MCP server {} lists no tool that an agent can get", server.name()));
    let mut tools = table(seen.as_ref(), confirmed.as_ref(), &known);
    add_declarations(tx, &server, &mut tools)?;
    let holders = mcp::holders(tx, server.name())?.into_iter();
    let reached = |McpHost { host, port, upload_bytes_max }| McpServerHost {
        host,
        port,
        upload_bytes_max: upload_bytes_max.unwrap_or_default(),
    };
    let header = |McpHeader { name, secret, scheme }| McpServerHeader { name, secret, scheme };
    let variable = |McpVariable { variable, secret, text }| McpServerVariable { variable, secret, text };
    let mount = |Mount { source, target, read_only, mine: _ }| AgentMount {
        source,
        target: target.unwrap_or_default(),
        read_only: read_only.unwrap_or(true),
        mine: None,
    };
    let at = |time: &Option<(String, i64)>| time.as_ref().map(|(_, at)| ironclaw_ledger::rfc3339(*at));
    Ok(McpServer {
        login: login::view(tx, &server)?,
        transport: if server.described.url.is_some() { McpTransport::Http } else { McpTransport::Stdio },
        state: Server::state(seen.as_ref(), confirmed.as_ref()),
        era: seen.as_ref().map(|seen| seen.era.clone()),
        digest: seen.as_ref().map(Listing::digest),
        instructions: seen.as_ref().and_then(|seen| seen.instructions.clone()),
        tools,
        remarks: seen.map(|seen| seen.remarks).unwrap_or_default(),
        problem,
        agents: holders.map(|grant| McpHolder { agent: grant.agent_name, tools: grant.tools }).collect(),
        made_at: ironclaw_ledger::rfc3339(server.made_at),
        seen_at: at(&server.seen),
        confirmed_at: at(&server.confirmed),
        failure: None,
        manifest: server.manifest,
        proposed,
        name: server.described.name,
        url: server.described.url.unwrap_or_default(),
        command: server.described.command,
        packages: server.layer.map(|layer| {
            let Packages { apt, npm, pypi } = server.described.packages;
            AgentPackages { apt, npm, pypi, layer, made_at: ironclaw_ledger::rfc3339(server.made_at) }
        }),
        environment: server.described.environment.into_iter().map(variable).collect(),
        mounts: server.described.mounts.into_iter().map(mount).collect(),
        hosts: server.described.hosts.into_iter().map(reached).collect(),
        headers: server.described.headers.into_iter().map(header).collect(),
    })
}

/// Adds the declarations of people that texts in the answers of tools are theirs.
fn add_declarations(
    tx: &ReadTx<'_>,
    server: &Server,
    tools: &mut [McpServerTool],
) -> Result<(), ironclaw_state::Error> {
    if server.mine.is_empty() {
        return Ok(());
    }
    let lost = mcp::lost_declarations(tx, server)?.map(|lost| lost.words());
    for tool in tools {
        if let Some(person) = server.mine.get(&tool.name) {
            let person = registry::people::person_name(tx, *person)?;
            tool.mine = Some(OwnSource { person, lost: lost.clone() });
        }
    }
    Ok(())
}

/// Returns the tools of the last listing, then its entries without a name, and then the confirmed tools that it no longer has.
fn table(seen: Option<&Listing>, confirmed: Option<&Listing>, known: &Tools) -> Vec<McpServerTool> {
    let row = |name: &str, seen| tool(name, seen, confirmed, known);
    let listed = seen.into_iter().flat_map(Listing::names).filter(|name| !name.is_empty());
    let nameless = known.unfit.iter().filter(|unfit| unfit.name.is_empty());
    let nameless = nameless.map(|one| McpServerTool { unfit: Some(one.why.clone()), ..row("", seen) });
    let gone = confirmed.into_iter().flat_map(Listing::names);
    let gone = gone.filter(|name| seen.is_none_or(|seen| !seen.has(name)));
    listed.map(|name| row(name, seen)).chain(nameless).chain(gone.map(|name| row(name, None))).collect()
}

fn tool(name: &str, seen: Option<&Listing>, confirmed: Option<&Listing>, known: &Tools) -> McpServerTool {
    let manifest = seen.and_then(|_| known.manifests.get(name));
    let loosened = manifest.map(server::loosenings).unwrap_or_default();
    McpServerTool {
        name: name.to_owned(),
        offered_as: manifest.map(|manifest| manifest.name.clone()),
        description: seen.or(confirmed).map(|listing| listing.description(name)).unwrap_or_default().to_owned(),
        class: manifest.map(|manifest| manifest.class),
        arguments: manifest.map(tools::fields).unwrap_or_default(),
        labels: Labels::from_provenance(Provenance::Tool).list(),
        loosened: loosened.iter().map(Loosening::to_string).collect(),
        always_asks: manifest.is_some_and(|manifest| manifest.always_ask),
        mine: None,
        listed: seen.map_or(McpListed::Gone, |seen| seen.beside(confirmed, name)),
        unfit: seen.and_then(|_| known.unfit(name)).cloned(),
    }
}
