//! `ironctl mcp add`: proposes a server, then asks it for its tools and shows them with their rules.
//!
//! Refuses a wrong command line before it sends a request. Never confirms without a person at a terminal. See [`super::confirm`].

use super::{confirm, table, wording};
use crate::at::At;
use crate::commands::agent::directories::absolute;
use crate::commands::agent::software;
use crate::commands::propose;
use crate::commands::review;
use crate::commands::waiting::OUTCOME_TIMEOUT;
use crate::failure::Error;
use ironclaw_operator::{ChangeKind, McpLook, McpServer, McpServerState, UNANNOUNCED_S256, WaitingStatus, routes};
use ironclaw_text::shell::quoted;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The begin of the name of a secret in the value of a header.
const SECRET: &str = "secret:";

/// The begin of the value of a variable that is no secret.
const TEXT: &str = "text:";

/// The end of a directory that the server may change.
const WRITABLE: &str = ":rw";

/// Programs that fetch the program of a server.
const FETCHERS: [&str; 6] = ["npx", "bunx", "pnpx", "uvx", "pipx", "uv"];

/// The name of the bundled server for trying, which needs neither URL nor command.
const DEMO: &str = "demo";

/// The command of the bundled server, with the directory of its own files in its jail.
const DEMO_COMMAND: [&str; 2] = ["ironclaw-mcp-demo", "/usr/share/ironclaw-mcp-demo"];

/// Options of `ironctl mcp add`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl mcp add demo\n  ironctl mcp add calendar --url https://calendar.example/mcp --header X-Api-Key=secret:calendar\n  ironctl mcp add papers --mount /srv/papers -- /usr/bin/papers-server --stdio\n  ironctl mcp add files --npm @modelcontextprotocol/server-filesystem --mount /srv/papers -- mcp-server-filesystem /papers"
)]
pub struct Args {
    /// Name of the server: a-z, 0-9, - and _; demo alone is the bundled server for trying
    name: String,
    /// Address of a server: https, or http on this machine or in the local network, which `[egress] lan` of config.toml has to allow
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Header of each request to the URL, as NAME=secret:SECRET or 'NAME=Bearer secret:SECRET'; repeatable
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// Issuer at which a person logs in, for a URL: its page asks for the password, and each request carries its token
    #[arg(long, value_name = "ISSUER")]
    oauth: Option<String>,
    /// Scope that the login asks for; repeatable [default: those that the issuer chooses]
    #[arg(long, value_name = "SCOPE", requires = "oauth")]
    scope: Vec<String>,
    /// Id of the host as a client of the issuer [default: the host registers itself]
    #[arg(long, value_name = "ID", requires = "oauth")]
    client_id: Option<String>,
    /// Secret of this client, as secret:NAME; the issuer alone gets it
    #[arg(long, value_name = "NAME", requires = "client_id")]
    client_secret: Option<String>,
    /// Log in although the issuer does not announce S256; the page has a line about it, and the host sends S256 all the same
    #[arg(long, requires = "oauth")]
    accept_unannounced_s256: bool,
    /// Package of npm for the command, as NAME or NAME@VERSION; repeatable
    #[arg(long, value_name = "PACKAGE")]
    npm: Vec<String>,
    /// Package of PyPI for the command, as NAME or NAME==VERSION; repeatable
    #[arg(long, value_name = "PACKAGE")]
    pypi: Vec<String>,
    /// Package of apt for the command; repeatable
    #[arg(long, value_name = "PACKAGE")]
    apt: Vec<String>,
    /// Variable of the command, as VARIABLE=secret:SECRET, or as VARIABLE=text:VALUE for no secret; repeatable
    #[arg(long, value_name = "VARIABLE")]
    env: Vec<String>,
    /// Directory of this machine for the command, read only, or writable with :rw at its end; repeatable
    #[arg(long, value_name = "DIR[:rw]")]
    mount: Vec<String>,
    /// Host of the network that the command reaches, as HOST or HOST:PORT; repeatable [default: none]
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Bytes that the command sends to each host in the time of one call [default: 65536]
    #[arg(long, value_name = "BYTES", requires = "host")]
    upload_bytes: Option<u64>,
    /// Tool that people may confirm; repeatable [default: all that the server lists]
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,
    /// TOML file with manifests for its tools [default: the rules that the host proposes, for a person to confirm]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Approve the new server without a question; its tools still wait for a confirmation
    #[arg(long)]
    yes: bool,
    /// Program and arguments of a server on its standard input and output
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let payload = payload(&args)?;
    let patience = patience(&args);
    let has_login = args.oauth.is_some();
    let Args { name, manifest, yes, .. } = args;
    let manifest = manifest.as_deref().map(confirm::read_manifest).transpose()?;
    let client = at.client()?;
    let submitted = propose::submit(&client, ChangeKind::McpRegister, None, payload).await;
    let decided = propose::decide_submitted(at, &client, submitted, yes, patience).await?;
    if let Some(change) = decided.as_ref().filter(|change| change.entry.status != WaitingStatus::Done) {
        at.out.json(&json!({ "change": change.entry.id, "server": name, "digest": null, "tools": [] }))?;
        return at.out.remark(format!("once it is applied: ironctl mcp test {}", quoted(&name)));
    }
    if has_login {
        let change = decided.map(|change| change.entry.id);
        at.out.json(&json!({ "change": change, "server": name, "digest": null, "tools": [] }))?;
        return at
            .out
            .remark(format!("log in before the host can ask it for its tools: ironctl mcp login {}", quoted(&name)));
    }
    at.out.remark(format!("asking {name} for its tools"))?;
    let look = McpLook { manifest: manifest.clone() };
    let asked = client.post(routes::LOOK_AT_MCP_SERVER, [&name], &look).await;
    let server = asked.map_err(|error| registered_still(error, &name))?;
    at.out.json(&json!({
        "change": decided.map(|change| change.entry.id),
        "server": server.name,
        "digest": server.digest,
        "tools": server.tools.iter().map(for_scripts).collect::<Vec<_>>(),
    }))?;
    // On a terminal, the page of the confirmation has the same table with the reasons.
    if !review::is_possible(at.out) || server.problem.is_some() {
        table::print(at.out, &server)?;
    }
    next(at, &server, manifest).await
}

/// Asks for the confirmation on a terminal; elsewhere prints its command.
async fn next(at: &At, server: &McpServer, manifest: Option<String>) -> Result<(), Error> {
    if let Some(problem) = &server.problem {
        let message = format!("the tools of {} cannot be confirmed: {}", server.name, wording::prose(problem));
        let name = quoted(&server.name);
        let hint = format!(
            "the server stays registered; `ironctl mcp show {name}` has the reason for each tool, and `ironctl mcp test {name}` asks again"
        );
        return Err(Error::failed("mcp_listing", message).hinting(hint));
    }
    if server.state == McpServerState::Confirmed && manifest.is_none() {
        return at.out.line(format!("{} lists what people confirmed", server.name));
    }
    // The table has the rules of these manifests, so the confirmation has them too.
    let Some(advice) = confirm::advice(server, manifest.is_some()) else { return Ok(()) };
    let shown = manifest.or_else(|| Some(server.proposed.clone()).filter(|proposed| !proposed.is_empty()));
    let Some(digest) = server.digest.filter(|_| review::is_possible(at.out)) else {
        return at.out.remark(format!("no agent can call its new tools yet; {advice}"));
    };
    let asked = confirm::propose(at, &server.name, digest, shown, false).await;
    asked.map(drop).map_err(|error| match propose::is_declined(&error) {
        true => error.hinting(format!("the server stays registered; its tools wait for a confirmation; {advice}")),
        false => error,
    })
}

/// Adds to a refusal of the listing that the server stays registered.
fn registered_still(error: Error, name: &str) -> Error {
    let advice = format!("the server stays registered; try again: ironctl mcp test {}", quoted(name));
    match error {
        Error::Refused(mut failure) => {
            let hint = &mut failure.error.hint;
            *hint = if hint.is_empty() { advice } else { format!("{hint}; {advice}") };
            Error::Refused(failure)
        }
        Error::Lost { message, .. } => Error::Lost { message, hint: advice },
        other => other,
    }
}

fn for_scripts(tool: &ironclaw_operator::McpServerTool) -> Value {
    let mut shown =
        json!({ "name": tool.name, "class": tool.class, "arguments": tool.arguments, "labels": tool.labels });
    if let Some(unfit) = &tool.unfit {
        shown["unfit"] = json!(unfit);
    }
    shown
}

/// Returns the payload of the change; refuses a command line that no server can have.
fn payload(args: &Args) -> Result<Value, Error> {
    let Args { name, url, header, npm, pypi, apt, env, mount, host, tool, command, .. } = args;
    let of_jail =
        [("--npm", npm), ("--pypi", pypi), ("--apt", apt), ("--env", env), ("--mount", mount), ("--host", host)];
    let of_jail = of_jail.into_iter().find(|(_, given)| !given.is_empty()).map(|(option, _)| option);
    let both_ways = "name one of them: --url URL, or -- PROGRAM ARGUMENT…";
    let mut payload = json!({ "name": name });
    match (url, command.as_slice()) {
        (Some(_), [_, ..]) => return Err(Error::usage("a server has a URL or a command, not both", both_ways)),
        (None, []) if name == DEMO && header.is_empty() && args.oauth.is_none() && of_jail.is_none() => {
            payload["command"] = json!(DEMO_COMMAND)
        }
        (None, []) => return Err(Error::usage("the URL or the command of the server is missing", both_ways)),
        (Some(url), []) => {
            if let Some(option) = of_jail {
                let hint = format!("leave out {option}, or name the command of the server: -- PROGRAM ARGUMENT…");
                return Err(Error::usage(format!("{option} is for a command: a server at a URL has no jail"), hint));
            }
            check_url(url)?;
            payload["url"] = json!(url);
        }
        (None, command) => {
            if args.oauth.is_some() {
                let hint = "leave out --oauth, or name the address of the server: --url URL";
                return Err(Error::usage("--oauth is for a URL: a command gets no request", hint));
            }
            if !header.is_empty() {
                let hint = "leave out --header, or name the address of the server: --url URL";
                return Err(Error::usage("--header is for a URL: a command gets no request", hint));
            }
            check_command(command)?;
            payload["command"] = json!(command);
        }
    }
    let mounts = mount.iter().map(|mount| read_mount(mount)).collect::<Result<Vec<Value>, Error>>()?;
    let headers = header.iter().map(|header| read_header(header)).collect::<Result<Vec<Value>, Error>>()?;
    let tools: Vec<Value> = tool.iter().map(|tool| json!({ "name": tool })).collect();
    let environment = env.iter().map(|variable| read_variable(variable)).collect::<Result<Vec<Value>, Error>>()?;
    for (of, names) in [("npm", npm), ("pypi", pypi), ("apt", apt)] {
        if !names.is_empty() {
            payload["packages"][of] = json!(names);
        }
    }
    let hosts = host.iter().map(|host| read_host(host, args.upload_bytes)).collect::<Result<Vec<Value>, Error>>()?;
    let lists =
        [("environment", environment), ("mounts", mounts), ("hosts", hosts), ("headers", headers), ("tools", tools)];
    for (field, list) in lists {
        if !list.is_empty() {
            payload[field] = json!(list);
        }
    }
    if let Some(issuer) = &args.oauth {
        payload["oauth"] = oauth(issuer, args)?;
    }
    Ok(payload)
}

fn oauth(issuer: &str, args: &Args) -> Result<Value, Error> {
    let accepted = if args.accept_unannounced_s256 { UNANNOUNCED_S256 } else { "" };
    let mut oauth = json!({ "issuer": format!("{issuer}{accepted}") });
    if !args.scope.is_empty() {
        oauth["scopes"] = json!(args.scope);
    }
    if let Some(client_id) = &args.client_id {
        oauth["client_id"] = json!(client_id);
    }
    if let Some(given) = &args.client_secret {
        let Some(secret) = given.strip_prefix(SECRET).filter(|secret| !secret.is_empty()) else {
            // The value may be a key.
            let hint = "store it with `ironctl secret set NAME`, then write --client-secret secret:NAME";
            return Err(Error::usage("--client-secret names no secret", hint));
        };
        oauth["client_secret"] = json!(secret);
    }
    Ok(oauth)
}

/// Refuses a line for a shell in the place of a command.
fn check_command(command: &[String]) -> Result<(), Error> {
    match command {
        [line] if line.contains(char::is_whitespace) => {
            let words: Vec<&str> = line.split_whitespace().collect();
            let fetches = words.first().is_some_and(|first| FETCHERS.contains(first));
            let then = if fetches { "; the host then names the package in its place" } else { "" };
            let hint = format!("write each word by itself, without quotes around all: -- {}{then}", words.join(" "));
            Err(Error::usage(format!("{line:?} is one word, and no shell splits it"), hint))
        }
        [program, ..] if program.is_empty() => {
            Err(Error::usage("the program of the command is empty", "write -- PROGRAM ARGUMENT…"))
        }
        _ => Ok(()),
    }
}

/// Refuses an address that is neither https nor http. The host checks the rest.
fn check_url(url: &str) -> Result<(), Error> {
    let parsed = url.parse::<hyper::Uri>().ok();
    let parts = parsed.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.host()?)));
    match parts {
        Some(("https" | "http", _)) => Ok(()),
        _ => Err(Error::usage(
            format!("--url {url:?} is no address of https"),
            "write it as https://HOST/PATH, or http://127.0.0.1:PORT/PATH for a server of this machine",
        )),
    }
}

/// Reads `HOST` or `HOST:PORT`. The host checks the name.
fn read_host(given: &str, upload_bytes_max: Option<u64>) -> Result<Value, Error> {
    let (name, port) = match given.rsplit_once(':') {
        None => (given, None),
        Some((name, port)) => (name, Some(port)),
    };
    let mut host = json!({ "host": name });
    if let Some(port) = port {
        let read = port.parse::<u16>().map_err(|_| {
            Error::usage(
                format!("--host {given:?} has no valid port"),
                "write it as HOST or HOST:PORT, without https://",
            )
        })?;
        host["port"] = json!(read);
    }
    if let Some(bytes) = upload_bytes_max {
        host["upload_bytes_max"] = json!(bytes);
    }
    Ok(host)
}

/// Reads `NAME=[SCHEME ]secret:SECRET`. The refusal does not repeat the value, which may be a key.
fn read_header(given: &str) -> Result<Value, Error> {
    let Some((name, value)) = given.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
        return Err(Error::usage("--header has no name", "write it as --header NAME=secret:SECRET"));
    };
    let name = name.trim();
    let (scheme, secret) = match value.trim().rsplit_once(' ') {
        Some((scheme, secret)) => (Some(scheme.trim()), secret),
        None => (None, value.trim()),
    };
    let Some(secret) = secret.strip_prefix(SECRET).filter(|secret| !secret.is_empty()) else {
        let hint = format!("store it with `ironctl secret set SECRET`, then write --header {name}=secret:SECRET");
        return Err(Error::usage(format!("the value of the header {name:?} names no secret"), hint));
    };
    let mut header = json!({ "name": name, "secret": secret });
    if let Some(scheme) = scheme {
        header["scheme"] = json!(scheme);
    }
    Ok(header)
}

/// Reads `VARIABLE=secret:SECRET` or `VARIABLE=text:VALUE`. The refusal does not repeat the value, which may be a key.
fn read_variable(given: &str) -> Result<Value, Error> {
    let Some((variable, value)) = given.split_once('=').filter(|(variable, _)| !variable.is_empty()) else {
        return Err(Error::usage("--env has no variable", "write it as --env VARIABLE=secret:SECRET"));
    };
    if let Some(text) = value.strip_prefix(TEXT) {
        return Ok(json!({ "variable": variable, "text": text }));
    }
    let Some(secret) = value.strip_prefix(SECRET).filter(|secret| !secret.is_empty()) else {
        let hint = format!(
            "store a secret with `ironctl secret set SECRET` and write --env {variable}=secret:SECRET; write --env {variable}=text:VALUE for a \
             value that everyone may see"
        );
        return Err(Error::usage(format!("the value of the variable {variable:?} names no secret"), hint));
    };
    Ok(json!({ "variable": variable, "secret": secret }))
}

/// Returns the time until the change is applied: packages are fetched first.
fn patience(args: &Args) -> Duration {
    let fetches = [&args.npm, &args.pypi, &args.apt].into_iter().any(|names| !names.is_empty());
    if fetches { software::FETCH_TIMEOUT } else { OUTCOME_TIMEOUT }
}

/// Reads `DIR[:rw]`.
fn read_mount(given: &str) -> Result<Value, Error> {
    let (directory, is_writable) = match given.strip_suffix(WRITABLE) {
        Some(directory) => (directory, true),
        None => (given, false),
    };
    if directory.is_empty() {
        return Err(Error::usage("--mount names no directory", "write it as --mount DIR, or --mount DIR:rw"));
    }
    Ok(json!({ "source": absolute(Path::new(directory))?, "read_only": !is_writable }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn read(words: &[&str]) -> Result<Value, Error> {
        let words = ["add", "files"].iter().chain(words);
        payload(&Line::try_parse_from(words).expect("the words fit").args)
    }

    #[test]
    fn payload_has_only_the_named_parts() {
        let command =
            read(&["--mount", "/nonexistent/a", "--mount", "/nonexistent/b:rw", "--tool", "t", "--", "p", "-x"]);
        let mounts =
            json!([{"source": "/nonexistent/a", "read_only": true}, {"source": "/nonexistent/b", "read_only": false}]);
        let wanted = json!({"name": "files", "command": ["p", "-x"], "mounts": mounts, "tools": [{"name": "t"}]});
        assert_eq!(command.expect("valid"), wanted);
        let words = ["--npm", "s@1.2.3", "--pypi", "p", "--env", "API_KEY=secret:k", "--", "s"];
        let wanted = json!({
            "name": "files", "command": ["s"], "packages": {"npm": ["s@1.2.3"], "pypi": ["p"]},
            "environment": [{"variable": "API_KEY", "secret": "k"}],
        });
        assert_eq!(read(&words).expect("valid"), wanted);
        let reaching = read(&["--host", "a.example", "--host", "b.example:8443", "--upload-bytes", "9", "--", "s"]);
        let hosts = json!([
            {"host": "a.example", "upload_bytes_max": 9}, {"host": "b.example", "port": 8443, "upload_bytes_max": 9},
        ]);
        assert_eq!(reaching.expect("valid")["hosts"], hosts);
        let level = read(&["--env", "LEVEL=text:debug=1", "--", "s"]).expect("valid");
        assert_eq!(level["environment"], json!([{"variable": "LEVEL", "text": "debug=1"}]));
        let headers = ["--header", "Authorization=Bearer secret:k", "--header", "X-Key=secret:k"];
        let url = read(&[&["--url", "https://x/"][..], &headers].concat()).expect("valid");
        let headers =
            json!([{"name": "Authorization", "scheme": "Bearer", "secret": "k"}, {"name": "X-Key", "secret": "k"}]);
        assert_eq!(url, json!({"name": "files", "url": "https://x/", "headers": headers}));
        for url in ["http://127.0.0.1:8/mcp", "http://localhost/", "http://[::1]:8/", "http://a.localhost/"] {
            assert!(read(&["--url", url]).is_ok(), "{url}");
        }
    }

    #[test]
    fn demo_without_a_place_is_the_bundled_server() {
        let words = |words: &[&str]| payload(&Line::try_parse_from(words).expect("the words fit").args);
        let demo = json!({"name": "demo", "command": ["ironclaw-mcp-demo", "/usr/share/ironclaw-mcp-demo"]});
        assert_eq!(words(&["add", "demo"]).expect("valid"), demo);
        let own = words(&["add", "demo", "--url", "https://x/"]).expect("valid");
        assert_eq!(own, json!({"name": "demo", "url": "https://x/"}));
        assert!(words(&["add", "demo", "--mount", "/srv"]).is_err(), "a directory needs its command");
    }

    #[test]
    fn wrong_command_line_names_the_remedy() {
        for (words, remedy) in [
            (&[][..], "--url URL"),
            (&["--url", "https://x/", "--", "p"], "-- PROGRAM"),
            (&["--", "npx server --stdio"], "-- npx server --stdio"),
            (&["--url", "https://x/", "--host", "a.example"], "--host"),
            (&["--host", "https://a.example", "--", "p"], "HOST:PORT"),
            (&["--url", "ftp://x/"], "https://"),
            (&["--url", "mcp.example"], "https://"),
            (&["--url", "https://x/", "--mount", "/srv"], "leave out --mount"),
            (&["--url", "https://x/", "--npm", "s"], "leave out --npm"),
            (&["--url", "https://x/", "--env", "A=secret:b"], "leave out --env"),
            (&["--env", "A=sk-1", "--", "p"], "secret:SECRET"),
            (&["--env", "secret:b", "--", "p"], "VARIABLE=secret:SECRET"),
            (&["--header", "A=secret:b", "--", "p"], "leave out --header"),
            (&["--url", "https://x/", "--header", "A=Bearer sk-1"], "secret:SECRET"),
            (&["--url", "https://x/", "--header", "secret:b"], "NAME=secret:SECRET"),
            (&["--mount", ":rw", "--", "p"], "DIR:rw"),
        ] {
            let error = read(words).expect_err("refused");
            let report = error.report().expect("reported").error;
            assert_eq!((error.exit_code(), report.code.as_str()), (2, "usage"), "{words:?}");
            assert!(report.hint.contains(remedy), "{words:?}: {}", report.hint);
            assert!(!report.message.contains("sk-1") && !report.hint.contains("sk-1"), "{report:?}");
        }
    }
}
