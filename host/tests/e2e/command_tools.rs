//! Tests of the tools that commands run: the files that they write, the spellings of hosts, and the words of a refusal.
//!
//! They use the programs of this machine and servers on loopback. The campaign `commands` runs the tools of others; see
//! `published_tools`.

use crate::e2e::network_commands::online;
use crate::e2e::packages::registry::Registry;
use crate::support::git_site::GitSite;
use crate::support::host_fixture::TestHost;
use crate::support::needs::needs;
use crate::support::site::{LOOPBACK_WHILE_AWAY, Site};
use crate::support::tls_site::server_config;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The texts by which a file names the gateway.
const OF_THE_GATEWAY: [&[u8]; 2] = [b"127.0.0.1:8129", b"localhost:8129"];

/// Returns each file below a directory, with its content.
pub(crate) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let kind = path.symlink_metadata().expect("there").file_type();
        if kind.is_dir() {
            all.extend(files(&path));
        } else if kind.is_file() {
            all.insert(path.clone(), std::fs::read(&path).expect("a file"));
        }
    }
    all
}

/// Runs a tool. It must succeed, write or change a file of the workspace, and name the gateway in none.
pub(crate) fn writes_no_address(host: &TestHost, command: &str) -> String {
    let workspace = host.session_directory().join("workspace");
    let before = if workspace.exists() { files(&workspace) } else { BTreeMap::new() };
    let said = online(host, command);
    assert!(said.contains("[exit code 0]"), "{command}: {said}");
    let after = files(&workspace);
    assert_ne!(before, after, "{command} wrote nothing");
    for (path, content) in after {
        let names = |text: &&[u8]| content.windows(text.len()).any(|part| part == *text);
        assert!(!OF_THE_GATEWAY.iter().any(names), "{command}: {} names the gateway", path.display());
    }
    said
}

fn agent_with_commands() -> TestHost {
    let host = TestHost::new().configured(LOOPBACK_WHILE_AWAY).started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    // The session and its workspace.
    host.say("a", "run true");
    host
}

/// Grants a server on loopback to the commands of the agent.
fn grant(host: &TestHost, port: u16, commands: &str, paths: &[&str]) {
    // A host has one grant.
    let name = if commands == "git" { "localhost" } else { "127.0.0.1" };
    let methods = if commands == "git" { vec!["GET", "POST"] } else { vec!["GET", "HEAD"] };
    let mut grant = json!({ "host": name, "port": port, "methods": methods, "commands": commands, "paths": paths });
    if commands == "git" {
        grant["upload_bytes_max"] = json!(1 << 20);
    }
    host.change("a", "egress", &grant);
}

#[test]
fn no_tool_writes_the_address_of_the_gateway() {
    needs("node");
    needs("curl");
    let (registry, git, host) = (Registry::new(), GitSite::start(), agent_with_commands());
    registry.publish("tulip", Path::new("/workspace/script"));
    registry.publish_wheel("rose", "def main(): pass\n");
    git.repository("ada/tulip.git", "tulip.txt", "red");
    let (port, git) = (registry.port, git.port);
    grant(&host, git, "git", &["/ada/{r}/info/refs?service=git-upload-pack", "/ada/{r}/git-upload-pack"]);
    grant(&host, port, "npm", &["/npm/{package}"]);
    let repository = format!("http://localhost:{git}/ada/tulip.git");
    for command in [
        "mkdir n && cd n && npm install tulip && npm shrinkwrap && npm cache verify".to_owned(),
        "mkdir w && cd w && npm init --yes && npm install tulip --save-exact --no-package-lock && npm ls --json > ls"
            .to_owned(),
        // A stand-in for clients that keep what the registry says, as yarn and pnpm do.
        format!("mkdir s && curl --silent --fail http://127.0.0.1:{port}/npm/tulip > s/yarn.lock"),
        format!("git clone {repository} cloned && git -C cloned remote -v > remotes"),
        format!(
            "git init o && cd o && git submodule add {repository} sub && git remote add up {repository} && git fetch up"
        ),
    ] {
        writes_no_address(&host, &command);
    }
    let workspace = host.session_directory().join("workspace");
    let lock = std::fs::read_to_string(workspace.join("n/npm-shrinkwrap.json")).expect("a lock");
    assert!(lock.contains(&format!("\"resolved\": \"http://127.0.0.1:{port}/npm/tulip.tgz\"")), "{lock}");
    let stand_in = std::fs::read_to_string(workspace.join("s/yarn.lock")).expect("a lock");
    assert!(stand_in.contains(&format!("http://127.0.0.1:{port}/npm/tulip.tgz")), "{stand_in}");
    let config = std::fs::read_to_string(workspace.join("o/.gitmodules")).expect("a file");
    assert!(config.contains(&repository), "{config}");
    // Another machine, without the gateway.
    let other = tempfile::tempdir().expect("a directory");
    for file in ["package.json", "npm-shrinkwrap.json"] {
        std::fs::copy(workspace.join("n").join(file), other.path().join(file)).expect("copied");
    }
    let registry = format!("--registry=http://127.0.0.1:{port}/npm/");
    let arguments = ["ci", "--ignore-scripts", "--cache=cache", "--no-audit", "--no-fund", &registry];
    let installed = Command::new("npm").args(arguments).current_dir(other.path()).output().expect("npm runs");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    grant(&host, port, "pip", &["/simple/{package}/", "/files/{file}"]);
    let install = "python3 -m pip install --target t --report report.json rose && python3 -m pip download -d d rose";
    writes_no_address(&host, install);
}

#[test]
fn every_spelling_of_a_granted_host_leads_to_it() {
    let (git, host) = (GitSite::start(), agent_with_commands());
    git.repository("ada/tulip.git", "tulip.txt", "red");
    let port = git.port;
    let grant = ["egress", "grant", "a", "--commands", "git", "--path", "/ada/tulip.git", "--yes"];
    for name in ["127.0.0.1", "localhost"] {
        host.ctl(&[&grant[..], &[&format!("{name}:{port}")]].concat()).ok();
    }
    let spellings = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://ada@127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://ada@localhost:{port}/"),
        format!("https://LOCALHOST:{port}/"),
        format!("http://LocalHost:{port}/"),
        format!("http://localhost.:{port}/"),
        format!("http://127.0.0.1:8129/127.0.0.1:{port}/"),
        "git@127.0.0.1:".to_owned(),
        "git@localhost:".to_owned(),
        "ssh://git@127.0.0.1/".to_owned(),
        "ssh://git@127.0.0.1:22/".to_owned(),
        "ssh://localhost/".to_owned(),
        "git+ssh://git@localhost/".to_owned(),
        "git://127.0.0.1/".to_owned(),
    ];
    let tries: String = spellings
        .iter()
        .map(|spelling| format!("echo {spelling} $(git ls-remote {spelling}ada/tulip.git HEAD 2>&1); "))
        .collect();
    let said = online(&host, &tries);
    for spelling in &spellings {
        let line = said.lines().find(|line| line.starts_with(&format!("{spelling} "))).unwrap_or_default();
        let words: Vec<_> = line.split(' ').collect();
        assert!(matches!(words[..], [_, hash, "HEAD"] if hash.len() == 40), "{spelling}: {said}");
    }
    // An unusual one gets the words that help.
    let said = online(&host, "git ls-remote bob@LocalHost:ada/tulip.git 2>&1");
    assert!(said.contains("write https://localhost/PATH"), "{said}");
}

/// Returns the arguments of each command of an operator in a result.
fn granting(said: &str) -> Vec<Vec<String>> {
    let of_line = |line: &str| {
        let (_, command) = line.split_once("ironctl ")?;
        let words = command.trim_end_matches(']').split_whitespace().map(|word| word.trim_matches('\'').to_owned());
        Some(words.collect())
    };
    let mut all: Vec<Vec<String>> = said.lines().filter_map(of_line).collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn refused_host_is_named_with_the_command_that_grants_it() {
    needs("node");
    needs("git");
    needs("curl");
    needs("pip3");
    let (site, host) = (Site::start(), agent_with_commands());
    grant(&host, site.port, "other", &["/page"]);
    let get = "curl --silent --show-error";
    let own = format!("127.0.0.1:{}", site.port);
    let of_own = format!("{own} --commands other --method GET --method HEAD --path /page --path /moved");
    let rows = [
        [
            (
                "npm view tulip --registry https://registry.npmjs.org/ --fetch-retries 0".to_owned(),
                "registry.npmjs.org --commands npm",
            ),
            ("python3 -m pip download --retries 0 tulip".to_owned(), "pypi.org --commands pip"),
            ("git ls-remote https://user@GitHub.com:443/a/b".to_owned(), "github.com --commands git"),
            ("git ls-remote git@GitLab.com:a/b".to_owned(), "gitlab.com --commands git"),
            ("git ls-remote https://forge.example/a/b".to_owned(), "forge.example --commands git"),
            (format!("{get} http://{own}/moved"), of_own.as_str()),
        ],
        [
            (format!("{get} https://index.crates.io/config.json"), "index.crates.io --commands cargo"),
            (format!("{get} https://static.crates.io/crates/a/a-1.crate"), "static.crates.io --commands cargo"),
            (format!("{get} https://proxy.golang.org/example.org/a/@v/list"), "proxy.golang.org --commands go"),
            (format!("{get} http://rubygems.org/versions"), "rubygems.org --commands gem"),
            (format!("{get} https://FILES.pythonhosted.org/packages/a"), "files.pythonhosted.org --commands pip"),
            (format!("{get} https://registry.yarnpkg.com/left-pad"), "registry.yarnpkg.com --commands npm"),
        ],
    ];
    for rows in rows {
        let commands: Vec<_> = rows.iter().map(|(command, _)| format!("{command} 2>&1")).collect();
        let said = online(&host, &commands.join("; "));
        let found = granting(&said);
        for (command, granted) in &rows {
            let words: Vec<_> = ["egress", "grant", "a"].into_iter().chain(granted.split(' ')).collect();
            let one = found.iter().find(|found| **found == words).unwrap_or_else(|| panic!("{command}: {said}"));
            // The command works as it is printed.
            let arguments: Vec<_> = one.iter().map(String::as_str).chain(["--yes"]).collect();
            host.ctl(&arguments).ok();
        }
    }
    assert!(site.lines().is_empty(), "nothing was sent");
    let listed = host.ctl(&["--json", "egress", "list"]).ok().json();
    let of = |name: &str| listed.as_array().and_then(|all| all.iter().find(|one| one["host"] == name)).cloned();
    assert_eq!(of("127.0.0.1").map(|grant| grant["paths"].clone()), Some(json!(["/page", "/moved"])));
    assert_eq!(of("index.crates.io").map(|grant| grant["commands"].clone()), Some(json!("tunnel")));
    assert_eq!(of("proxy.golang.org").map(|grant| grant["commands"].clone()), Some(json!("other")));
}

#[test]
fn request_over_tls_is_judged_like_a_plain_one() {
    needs("curl");
    let (site, host) = (Site::start(), agent_with_commands());
    grant(&host, site.port, "other", &["/page", "/moved"]);
    let at = format!("https://127.0.0.1:{}", site.port);
    let other = STANDARD.encode(server_config().1);
    let get = |more: &str, path: &str| format!("curl --silent --show-error {more} {at}{path} 2>&1; echo");
    let said = online(
        &host,
        &[
            get("", "/page"),
            // The connection decides about the host, and its requests do not.
            get("--header 'Host: evil.example'", "/page"),
            get("", "/other"),
            get("--request-target https://evil.example/x", "/page"),
            get("", "/moved"),
            format!("echo {other} | base64 -d > other.pem"),
            get("--cacert other.pem", "/page"),
        ]
        .join("; "),
    );
    assert_eq!(said.matches("The page says tulip.").count(), 2, "{said}");
    assert_eq!(said.matches("refused (egress_new_path)").count(), 2, "{said}");
    assert!(said.contains("refused (egress_new_host)") && said.contains("did not accept the certificate"), "{said}");
    assert_eq!(site.lines(), ["GET /page HTTP/1.1", "GET /page HTTP/1.1", "GET /moved HTTP/1.1"]);
}
