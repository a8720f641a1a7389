//! Tests of `ironctl mcp import`: files of other programs, from their entries to servers that answer, and hints that are typed.
//!
//! All packages come from a registry of npm and an index of pip on loopback. See `packages` for the registry, and
//! `mcp_packages` for servers with packages.

use super::mcp::{call, show};
use super::packages::Registry;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::mcp_server::{HttpServer, PYTHON};
use crate::support::needs::needs;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A key as files have it.
const KEY: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// A host with a registry that has a package of npm with a scope and a program of another name, and one of pypi above a package with the name
/// of a program of the machine.
struct Fixture {
    host: TestHost,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        needs("python3");
        let (host, registry) = (TestHost::own(Build::Plain), Registry::new());
        let port = registry.port;
        host.configure(&format!(
            "[packages]\nnpm_registry = \"http://127.0.0.1:{port}/npm/\"\npypi_index = \"http://127.0.0.1:{port}/simple/\"\nports = [{port}]\n"
        ));
        host.up();
        host.agent("a");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (ran, script) = (directory.path().join("ran"), format!("#!/usr/bin/env python3\n{PYTHON}\nmain()\n"));
        registry.publish_script("papers-npm", &ran, &json!({ "papers": "cli.js" }), &json!({}), &script);
        registry.publish_script("two-npm", &ran, &json!({ "one": "cli.js", "two": "cli.js" }), &json!({}), &script);
        registry.publish_script("library-npm", &ran, &json!({}), &json!({}), &script);
        // The machine has perl, and so has this package.
        registry.publish_wheel("perl", "def main(): pass\n");
        registry.publish_wheel_with("papers_pypi", PYTHON, "Requires-Dist: perl\n");
        Self { host, directory }
    }

    /// Writes a file, and returns its path.
    fn file(&self, text: &str) -> PathBuf {
        let path = self.directory.path().join("mcp.json");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// Imports a file, and returns the exit code with the entries by name.
    fn import(&self, text: &str, options: &[&str]) -> (i32, BTreeMap<String, Value>) {
        let path = self.file(text);
        let words = ["--json", "mcp", "import", path.to_str().expect("UTF-8")];
        let answer = self.host.ctl(&[&words[..], options].concat());
        let entries: Vec<Value> = serde_json::from_str(answer.stdout.lines().last().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {}{}", answer.stdout, answer.stderr));
        let named = |entry: Value| (entry["entry"].as_str().expect("a name").to_owned(), entry);
        (answer.code, entries.into_iter().map(named).collect())
    }

    /// Confirms a server, grants it, and returns the answer of its tool about this variable.
    fn length_of(&self, server: &str, variable: &str) -> String {
        let looked: Value = self.host.ctl(&["--json", "mcp", "test", server]).json();
        let digest = looked["digest"].as_str().unwrap_or_else(|| panic!("{server}: {looked}")).to_owned();
        self.host.ctl(&["mcp", "confirm", server, "--digest", &digest, "--yes"]).ok();
        self.host.ctl(&["mcp", "grant", "a", server, "--yes"]).ok();
        let words = format!("/allow send -- use {server}__length {{\"of\":\"{variable}\"}}");
        // A conversation of its own: after the text of a server each call asks.
        call(&self.host, &format!("{server}-{}", variable.to_lowercase().replace('_', "-")), &words).1
    }
}

#[test]
fn entries_of_a_file_become_servers_that_answer() {
    let fixture = Fixture::new();
    let server = HttpServer::start(&[]);
    let text = format!(
        r#"// servers of an editor
        {{ "inputs": [{{ "id": "key", "type": "promptString", "password": true }}],
          "servers": {{
            "Latest": {{ "command": "npx", "args": ["-y", "papers-npm@latest"], "env": {{ "HUB_TOKEN": "{KEY}", "LEVEL": "debug" }} }},
            "range": {{ "command": "npx", "args": ["-y", "papers-npm@^1.1"], "alwaysAllow": ["length"] }},
            "exact": {{ "type": "stdio", "command": "npx", "args": ["papers-npm@1.2.3"] }},
            "python": {{ "command": "uvx", "args": ["papers_pypi@latest"] }},
            "web": {{ "type": "http", "url": "{}", "headers": {{ "X-Team": "{KEY}" }} }}, /* the last */
          }},
        }}"#,
        server.url
    );
    // A check changes nothing.
    let (code, entries) = fixture.import(&text, &["--check"]);
    assert_eq!((code, entries.len()), (0, 5), "{entries:?}");
    let servers: Value = fixture.host.ctl(&["--json", "mcp", "list"]).ok().json();
    assert_eq!(servers, json!([]));
    let packages = |entry: &str| &entries[entry]["payload"]["packages"];
    for (entry, of, package, program) in [
        ("Latest", "npm", "papers-npm@1.2.3", "papers"),
        ("range", "npm", "papers-npm@1.2.3", "papers"),
        ("exact", "npm", "papers-npm@1.2.3", "papers"),
        ("python", "pypi", "papers_pypi==1.2.3", "papers_pypi"),
    ] {
        assert_eq!(
            (&packages(entry)[of], &entries[entry]["payload"]["command"][0]),
            (&json!([package]), &json!(program))
        );
    }
    assert_eq!(entries["Latest"]["programs"], json!(["papers"]), "its program has another name");

    // Without a terminal a secret is asked for by its name; the others are taken over.
    let (code, entries) = fixture.import(&text, &["--yes"]);
    assert_eq!(code, 1);
    for (entry, secret) in [("Latest", "latest-hub-token"), ("web", "web-x-team")] {
        let why = entries[entry]["refused"].as_str().unwrap_or_default();
        assert!(why.contains(&format!("ironctl secret set {secret}")), "{entry}: {why}");
    }
    assert!(entries["python"]["refused"].is_null() && entries["python"]["change"].is_string(), "{entries:?}");
    let page = fixture.host.ctl(&["inbox", "show", entries["range"]["change"].as_str().expect("an id")]).ok().stdout;
    assert!(page.contains("papers-npm@1.2.3"), "the page shows the exact version: {page}");

    fixture.host.ctl_given("other-value-of-the-key\n", &["secret", "set", "latest-hub-token"]).ok();
    let (code, entries) =
        fixture.import(&text, &["--yes", "--secrets-from-file", "--entry", "Latest", "--entry", "web"]);
    assert_eq!(code, 0, "{entries:?}");
    assert!(fixture.length_of("latest", "HUB_TOKEN").contains("22"), "a stored secret is kept");
    assert!(fixture.length_of("latest", "LEVEL").contains('5'));
    assert!(fixture.length_of("python", "HOME").contains(char::is_numeric));
    assert_eq!(show(&fixture.host, "web")["headers"][0]["secret"], "web-x-team");
    let said = format!(
        "{entries:?}{:?}{}",
        fixture.host.ledger(),
        fixture.host.ctl(&["--json", "inbox", "list", "--type", "change"]).stdout
    );
    assert!(!said.contains(KEY), "no value of the file is in a change or in the ledger");
}

#[test]
fn entry_that_cannot_be_imported_is_named_with_the_reason() {
    let fixture = Fixture::new();
    let rows = [
        ("docker", json!({ "command": "docker", "args": ["run", "-i", "mcp/x"] }), "docker"),
        ("shell", json!({ "command": "bash", "args": ["-c", "papers"] }), "shell string"),
        ("nowhere", json!({ "command": "npx", "args": ["nowhere-npm"] }), "nowhere-npm"),
        ("norange", json!({ "command": "npx", "args": ["papers-npm@^9"] }), "^9"),
        ("two", json!({ "command": "npx", "args": ["two-npm"] }), "one, two"),
        ("library", json!({ "command": "npx", "args": ["library-npm"] }), "no program"),
        ("git", json!({ "command": "uvx", "args": ["--from", "git+https://h/x", "x"] }), "registry"),
        ("project", json!({ "command": "uv", "args": ["run", "server.py"] }), "project"),
        ("program", json!({ "command": "no-such-program" }), "no-such-program"),
        ("sse", json!({ "type": "sse", "url": "https://x.example/mcp" }), "sse"),
        ("lan", json!({ "url": "http://192.168.1.7/mcp" }), "[egress] lan"),
        ("key", json!({ "url": format!("https://x.example/mcp?token={KEY}") }), "header"),
        ("off", json!({ "command": "npx", "args": ["papers-npm"], "disabled": true }), "switched off"),
    ];
    let mut servers: serde_json::Map<String, Value> =
        rows.iter().map(|(name, entry, _)| ((*name).to_owned(), entry.clone())).collect();
    servers.insert("good".to_owned(), json!({ "command": "npx", "args": ["-p", "two-npm@1.2.3", "two"] }));
    let (code, entries) = fixture.import(&json!({ "mcpServers": servers }).to_string(), &["--yes"]);
    assert_eq!(code, 1);
    for (name, _, words) in rows {
        let why = entries[name]["refused"].as_str().unwrap_or_else(|| panic!("{name}: {}", entries[name]));
        assert!(why.contains(words) && !why.contains(KEY), "{name}: {why}");
    }
    assert!(entries["good"]["refused"].is_null(), "the others are taken over: {}", entries["good"]);
    let servers: Value = fixture.host.ctl(&["--json", "mcp", "list"]).ok().json();
    assert_eq!(servers.as_array().map(Vec::len), Some(1), "{servers}");
    for text in ["{", "{}", r#"{"mcpServers": {}}"#] {
        let path = fixture.file(text);
        let error = fixture.host.ctl_error(&["mcp", "import", path.to_str().expect("UTF-8")]);
        assert_eq!(error["code"], "mcp_import_file", "{text}: {error}");
    }
}

#[test]
fn hint_for_a_fetcher_is_a_command_that_works() {
    let fixture = Fixture::new();
    for (row, (line, program)) in [
        ("npx -y papers-npm@latest", Some("papers")),
        ("npx -y papers-npm@1", Some("papers")),
        ("npx -y papers-npm@1.2.3 /x", Some("papers")),
        ("npx -y -p two-npm two", None),
        ("uvx papers_pypi@latest", None),
        ("uvx --from papers_pypi==1.2.3 papers_pypi", None),
        ("uv tool run papers_pypi", None),
    ]
    .into_iter()
    .enumerate()
    {
        let server = format!("s{row}");
        let words: Vec<&str> = line.split(' ').collect();
        let error = fixture.host.ctl_error(&[&["mcp", "add", &server, "--yes", "--"], &words[..]].concat());
        assert_eq!(error["code"], "mcp_command", "{line}: {error}");
        let hint = error["hint"].as_str().expect("a hint");
        let typed = hint.strip_prefix("type ").and_then(|rest| rest.split_once(" instead")).expect(hint).0;
        let mut words: Vec<&str> = typed.split(' ').collect();
        let add = |words: &[&str]| fixture.host.ctl(&[&["--json", "mcp", "add", &server, "--yes"], words].concat());
        let mut added = add(&words);
        // The package has a program of another name, which the refusal lists.
        if let Some(program) = program {
            let list = added.refused(&format!("its packages bring the programs {program}")).stderr;
            assert!(list.contains("mcp_program"), "{list}");
            let at = words.iter().position(|word| *word == "--").expect("a command");
            words[at + 1] = program;
            added = add(&words);
        }
        assert_eq!(added.code, 0, "{line}: {typed}: {}{}", added.stdout, added.stderr);
    }
}

#[test]
fn program_of_a_package_leaves_that_of_the_machine() {
    let fixture = Fixture::new();
    let add = |name: &str, command: &str| {
        fixture.host.ctl(&["mcp", "add", name, "--pypi", "papers_pypi", "--yes", "--", command])
    };
    let added = add("papers", "papers_pypi").ok();
    let said = format!("{}{}", added.stdout, added.stderr);
    assert!(said.contains("/usr/local/behind/perl"), "the outcome has a remark: {said}");
    assert!(fixture.length_of("papers", "HOME").contains(char::is_numeric));
    // A name that both have is not guessed.
    let refused = add("perl", "perl").refused("/usr/local/behind/perl");
    assert!(refused.stderr.contains("/usr/bin/perl"), "{}", refused.stderr);
    // An agent's commands are those of the machine, so its packages are refused as before.
    let error = fixture.host.ctl_error(&["agent", "install", "a", "papers_pypi", "--pypi", "--yes"]);
    assert_eq!(error["code"], "packages_unfit", "{error}");
}
