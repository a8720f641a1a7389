//! `ironctl mcp import`: takes the MCP servers of a configuration file of another program over, each through the change of `mcp add`.
//!
//! Never takes a secret from the command line, and puts no secret of the file into a change. See [`entry`] for what an entry becomes.

mod document;
mod entry;
mod secrets;
mod value;

use crate::at::At;
use crate::client::Client;
use crate::commands::agent::software;
use crate::commands::propose;
use crate::commands::waiting::OUTCOME_TIMEOUT;
use crate::failure::Error;
use crate::local_file;
use entry::{Place, Plan, Use};
use ironclaw_operator::{ChangeKind, McpCommand, McpResolvedCommand, WaitingStatus, routes};
use ironclaw_text::shell::quoted;
use secrets::Stored;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Bytes of a file.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// Options of `ironctl mcp import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl mcp import .mcp.json --check\n  ironctl mcp import claude_desktop_config.json\n  ironctl mcp import .vscode/mcp.json --entry github"
)]
pub struct Args {
    /// File with mcpServers or servers, such as .mcp.json, claude_desktop_config.json or mcp.json; - is stdin
    file: PathBuf,
    /// Print what each entry becomes, and change nothing
    #[arg(long)]
    check: bool,
    /// Entry to take over; repeatable [default: all]
    #[arg(long, value_name = "NAME")]
    entry: Vec<String>,
    /// Store missing secrets with the values in the file, without a question
    #[arg(long)]
    secrets_from_file: bool,
    /// Approve the new servers without a question; their tools still wait for a confirmation
    #[arg(long)]
    yes: bool,
}

/// An entry on its way.
struct Imported {
    entry: String,
    plan: Option<Plan>,
    resolved: McpResolvedCommand,
    /// The reason why it is not taken over.
    refused: Option<String>,
    /// The id of its change.
    change: Option<String>,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let Args { file, check, entry: wanted, secrets_from_file, yes } = args;
    let entries = read_entries(&file, &wanted)?;
    let client = at.client()?;
    let stored = Stored::read(&client, secrets_from_file).await?;
    let mut imported: Vec<Imported> = Vec::new();
    for named in entries {
        let taken: Vec<String> =
            imported.iter().filter_map(|one| one.plan.as_ref()).map(|plan| plan.server.clone()).collect();
        let one = match entry::read(&named, &taken) {
            Ok(plan) => resolve(at, &client, plan).await?,
            Err(why) => Imported::refused(named.name, None, why),
        };
        imported.push(one);
    }
    print_plans(at, &imported)?;
    if !check {
        for one in imported.iter_mut().filter(|one| one.refused.is_none()) {
            propose(at, &client, &stored, one, yes).await?;
        }
    }
    finish(at, &imported, &stored, check)
}

fn read_entries(file: &std::path::Path, wanted: &[String]) -> Result<Vec<document::Named>, Error> {
    let path = if file.as_os_str() == "-" { "/dev/stdin".as_ref() } else { file };
    let text = local_file::read(path, FILE_BYTES_MAX)?;
    let unread = |why| Error::failed("mcp_import_file", format!("cannot take servers from {}: {why}", file.display()));
    let hint = "give a file with mcpServers or servers, such as .mcp.json, claude_desktop_config.json or mcp.json";
    let mut entries = document::read(&text).map_err(|why| unread(why).hinting(hint))?;
    if let Some(missing) = wanted.iter().find(|name| !entries.iter().any(|entry| entry.name == **name)) {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        return Err(unread(format!("it has no entry {missing:?}")).hinting(format!("it has {}", names.join(", "))));
    }
    entries.retain(|entry| wanted.is_empty() || wanted.contains(&entry.name));
    Ok(entries)
}

impl Imported {
    fn refused(entry: String, plan: Option<Plan>, why: String) -> Self {
        Self { entry, plan, resolved: McpResolvedCommand::default(), refused: Some(why), change: None }
    }
}

/// Asks the host for the packages and the program of a command.
async fn resolve(at: &At, client: &Client, mut plan: Plan) -> Result<Imported, Error> {
    let Place::Command(words) = &plan.place else {
        let entry = plan.entry.clone();
        return Ok(Imported {
            entry,
            plan: Some(plan),
            resolved: McpResolvedCommand::default(),
            refused: None,
            change: None,
        });
    };
    at.out.remark(format!("looking up {}", plan.entry))?;
    let asked = McpCommand { command: words.clone() };
    let entry = plan.entry.clone();
    match client.post(routes::RESOLVE_MCP_COMMAND, [], &asked).await {
        Ok(resolved) => {
            if !resolved.programs.is_empty() {
                let program = resolved.command.first().map(String::as_str).unwrap_or_default();
                plan.remarks
                    .push(format!("its package brings {}; the server starts {program}", resolved.programs.join(", ")));
            }
            Ok(Imported { entry, plan: Some(plan), resolved, refused: None, change: None })
        }
        Err(error) => Ok(Imported::refused(entry, Some(plan), reason(error)?)),
    }
}

/// Returns the words of a refusal; another failure ends the command.
fn reason(error: Error) -> Result<String, Error> {
    let is_of_entry = matches!(error, Error::Refused(_) | Error::Usage { .. } | Error::Failed { .. });
    let Some(failure) = error.report().filter(|_| is_of_entry) else { return Err(error) };
    let (message, hint) = (failure.error.message, failure.error.hint);
    Ok(if hint.is_empty() { message } else { format!("{message}; {hint}") })
}

/// Stores the secrets of an entry, and proposes its server.
async fn propose(at: &At, client: &Client, stored: &Stored, one: &mut Imported, yes: bool) -> Result<(), Error> {
    let Some(plan) = &mut one.plan else { return Ok(()) };
    if let Some(why) = stored.ensure(at, client, plan).await? {
        one.refused = Some(why);
        return Ok(());
    }
    let McpResolvedCommand { command, npm, pypi, .. } = &one.resolved;
    let payload = plan.payload(command, npm, pypi);
    let fetches = !npm.is_empty() || !pypi.is_empty();
    let patience = if fetches { software::FETCH_TIMEOUT } else { OUTCOME_TIMEOUT };
    let submitted = propose::submit(client, ChangeKind::McpRegister, None, payload).await;
    match propose::decide_submitted(at, client, submitted, yes, patience).await {
        Ok(decided) => {
            one.refused = decided
                .as_ref()
                .filter(|change| change.entry.status != WaitingStatus::Done)
                .map(|change| format!("its change {} is {}", change.entry.id, change.entry.status));
            one.change = decided.map(|change| change.entry.id.to_string());
        }
        Err(error) => one.refused = Some(in_lan(&plan.place, reason(error)?)),
    }
    Ok(())
}

/// Adds to the refusal of an address of a private network the setting that names the network.
fn in_lan(place: &Place, why: String) -> String {
    let Place::Url(url) = place else { return why };
    let host = url.parse::<hyper::Uri>().ok().and_then(|uri| uri.host()?.parse::<std::net::Ipv4Addr>().ok());
    match host.is_some_and(|host| host.is_private()) && url.starts_with("http://") {
        true => format!("{why}; an address of your own network needs its network in [egress] lan of config.toml"),
        false => why,
    }
}

/// Prints what each entry becomes.
fn print_plans(at: &At, imported: &[Imported]) -> Result<(), Error> {
    let row = |one: &Imported| {
        let server = one.plan.as_ref().map(|plan| plan.server.clone()).unwrap_or_default();
        let becomes = if one.refused.is_some() { "not taken over".to_owned() } else { one.words() };
        let secrets = one.plan.iter().flat_map(|plan| plan.secrets.iter().map(|needed| needed.secret.as_str()));
        [one.entry.clone(), server, becomes, secrets.collect::<Vec<_>>().join(" ")]
    };
    at.out.table(["ENTRY", "SERVER", "BECOMES", "SECRETS"], imported.iter().map(row))?;
    for one in imported {
        for remark in one.plan.iter().flat_map(|plan| &plan.remarks) {
            at.out.remark(format!("{}: {remark}", one.entry))?;
        }
    }
    Ok(())
}

impl Imported {
    /// Returns the words of `ironctl mcp add` for it, without its name.
    fn words(&self) -> String {
        let Some(plan) = &self.plan else { return String::new() };
        let mut words = Vec::new();
        let mut option = |option: &str, value: &str| words.extend([format!("--{option}"), quoted(value).into_owned()]);
        if let Place::Url(url) = &plan.place {
            option("url", url);
        }
        self.resolved.npm.iter().for_each(|package| option("npm", package));
        self.resolved.pypi.iter().for_each(|package| option("pypi", package));
        for needed in &plan.secrets {
            match &needed.at {
                Use::Variable(variable) => option("env", &format!("{variable}=secret:{}", needed.secret)),
                Use::Header { name, scheme } => {
                    let scheme = scheme.as_ref().map(|scheme| format!("{scheme} ")).unwrap_or_default();
                    option("header", &format!("{name}={scheme}secret:{}", needed.secret));
                }
            }
        }
        plan.texts.iter().for_each(|(variable, text)| option("env", &format!("{variable}=text:{text}")));
        plan.mounts.iter().for_each(|mount| option("mount", &mount.source));
        if !self.resolved.command.is_empty() {
            words.push("--".to_owned());
            words.extend(self.resolved.command.iter().map(|word| quoted(word).into_owned()));
        }
        words.join(" ")
    }

    fn for_scripts(&self) -> Value {
        let payload = self.plan.as_ref().filter(|_| self.refused.is_none());
        let McpResolvedCommand { command, npm, pypi, programs } = &self.resolved;
        json!({
            "entry": self.entry,
            "server": self.plan.as_ref().map(|plan| &plan.server),
            "payload": payload.map(|plan| plan.payload(command, npm, pypi)),
            "programs": programs,
            "secrets": self.plan.iter().flat_map(|plan| plan.secrets.iter().map(|one| &one.secret)).collect::<Vec<_>>(),
            "remarks": self.plan.as_ref().map(|plan| plan.remarks.clone()).unwrap_or_default(),
            "refused": self.refused,
            "change": self.change,
        })
    }
}

/// Names the entries that are not taken over, and the next commands for the others.
fn finish(at: &At, imported: &[Imported], stored: &Stored, check: bool) -> Result<(), Error> {
    at.out.json(&imported.iter().map(Imported::for_scripts).collect::<Vec<_>>())?;
    let mut left = 0;
    for one in imported {
        match (&one.refused, &one.plan) {
            (Some(why), _) => {
                left += 1;
                at.out.remark(format!("{} is not taken over: {why}", one.entry))?;
            }
            (None, Some(plan)) if check => {
                for secret in stored.missing(plan) {
                    at.out.remark(format!("{} needs a secret: ironctl secret set {}", one.entry, quoted(secret)))?;
                }
            }
            (None, Some(plan)) => at.out.remark(format!("next: ironctl mcp test {}", quoted(&plan.server)))?,
            (None, None) => {}
        }
    }
    if left == 0 {
        return Ok(());
    }
    let verb = if check { "cannot be" } else { "were not" };
    let message = format!("{left} of {} entries {verb} taken over; the reasons are above", imported.len());
    Err(Error::failed("mcp_import", message).hinting("correct them in the file, or add them with `ironctl mcp add`"))
}
