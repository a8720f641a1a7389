//! Starts the example `mcp_server` and connects to it.

use ironclaw_mcp::{Answer, CallLimits, Client, Era, Error, Limits, NotAnswered, Output};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use std::env;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use url::Url;

/// The way to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Streams,
    Http,
}

/// Every way in every era.
pub(crate) const ALL: [(Way, Era); 4] = [
    (Way::Streams, Era::Session),
    (Way::Streams, Era::Stateless),
    (Way::Http, Era::Session),
    (Way::Http, Era::Stateless),
];

/// A server with its connection. The server ends with it.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) child: Child,
}

impl Connected {
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, NotAnswered> {
        self.client.call(tool, object(arguments), quick()).await
    }

    /// Calls a tool that must answer.
    pub(crate) async fn done(&self, tool: &str, arguments: Value) -> Output {
        match self.call(tool, arguments).await {
            Ok(Answer::Done(output)) => output,
            other => panic!("{tool} gave {other:?}"),
        }
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("arguments are an object").clone()
}

/// Limits of a call that waits no longer than a test may.
pub(crate) fn quick() -> CallLimits {
    CallLimits { whole: Duration::from_secs(30), ..CallLimits::default() }
}

/// Limits of a call that is expected to be late.
pub(crate) fn late() -> CallLimits {
    CallLimits { whole: Duration::from_secs(1), ..CallLimits::default() }
}

pub(crate) async fn connect((way, era): (Way, Era), arguments: &[&str]) -> Connected {
    let connected = try_connect((way, era), arguments, Limits::default()).await;
    connected.unwrap_or_else(|error| panic!("{way:?} {era:?} {arguments:?}: {error}"))
}

pub(crate) async fn try_connect(
    (way, era): (Way, Era),
    arguments: &[&str],
    limits: Limits,
) -> Result<Connected, Error> {
    let mut child = start(way, era, arguments);
    let output = child.stdout.take().expect("the output is a pipe");
    let client = match way {
        Way::Streams => {
            let input = child.stdin.take().expect("the input is a pipe");
            Client::over_streams(output, input, limits).await?
        }
        Way::Http => {
            let line = BufReader::new(output).lines().next_line().await.expect("the output is text");
            let url = line.and_then(|line| Url::parse(&line).ok()).expect("the server prints its address");
            Client::over_http(url, HeaderMap::new(), http(), limits).await?
        }
    };
    Ok(Connected { client, child })
}

/// A client of HTTP such as the host makes.
pub(crate) fn http() -> reqwest::Client {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).tls_certs_only([]);
    builder.retry(reqwest::retry::never()).build().expect("a client without certificates and files cannot fail")
}

/// Returns the program of an example.
pub(crate) fn example(name: &str) -> PathBuf {
    // The test is in `deps`, the example beside it in `examples`.
    let test = env::current_exe().expect("a process knows its program");
    let profile = test.ancestors().nth(2).expect("a test is in the directory deps of a profile");
    profile.join("examples").join(name)
}

fn start(way: Way, era: Era, arguments: &[&str]) -> Child {
    let mut command = Command::new(example("mcp_server"));
    command.args(arguments).args((era == Era::Stateless).then_some("--stateless"));
    command.args((way == Way::Http).then_some("--http=0"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().expect("`cargo test` builds the examples, `cargo test --test it` alone does not")
}
