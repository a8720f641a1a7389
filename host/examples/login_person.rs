//! A person who adds an MCP server to a running host, for the published conformance tests of logins.
//!
//! `login_person IRONCTL HOME AGENT URL` does with `ironctl` what a person types: adds the server, reads the issuer and the scopes from the
//! refusal of the login, approves them, follows the page of the issuer as a browser does, confirms the tools, and asks the agent for a call
//! of each. It ends with an error at the first refusal. `MCP_CONFORMANCE_CONTEXT` can name the id and the secret of a client.

use serde_json::Value;
use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Name of the server on the host.
const SERVER: &str = "published";

/// The id of a client for issuers that read it at a URL, as the scenario wants it.
const CLIENT_ID_URL: &str = "https://conformance-test.local/client-metadata.json";

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The commands of the person.
struct Person {
    ironctl: String,
    home: String,
}

impl Person {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.ironctl);
        command.args(["--json", "--home", &self.home]).args(words).stdin(Stdio::null());
        command
    }

    /// Runs a command, and returns what it prints.
    fn run(&self, words: &[&str]) -> Outcome<Value> {
        let said = self.command(words).output()?;
        if !said.status.success() {
            return Err(format!("ironctl {}: {}", words.join(" "), String::from_utf8_lossy(&said.stderr)).into());
        }
        Ok(serde_json::from_slice(&said.stdout)?)
    }

    /// Stores a secret with the name of the server, or replaces the one of an earlier scenario.
    fn store(&self, secret: &str) -> Outcome<()> {
        for verb in ["set", "rotate"] {
            let mut command = self.command(&["secret", verb, SERVER]);
            let mut running = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
            writeln!(running.stdin.take().expect("piped"), "{secret}")?;
            if running.wait()?.success() {
                return Ok(());
            }
        }
        Err("ironctl stores no secret".into())
    }

    /// Returns the words of the command in the hint of the refused login.
    fn hint(&self) -> Outcome<Vec<String>> {
        let said = self.command(&["mcp", "login", SERVER]).output()?;
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        let refusal: Value = serde_json::from_str(said.lines().last().unwrap_or_default())?;
        let hint = refusal["error"]["hint"].as_str().unwrap_or_default();
        let (_, typed) = hint.split_once("ironctl ").ok_or_else(|| format!("no command in {said}"))?;
        Ok(typed.split(' ').map(str::to_owned).collect())
    }

    /// Logs in with a browser, which follows each redirect.
    async fn log_in(&self) -> Outcome<()> {
        let mut running =
            self.command(&["mcp", "login", SERVER]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(running.stdout.as_mut().expect("piped")).read_line(&mut line)?;
        if let Ok(begun) = serde_json::from_str::<Value>(&line) {
            let page = begun["url"].as_str().ok_or("a login without a page")?;
            reqwest::Client::builder().no_proxy().build()?.get(page).send().await?.error_for_status()?;
        }
        let said = running.wait_with_output()?;
        match said.status.success() {
            true => Ok(()),
            false => Err(format!("ironctl mcp login: {}", String::from_utf8_lossy(&said.stderr)).into()),
        }
    }

    /// Asks the agent for a call of a tool, in a new conversation.
    fn call(&self, agent: &str, tool: &str) -> Outcome<()> {
        let said = self.run(&["chat", agent, "--new", &format!("/allow send -- use {SERVER}__{tool}")])?;
        // A call that the server refuses is done too; the model then repeats its failure.
        let has_failed = said["reply"].as_str().is_none_or(|reply| reply.contains("failed: MCP server"));
        match said["calls"][0]["status"] == "done" && !has_failed {
            true => Ok(()),
            false => Err(format!("the call of {tool}: {said}").into()),
        }
    }
}

/// Returns the id and the secret that the scenario gives the client.
fn client() -> Outcome<(Option<String>, Option<String>)> {
    if env::var("MCP_CONFORMANCE_SCENARIO").is_ok_and(|scenario| scenario == "auth/basic-cimd") {
        return Ok((Some(CLIENT_ID_URL.to_owned()), None));
    }
    let Ok(context) = env::var("MCP_CONFORMANCE_CONTEXT") else { return Ok((None, None)) };
    let context: Value = serde_json::from_str(&context)?;
    let field = |name: &str| context[name].as_str().map(str::to_owned);
    Ok((field("client_id"), field("client_secret")))
}

#[tokio::main]
async fn main() -> Outcome<()> {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let words: Vec<String> = env::args().skip(1).collect();
    let [ironctl, home, agent, url] = <[String; 4]>::try_from(words).map_err(|_| "IRONCTL HOME AGENT URL")?;
    let person = Person { ironctl, home };
    // The server refuses its listing, because it wants a login.
    let _ = person.command(&["mcp", "add", SERVER, "--url", &url, "--yes"]).output()?;
    let mut add = person.hint()?;
    add.push("--yes".to_owned());
    let (id, secret) = client()?;
    if let Some(id) = id {
        add.extend(["--client-id".to_owned(), id]);
        if let Some(secret) = secret {
            person.store(&secret)?;
            add.extend(["--client-secret".to_owned(), format!("secret:{SERVER}")]);
        }
    }
    person.run(&add.iter().map(String::as_str).collect::<Vec<_>>())?;
    person.log_in().await?;
    // The command fails as long as the listing has no confirmation.
    let _ = person.command(&["mcp", "test", SERVER]).output()?;
    let shown = person.run(&["mcp", "show", SERVER])?;
    let digest = shown["digest"].as_str().ok_or_else(|| format!("no listing: {shown}"))?;
    person.run(&["mcp", "confirm", SERVER, "--digest", digest, "--yes"])?;
    person.run(&["mcp", "grant", &agent, SERVER, "--yes"])?;
    for tool in shown["tools"].as_array().into_iter().flatten() {
        person.call(&agent, tool["name"].as_str().unwrap_or_default())?;
    }
    Ok(())
}
