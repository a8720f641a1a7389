//! The checks of model endpoints, channels and MCP servers, through the running host.
//!
//! An endpoint gets one small request, as by `ironctl model test`. The receiver of a channel gets a connection and no request, and an
//! MCP server gets neither. See [`super`].

use super::check::{failed, passed};
use crate::at::At;
use crate::client::Client;
use crate::commands::mcp;
use crate::failure::Error;
use ironclaw_operator::{Channel, Check, McpServer, Model, ModelKind, routes};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time for one endpoint or channel. All are asked at once.
const ASK_WAIT: Duration = Duration::from_secs(20);

/// Returns a check for each model endpoint, each channel and each MCP server, in the order of their lists.
pub async fn checks(at: &At) -> Vec<Check> {
    let client = match at.client() {
        Ok(client) => Arc::new(client),
        Err(error) => return vec![failed("model endpoints and channels", &error, "look at `ironctl logs`")],
    };
    let mut asked = JoinSet::new();
    let (mut checks, mut refused): (Vec<(usize, Check)>, Vec<Check>) = Default::default();
    match client.call(routes::MODELS, []).await {
        Ok(models) => {
            for model in models {
                let (client, place) = (Arc::clone(&client), asked.len());
                asked.spawn(async move { (place, model_check(&client, &model).await) });
            }
        }
        Err(error) => checks.push((0, unlisted("model endpoints", &error))),
    }
    match client.call(routes::CHANNELS, []).await {
        Ok(channels) => {
            refused.extend(channels.iter().filter_map(refused_check));
            for channel in channels {
                let (client, place) = (Arc::clone(&client), asked.len());
                asked.spawn(async move { (place, channel_check(&client, &channel.name).await) });
            }
        }
        Err(error) => checks.push((usize::MAX, unlisted("channels", &error))),
    }
    checks.extend(asked.join_all().await);
    checks.sort_by_key(|(place, _)| *place);
    let mut checks: Vec<Check> = checks.into_iter().map(|(_, check)| check).chain(refused).collect();
    match client.call(routes::MCP_SERVERS, []).await {
        Ok(servers) => checks.extend(servers.iter().map(server_check)),
        Err(error) => checks.push(unlisted("MCP servers", &error)),
    }
    checks
}

/// Returns the check of an MCP server from the last contact of the host. Sends the server no request.
fn server_check(server: &McpServer) -> Check {
    let name = format!("MCP server {}", server.name);
    match mcp::attention(server) {
        Some(found) => Check { name, ok: false, found, remedy: mcp::repair(server) },
        None => passed(&name, format!("{}, {} tools", server.state, server.tools.len())),
    }
}

async fn model_check(client: &Client, model: &Model) -> Check {
    let name = format!("model {}", model.name);
    if model.kind == ModelKind::Scripted {
        return passed(&name, "it answers by rules, not by a model".to_owned());
    }
    match timeout(ASK_WAIT, client.call(routes::TEST_MODEL, [&model.name])).await {
        Ok(Ok(tested)) => {
            let key = if model.key.is_some() { ", and its key is accepted" } else { "" };
            passed(&name, format!("it answers after {} ms{key}", tested.took_ms))
        }
        Ok(Err(error)) => refused(&name, &error, &format!("`ironctl model test {}`", model.name)),
        Err(_) => {
            late(&name, &format!("`ironctl model test {}` waits longer, for a server that loads a model", model.name))
        }
    }
}

async fn channel_check(client: &Client, channel: &str) -> Check {
    let name = format!("channel {channel}");
    match timeout(ASK_WAIT, client.call(routes::PROBE_CHANNEL, [&channel])).await {
        Ok(Ok(probe)) if probe.reached => passed(&name, probe.result),
        Ok(Ok(probe)) => {
            let remedy = format!(
                "start the receiver; `ironctl channel list` has its address, `ironctl channel test {channel}` sends a test"
            );
            Check { name, ok: false, found: probe.result, remedy }
        }
        Ok(Err(error)) => refused(&name, &error, &format!("`ironctl channel test {channel}`")),
        Err(_) => late(&name, &format!("`ironctl channel test {channel}`")),
    }
}

/// Returns a note about the refused requests to a channel; it is no failure, since anyone can send such requests.
fn refused_check(channel: &Channel) -> Option<Check> {
    let newest = channel.refused.first()?;
    let named: Vec<String> =
        channel.refused.iter().map(|refused| format!("{} {}", refused.count, refused.rule_name())).collect();
    let cause = newest.meaning().trim_end_matches('.');
    Some(Check {
        name: format!("requests to {}", channel.name),
        ok: true,
        found: format!("refused since the start of the host: {}; the newest: {cause}", named.join(", ")),
        remedy: "`ironctl channel list` has all causes".to_owned(),
    })
}

fn unlisted(name: &str, error: &Error) -> Check {
    refused(name, error, "use the token of an admin")
}

fn late(name: &str, remedy: &str) -> Check {
    let found = format!("no answer within {} seconds", ASK_WAIT.as_secs());
    Check { name: name.to_owned(), ok: false, found, remedy: remedy.to_owned() }
}

/// Returns the failed check with the hint of the host as its remedy, if there is one.
fn refused(name: &str, error: &Error, otherwise: &str) -> Check {
    let hint = error.report().map(|failure| failure.error.hint).filter(|hint| !hint.is_empty());
    failed(name, error, hint.as_deref().unwrap_or(otherwise))
}
