//! `ironctl egress`: grants an agent hosts of the network, takes them back, lists them, and judges a request without sending it.
//!
//! Never sets a grant itself: the change goes through the gateway. See [`crate::commands::propose`].

mod uses;

use self::uses::{Described, Use};
use super::named_agent::NamedAgent;
use super::propose;
use super::tool::print_tested;
use crate::at::At;
use crate::failure::Error;
use clap::Subcommand;
use ironclaw_operator::{ChangeKind, Commands, EgressGrant, TestCall, routes};
use serde_json::{Value, json};

/// The verbs of `ironctl egress`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Let the host send requests to a host of the network for an agent
    Grant(Grant),
    /// Take a host of the network back from an agent
    #[command(
        after_help = "Example:\n  ironctl egress revoke assistant api.github.com\n  ironctl egress revoke assistant db.example.com:5443"
    )]
    Revoke {
        /// Name or id of the agent
        agent: String,
        /// Name of the host, alone or with its port as HOST:PORT
        host: String,
        /// Approve the change without a question
        #[arg(long)]
        yes: bool,
    },
    /// List the granted hosts of all agents, or of one
    #[command(after_help = "Example:\n  ironctl egress list\n  ironctl egress list assistant")]
    List(NamedAgent),
    /// Judge a request without sending it, as if a person had typed its address
    #[command(after_help = "Example:\n  ironctl egress test assistant GET https://api.github.com/zen")]
    Test {
        /// Name or id of the agent
        agent: String,
        /// Method, such as GET
        method: String,
        /// Whole address
        url: String,
        /// Judge it as if a model had composed the address
        #[arg(long)]
        composed: bool,
    },
}

/// Options of `ironctl egress grant`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl egress grant assistant docs.rs --path '/crate/{name}'\n  ironctl egress grant assistant api.github.com --method GET --method POST --path '/repos/{owner}/{repo}/issues' --secret github\n  ironctl egress grant assistant db.example.com:5443 --commands tunnel"
)]
pub struct Grant {
    /// Name or id of the agent
    agent: String,
    /// Name of the host, without a wildcard; with its port as HOST:PORT, or by --port. As http://HOST for plain http to the local
    /// network, which `[egress] lan` of config.toml has to allow
    host: String,
    /// Port, if it is not 443, or 80 behind http://
    #[arg(long)]
    port: Option<u16>,
    /// Method; repeatable [default: GET and HEAD]
    #[arg(long, value_name = "METHOD")]
    method: Vec<String>,
    /// Path, with `{name}` for one free part; repeatable [default: only addresses that a person typed]
    #[arg(long, value_name = "TEMPLATE")]
    path: Vec<String>,
    /// Name of the secret that each request carries
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,
    /// Let commands use the host too: git, npm, pip, cargo, go, gem or other. Without --path, all but other get the paths of packages, and
    /// git those of all repositories. With tunnel, only commands use it, by TLS connections that the host cannot read
    #[arg(long, value_name = "USE")]
    commands: Option<Use>,
    /// Let the agent push commits with the tool git_push too, after an approval; with --commands git only
    #[arg(long, requires = "commands")]
    push: bool,
    /// Bytes of the body of a request, or that a command sends in tunnels [default: 65536 for methods with a body and tunnels]
    #[arg(long, value_name = "BYTES")]
    upload_bytes_max: Option<u64>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Grant(args) => grant(at, args).await,
        Action::Revoke { agent, host, yes } => {
            let (host, port) = host_and_port(host, None)?;
            let mut payload = json!({ "host": host, "methods": [] });
            if let Some(port) = port {
                payload["port"] = port.into();
            }
            propose::decide_and_print(at, ChangeKind::Egress, Some(&agent), payload, yes).await
        }
        Action::List(of) => list(at, of.name()).await,
        Action::Test { agent, method, url, composed } => {
            let arguments = json!({ "method": method, "url": url }).to_string();
            let allow = vec!["read".to_owned(), "send".to_owned()];
            let call = TestCall { agent, arguments, allow, external: false, typed: !composed };
            print_tested(at, at.client()?.post(routes::TEST_CALL, [&"http_fetch"], &call).await?)
        }
    }
}

async fn grant(at: &At, args: Grant) -> Result<(), Error> {
    let Grant { agent, host, port, mut method, path, secret, commands, push, upload_bytes_max, yes } = args;
    let is_git = commands == Some(Use::Git);
    if push && !is_git {
        return Err(Error::usage("--push needs --commands git", "add --commands git, or leave --push out"));
    }
    let (host, port) = host_and_port(host, port)?;
    let described = match commands {
        Some(of_use) => of_use.described(&host, path, push)?,
        None => Described { paths: path, commands: None },
    };
    if is_git && method.is_empty() {
        method = vec!["GET".to_owned(), "POST".to_owned()];
    }
    let of_git = if push { PUSH_BYTES } else { GIT_UPLOAD_BYTES };
    let upload_bytes_max = upload_bytes_max.or(is_git.then_some(of_git));
    let is_usual = method.is_empty() && described.commands != Some(Commands::Tunnel);
    let methods = if is_usual { vec!["GET".to_owned(), "HEAD".to_owned()] } else { method };
    let mut payload = json!({ "host": host, "methods": methods });
    let optional = [
        ("port", port.map(Value::from)),
        ("paths", (!described.paths.is_empty()).then(|| json!(described.paths))),
        ("secret", secret.map(Value::from)),
        ("upload_bytes_max", upload_bytes_max.map(Value::from)),
        ("commands", described.commands.map(|commands| Value::from(commands.name()))),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            payload[name] = value;
        }
    }
    propose::decide_and_print(at, ChangeKind::Egress, Some(&agent), payload, yes).await
}

/// The begin of a host that the local network has without TLS.
const PLAIN: &str = "http://";

/// Splits a port off the host.
fn host_and_port(host: String, port: Option<u16>) -> Result<(String, Option<u16>), Error> {
    let scheme = if host.starts_with(PLAIN) { PLAIN.len() } else { 0 };
    let split = host.rsplit_once(':').filter(|(name, _)| name.len() > scheme && !name[scheme..].contains(':'));
    match split.and_then(|(name, digits)| Some((name, digits.parse().ok()?))) {
        Some((_, of_host)) if port.is_some_and(|port| port != of_host) => {
            Err(Error::usage("two ports", "write the port once: behind the host, or as --port"))
        }
        Some((name, of_host)) => Ok((name.to_owned(), Some(of_host))),
        // The host names the wrong part.
        None => Ok((host, port)),
    }
}

/// Bytes of the request in which git names what it has.
const GIT_UPLOAD_BYTES: u64 = 1 << 20;
/// Bytes of a push.
const PUSH_BYTES: u64 = 10 << 20;

async fn list(at: &At, agent: Option<String>) -> Result<(), Error> {
    let client = at.client()?;
    let grants = match agent {
        Some(agent) => client.call(routes::EGRESS_OF_AGENT, [&agent]).await?,
        None => client.call(routes::EGRESS, []).await?,
    };
    let row = |grant: EgressGrant| {
        let host = grant.port.map_or_else(|| grant.host.clone(), |port| format!("{}:{port}", grant.host));
        let paths = match grant.commands {
            Some(Commands::Tunnel) => "not limited".to_owned(),
            _ if grant.paths.is_empty() => "typed addresses".to_owned(),
            _ => grant.paths.join(" "),
        };
        let secret = grant.secret.map(|secret| format!("secret:{secret}")).unwrap_or_default();
        let commands = grant.commands.map(|commands| commands.to_string()).unwrap_or_default();
        [grant.agent, host, grant.methods.join(" "), paths, secret, commands]
    };
    at.out.list(grants, "no granted hosts", ["AGENT", "HOST", "METHODS", "PATHS", "SECRET", "COMMANDS"], row)
}
