//! `ironctl mcp test` and `confirm`: looks at the listing of a server, and proposes its confirmation.
//!
//! Never confirms a listing that no digest names. See [`super::table`].

use super::{manifest, table, wording};
use crate::at::At;
use crate::commands::propose::{Proposed, apply, submit};
use crate::commands::review::{self, Words};
use crate::commands::waiting::OUTCOME_TIMEOUT;
use crate::failure::Error;
use crate::local_file;
use ironclaw_operator::{
    ChangeKind, Digest, McpLook, McpServer, McpServerState, PAYLOAD_BYTES_MAX, Waiting, WaitingStatus, routes,
};
use ironclaw_text::shell::quoted;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Options of `ironctl mcp test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl mcp test calendar\n  ironctl mcp test calendar --manifest calendar.toml")]
pub struct Test {
    /// Name of the server
    server: String,
    /// TOML file with manifests for the table [default: the proposed ones]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// Options of `ironctl mcp confirm`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl mcp confirm calendar --digest 0fc4dfc4feb3b154d20f22308900bf028642220b043804b050d3caaa49dede60\n  ironctl mcp confirm calendar --digest 0fc4dfc4feb3b154d20f22308900bf028642220b043804b050d3caaa49dede60 --manifest calendar.toml"
)]
pub struct Args {
    /// Name of the server
    server: String,
    /// Digest of the listing that you have seen, from `add` or `test`
    #[arg(long, value_name = "DIGEST")]
    digest: Digest,
    /// TOML file with manifests for tools that need looser rules [default: the strictest rules for every tool]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Take the rules that the host proposes: those of unchanged tools stay
    #[arg(long, conflicts_with = "manifest")]
    proposed: bool,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// Asks a server for its listing and prints the table; fails unless people confirmed this listing.
pub async fn test(at: &At, args: Test) -> Result<(), Error> {
    let Test { server, manifest } = args;
    let manifest = manifest.as_deref().map(read_manifest).transpose()?;
    let client = at.client()?;
    at.out.remark(format!("asking {server} for its tools"))?;
    let has_manifest = manifest.is_some();
    let server = client.post(routes::LOOK_AT_MCP_SERVER, [&server], &McpLook { manifest }).await?;
    at.out.json(&server)?;
    table::print(at.out, &server)?;
    if server.state == McpServerState::Confirmed && server.failure.is_none() {
        return at.out.line(format!("{} lists what people confirmed", server.name));
    }
    Err(unconfirmed(&server, has_manifest))
}

/// Returns the failure of a server that does not list what people confirmed.
fn unconfirmed(server: &McpServer, has_manifest: bool) -> Error {
    let name = &server.name;
    if let Some(failure) = &server.failure {
        let message = format!("the host cannot reach {name}: {}", wording::prose(failure));
        return Error::failed("mcp_unreachable", message).hinting("look at `ironctl logs`");
    }
    let (code, message) = match server.state {
        McpServerState::Changed => {
            let differences = wording::differences(&server.tools);
            let differences = if differences.is_empty() { String::new() } else { format!(": {differences}") };
            ("mcp_changed", format!("{name} lists something else than people confirmed{differences}"))
        }
        McpServerState::New | McpServerState::Proposed | McpServerState::Confirmed => {
            ("mcp_unconfirmed", format!("people did not confirm the tools of {name}"))
        }
    };
    let hint = advice(server, has_manifest).unwrap_or_else(|| format!("`ironctl mcp show {}` has more", quoted(name)));
    Error::failed(code, message).hinting(hint)
}

/// Returns the next step for a person who agrees with the table of a server, made with the manifests of a file or with the proposed ones.
pub fn advice(server: &McpServer, has_file: bool) -> Option<String> {
    Some(format!("if you agree with the table: {}", wording::confirmation(server, has_file)?))
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let Args { server, digest, manifest, proposed, yes } = args;
    let manifest = match proposed {
        true => Some(at.client()?.call(routes::MCP_SERVER, [&server]).await?.proposed).filter(|text| !text.is_empty()),
        false => manifest.as_deref().map(read_manifest).transpose()?,
    };
    at.out.json(&propose(at, &server, digest, manifest, yes).await?)
}

/// Proposes the confirmation of a listing and applies the decision of the caller, who may edit the manifests and read the page again.
pub async fn propose(
    at: &At,
    server: &str,
    digest: Digest,
    mut manifest: Option<String>,
    yes: bool,
) -> Result<Option<Waiting>, Error> {
    let client = at.client()?;
    let mut is_edited = false;
    let decided = loop {
        let mut payload = json!({ "server": server, "digest": digest });
        if let Some(manifest) = &manifest {
            payload["manifest"] = json!(manifest);
        }
        let submitted = submit(&client, ChangeKind::McpConfirm, None, payload).await;
        if let (Err(error @ Error::Refused(_)), true, Some(text)) = (&submitted, is_edited, &manifest) {
            at.out.failure(error);
            match review::read_answer(at.out, "Enter to edit it again, quit? ").await?.as_deref() {
                None | Some("quit") => break submitted.map(|_| None)?,
                Some(_) => manifest = Some(manifest::edit(text)?),
            }
            continue;
        }
        let words = if manifest.is_some() { Words::Edited } else { Words::One };
        match apply(at, &client, submitted, yes, OUTCOME_TIMEOUT, words).await? {
            Proposed::Nothing => break None,
            Proposed::Decided(decided) => break Some(*decided),
            Proposed::Edit => (manifest, is_edited) = (Some(manifest::edit(&manifest.unwrap_or_default())?), true),
        }
    };
    if decided.as_ref().is_none_or(|change| change.entry.status == WaitingStatus::Done) {
        remark_on_holders(at, server).await?;
    }
    Ok(decided)
}

/// Prints the agents that may call tools of a server, or the command that lets one call them.
async fn remark_on_holders(at: &At, server: &str) -> Result<(), Error> {
    // The confirmation is done, so a failed request is no failure of it.
    let holders =
        at.client()?.call(routes::MCP_SERVER, [&server]).await.map(|server| server.agents).unwrap_or_default();
    if holders.is_empty() {
        return at.out.remark(format!("let an agent call its tools: ironctl mcp grant AGENT {}", quoted(server)));
    }
    let names: Vec<String> = holders.into_iter().map(|holder| holder.agent).collect();
    at.out.remark(format!("agents that have its tools: {}", names.join(" ")))
}

/// Reads a file with manifests; the host refuses one that is wrong.
pub fn read_manifest(path: &Path) -> Result<String, Error> {
    let bytes = local_file::read(path, PAYLOAD_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|_| {
        Error::failed("file_refused", format!("{} is not UTF-8", path.display()))
            .hinting("name a TOML file, such as one of `ironctl mcp show NAME --manifest`")
    })
}
