//! Commands that reach the network: each in a jail of its own, with the gateway of the host as its only peer.
//!
//! Never gives a command a secret, and never lets one run beside another in the same jail. The jail of the session has no network. See
//! [`crate::reach::jail_network`] for the gateway, and `runtime::launch::Jails` for the jail.

mod environment;

use crate::reach::jail_network::{Fetchers, Gateway, Reach, Traffic};
use crate::sessions::store::Session;
use crate::turns::calls::ResultBody;
use ironclaw_contract::seam::link::path::WORKSPACE;
use ironclaw_jail::client::{Client, Streams};
use ironclaw_jail::launcher::{Exit, Jailed, link};
use ironclaw_text::lookalike;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout_at};

/// The time limit of a command if the call has none, and the longest one, in seconds.
const SECONDS_MAX: u32 = crate::registry::tools::COMMAND_SECONDS_MAX;
/// The words of programs that ask no proxy and find no host.
const NO_NAMES: [&str; 9] = [
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Connection refused",
    "connection refused",
    "no such host",
    "EAI_AGAIN",
    "ENOTFOUND",
    "socket: operation not permitted",
];
const NO_NAMES_HINT: &str = "[no name resolves in the jail of a command: let the program use the proxy that https_proxy names, or ask for \
                             http://127.0.0.1:8129/HOST/PATH]\n";
/// Bytes of output in a result.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

pub trait CommandJails: Send + Sync {
    /// Starts a program in a jail with the files of a session and a listener on [`crate::reach::jail_network::PORT`], after a check of its walls.
    ///
    /// # Errors
    /// A sentence with the reason. No process is left then.
    fn launch<'a>(&'a self, session: &'a Session, client: Client, link: OwnedFd) -> Launching<'a>;
}

/// A jail that is being made.
pub type Launching<'a> = Pin<Box<dyn Future<Output = Result<Jailed, String>> + Send + 'a>>;

/// A command that may run.
pub struct Order {
    /// The session whose files it sees.
    pub session: Session,
    /// The command for the shell.
    pub command: String,
    /// Its time limit.
    pub seconds: u32,
    /// The hosts that it may reach.
    pub reach: Reach,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout_seconds: Option<u32>,
}

/// Reads the arguments of a call: the command and its time limit.
///
/// # Errors
/// A sentence about the first wrong argument.
pub fn arguments(arguments: &Map<String, Value>) -> Result<(String, u32), String> {
    let Arguments { command, timeout_seconds } =
        Arguments::deserialize(arguments).map_err(|error| error.to_string())?;
    Ok((command, timeout_seconds.unwrap_or(SECONDS_MAX).clamp(1, SECONDS_MAX)))
}

/// Runs a command to its end, at most for the time that is left. No process of it is left afterwards, also if the future is dropped.
pub async fn run(
    jails: &dyn CommandJails,
    fetchers: Arc<Fetchers>,
    order: &Order,
    left: Duration,
) -> (ResultBody, Traffic) {
    let until = Instant::now() + left.min(Duration::from_secs(order.seconds.into()));
    match started(jails, fetchers, order, until).await {
        Ok((jailed, gateway, link)) => {
            let ended = watch(&jailed, link, until).await;
            let traffic = gateway.close();
            (outcome(&ended, &traffic), traffic)
        }
        Err(words) => (ResultBody::failed(format!("failed: the command was not started: {words}")), Traffic::default()),
    }
}

async fn started(
    jails: &dyn CommandJails,
    fetchers: Arc<Fetchers>,
    order: &Order,
    until: Instant,
) -> Result<(Jailed, Gateway, UnixStream), String> {
    let (ours, theirs) = link().map_err(|error| error.to_string())?;
    let mut jailed = jails.launch(&order.session, client(order), theirs).await?;
    let listener = jailed.listener.take().ok_or("the host has no descriptor left for its gateway")?;
    let gateway = Gateway::start(listener, &order.reach, fetchers, Some(until)).map_err(|error| error.to_string())?;
    Ok((jailed, gateway, ours))
}

fn client(order: &Order) -> Client {
    let environment = environment::variables(&order.reach);
    Client {
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), order.command.clone()],
        environment: environment.into_iter().map(|(name, value)| (name, value.into())).collect(),
        directory: WORKSPACE.to_owned(),
        streams: Streams::Output,
        ..Client::default()
    }
}

struct Ended {
    /// `None` at its time limit.
    exit: Option<Exit>,
    /// The beginning of its output.
    output: Vec<u8>,
    /// Bytes of its whole output.
    bytes: u64,
}

/// Reads the output until no process of the command is left. At the time limit, all of them are killed.
async fn watch(jailed: &Jailed, mut link: UnixStream, until: Instant) -> Ended {
    let mut ended = Ended { exit: None, output: Vec::new(), bytes: 0 };
    let all = async { tokio::join!(jailed.exited(), read(&mut link, &mut ended.output, &mut ended.bytes)) };
    match timeout_at(until, all).await {
        Ok((exit, ())) => ended.exit = Some(exit),
        Err(_) => {
            jailed.kill();
            jailed.exited().await;
            read(&mut link, &mut ended.output, &mut ended.bytes).await;
        }
    }
    ended
}

async fn read(link: &mut UnixStream, output: &mut Vec<u8>, bytes: &mut u64) {
    let mut chunk = vec![0; 16 * 1024];
    // An error is the end of the link too.
    while let Ok(length @ 1..) = link.read(&mut chunk).await {
        *bytes += length as u64;
        let room = OUTPUT_BYTES_MAX.saturating_sub(output.len()).min(length);
        output.extend_from_slice(&chunk[..room]);
    }
}

fn outcome(ended: &Ended, traffic: &Traffic) -> ResultBody {
    let mut text = lookalike::neutralise(&String::from_utf8_lossy(&ended.output)).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if ended.bytes > ended.output.len() as u64 {
        let _ =
            writeln!(text, "[{} bytes of output, of which the first {} are shown]", ended.bytes, ended.output.len());
    }
    text.push_str(&traffic.refusals_shown());
    if ended.exit != Some(Exit::Code(0)) && NO_NAMES.iter().any(|words| text.contains(words)) {
        text.push_str(NO_NAMES_HINT);
    }
    let _ = match ended.exit {
        Some(Exit::Code(code)) => write!(text, "[exit code {code}]"),
        Some(exit @ Exit::Signal(_)) => write!(text, "[{exit}]"),
        None => write!(text, "[ended: time limit reached]"),
    };
    ResultBody::new(ended.exit == Some(Exit::Code(0)), text)
}
