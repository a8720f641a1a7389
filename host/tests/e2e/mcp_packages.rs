//! Tests of the software and the secrets of MCP servers on this machine, from `mcp add` to the result of a call.
//!
//! All packages come from a registry of npm and an index of pip on loopback. See `packages` for the registry, and
//! `mcp` for servers without packages.

use super::mcp::{add, call, ready, show};
use super::packages::Registry;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::mcp_server::PYTHON;
use crate::support::needs::needs;
use serde_json::{Value, json};

/// The secret of a server.
const SECRET: &str = "s3cret-of-papers-00000000";

/// A host whose packages come from a registry of the test.
struct Fixture {
    host: TestHost,
    registry: Registry,
    traces: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let (host, registry) = (TestHost::own(Build::Plain), Registry::new());
        let port = registry.port;
        host.configure(&format!(
            "[packages]\nnpm_registry = \"http://127.0.0.1:{port}/npm/\"\npypi_index = \"http://127.0.0.1:{port}/simple/\"\nports = \
             [{port}]\n"
        ));
        host.up();
        host.agent("a");
        host.ctl_given(SECRET, &["secret", "set", "papers"]).ok();
        Self { host, registry, traces: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Publishes the server of the tests for npm, with a line at its end.
    fn publish_npm(&self, line: &str) {
        needs("python3");
        let script = format!("#!/usr/bin/env python3\n{PYTHON}\nmain()\n{line}\n");
        let programs = json!({ "papers": "cli.js" });
        self.registry.publish_script("papers-npm", &self.traces.path().join("ran"), &programs, &json!({}), &script);
    }

    /// Returns the code and the sentence of a refused `mcp add`.
    fn refused(&self, words: &[&str]) -> Value {
        let words = [["--json", "mcp", "add", "papers", "--yes"].as_slice(), words].concat();
        let output = self.host.ctl(&words).refused("error");
        let last = output.stderr.lines().last().unwrap_or_default();
        serde_json::from_str::<Value>(last).unwrap_or_else(|error| panic!("{error}: {last}"))["error"].clone()
    }
}

#[test]
fn server_from_npm_or_pypi_is_pinned_and_gets_its_secret() {
    let fixture = Fixture::new();
    fixture.publish_npm("");
    fixture.registry.publish_wheel("papers_pypi", PYTHON);
    let host = &fixture.host;
    for (name, of, package, program) in [
        ("one", "npm", "papers-npm@1.2.3", "papers"),
        ("two", "pypi", "papers_pypi", "papers_pypi"),
        ("three", "pypi", "papers_pypi==1.2.3", "papers_pypi"),
    ] {
        let option = format!("--{of}");
        ready(host, name, &[&option, package, "--env", "TOKEN=secret:papers", "--", program], None);
        let shown = show(host, name);
        assert_eq!((&shown["state"], &shown["packages"][of]), (&json!("confirmed"), &json!([package])), "{shown}");
        assert_eq!(shown["environment"], json!([{ "variable": "TOKEN", "secret": "papers" }]), "{shown}");
        assert!(shown["packages"]["layer"].is_string(), "{shown}");
        // The server has the value, and the model gets none of it.
        let (said, answer) =
            call(host, &format!("{name}-l"), &format!("/allow send -- use {name}__length {{\"of\":\"TOKEN\"}}"));
        assert_eq!((&said["status"], answer.contains(&SECRET.len().to_string())), (&json!("done"), true), "{answer}");
        let (said, answer) =
            call(host, &format!("{name}-v"), &format!("/allow send -- use {name}__value {{\"of\":\"TOKEN\"}}"));
        assert_eq!((&said["status"], answer.contains(SECRET)), (&json!("done"), false), "{answer}");
    }
    // A server cannot show its secret to the people and models that read its listing.
    fixture.registry.publish_wheel("papers_pypi", &PYTHON.replace("Shows a variable.\"", "\" + os.environ[\"TOKEN\"]"));
    let words = [
        "--json",
        "mcp",
        "add",
        "four",
        "--pypi",
        "papers_pypi",
        "--env",
        "TOKEN=secret:papers",
        "--yes",
        "--",
        "papers_pypi",
    ];
    let refused = host.ctl(&words).refused("mcp_unreachable");
    assert!(refused.stderr.contains("a secret") && !refused.stderr.contains(SECRET), "{}", refused.stderr);
    assert_eq!(show(host, "four")["tools"], json!([]));
    assert!(!fixture.traces.path().join("ran").exists(), "no script of a package runs");
    let registered = host.entries("mcp.registered");
    assert!(registered.iter().all(|entry| entry["data"]["layer"].is_string()), "{registered:?}");
    let export = host.ctl(&["audit", "export"]).ok().stdout;
    assert!(!export.contains(SECRET));
    host.ctl(&["secret", "remove", "papers", "--yes"]).refused("one");
    // Layers without a server go at the next start.
    host.ctl(&["mcp", "remove", "one", "--yes"]).ok();
    let layers = host.home.join("mcp/one/layers");
    assert!(layers.exists());
    host.restart();
    assert!(!layers.exists());
    let (said, answer) = call(host, "again", "/allow send -- use two__length {\"of\":\"TOKEN\"}");
    assert_eq!(said["status"], "done", "{answer}");
}

/// A published server with a call of one of its tools, and a part of the answer.
struct Published {
    name: &'static str,
    add: &'static [&'static str],
    tool: &'static str,
    arguments: Value,
    answer: &'static str,
}

/// Returns the published servers that the long tier runs, each in a fixed version.
fn published() -> [Published; 9] {
    let entities = json!([{ "name": "tulips", "entityType": "plant", "observations": ["they need sun"] }]);
    [
        Published {
            name: "everything",
            add: &["--npm", "@modelcontextprotocol/server-everything@2026.8.31", "--", "mcp-server-everything"],
            tool: "echo",
            arguments: json!({ "message": "tulips" }),
            answer: "tulips",
        },
        Published {
            name: "files",
            add: &[
                "--npm",
                "@modelcontextprotocol/server-filesystem@2026.8.31",
                "--mount",
                "DIRECTORY",
                "--",
                "mcp-server-filesystem",
                "/papers",
            ],
            tool: "read_text_file",
            arguments: json!({ "path": "/papers/garden.txt" }),
            answer: "Tulips need sun.",
        },
        Published {
            name: "memory",
            add: &[
                "--npm",
                "@modelcontextprotocol/server-memory@2026.8.31",
                "--env",
                "MEMORY_FILE_PATH=text:/state/memory.jsonl",
                "--",
                "mcp-server-memory",
            ],
            tool: "create_entities",
            arguments: json!({ "entities": entities }),
            answer: "they need sun",
        },
        Published {
            name: "time",
            add: &["--pypi", "mcp-server-time==2026.10.19", "--", "mcp-server-time", "--local-timezone", "UTC"],
            tool: "convert_time",
            arguments: json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
            answer: "+9",
        },
        Published {
            name: "thinking",
            add: &[
                "--npm",
                "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
                "--",
                "mcp-server-sequential-thinking",
            ],
            tool: "sequentialthinking",
            arguments: json!({ "thought": "tulips", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 }),
            answer: "thoughtHistoryLength",
        },
        Published {
            name: "runner",
            add: &["--npm", "mcp-server-code-runner@0.1.8", "--", "mcp-server-code-runner"],
            tool: "run-code",
            arguments: json!({ "languageId": "javascript", "code": "console.log(6 * 7)" }),
            answer: "42",
        },
        Published {
            name: "calculator",
            add: &["--pypi", "mcp-server-calculator==0.2.1", "--", "mcp-server-calculator"],
            tool: "calculate",
            arguments: json!({ "expression": "6*7" }),
            answer: "42",
        },
        Published {
            name: "sqlite",
            add: &[
                "--pypi",
                "mcp-server-sqlite==2025.4.25",
                // It needs a version of the library before 2, and does not say so.
                "--pypi",
                "mcp==1.30.0",
                "--",
                "mcp-server-sqlite",
                "--db-path",
                "/state/papers.db",
            ],
            tool: "create_table",
            arguments: json!({ "query": "CREATE TABLE tulips (colour TEXT)" }),
            answer: "created",
        },
        Published {
            name: "editor",
            add: &[
                "--pypi",
                "mcp-text-editor==1.0.2",
                "--pypi",
                "mcp==1.30.0",
                "--mount",
                "DIRECTORY",
                "--",
                "mcp-text-editor",
            ],
            tool: "get_text_file_contents",
            arguments: json!({ "files": [{ "file_path": "/papers/garden.txt", "ranges": [{ "start": 1 }] }] }),
            answer: "Tulips need sun.",
        },
    ]
}

#[test]
#[ignore = "it needs the registries of npm and PyPI; `.ci/long mcp` runs it"]
fn published_mcp_servers_answer_calls_in_their_jails() {
    let above = tempfile::tempdir().expect("a temporary directory");
    let directory = above.path().join("papers");
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("garden.txt"), "Tulips need sun.\n").expect("written");
    for path in [above.path(), &directory] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    }
    let host = TestHost::own(Build::Plain);
    let path = directory.to_str().expect("UTF-8");
    host.configure(&format!("[mounts]\nallow = [{path:?}]\n"));
    host.up();
    host.agent("a");
    for Published { name, add, tool, arguments, answer } in published() {
        let words: Vec<&str> = add.iter().map(|word| if *word == "DIRECTORY" { path } else { word }).collect();
        ready(&host, name, &words, None);
        let (said, told) = call(&host, name, &format!("/allow send -- use {name}__{tool} {arguments}"));
        assert_eq!((&said["status"], told.contains(answer)), (&json!("done"), true), "{name}: {said} {told}");
    }
}

#[test]
fn package_with_other_bytes_is_refused_until_confirmed() {
    let fixture = Fixture::new();
    fixture.publish_npm("");
    let host = &fixture.host;
    let words = ["--npm", "papers-npm", "--env", "LEVEL=text:debug", "--", "papers"];
    ready(host, "papers", &words, None);
    let (said, answer) = call(host, "t0", "/allow send -- use papers__value {\"of\":\"LEVEL\"}");
    assert_eq!((&said["status"], answer.contains("debug")), (&json!("done"), true), "{answer}");
    let first = show(host, "papers")["packages"]["layer"].clone();
    // The same bytes again keep the confirmation.
    add(host, "papers", &words);
    assert_eq!(
        (&show(host, "papers")["state"], &show(host, "papers")["packages"]["layer"]),
        (&json!("confirmed"), &first)
    );
    // The registry has other bytes under the same name and version.
    fixture.publish_npm("# other bytes");
    add(host, "papers", &words);
    let shown = show(host, "papers");
    assert_eq!((&shown["state"], &shown["agents"]), (&json!("proposed"), &json!([])), "{shown}");
    assert_ne!(shown["packages"]["layer"], first);
    let (said, _) = call(host, "t1", "/allow send -- use papers__length {\"of\":\"HOME\"}");
    assert_eq!(said["code"], "call_tool_unknown", "{said}");
    // A changed file of the layer ends the use of the server at the next start.
    ready(host, "papers", &words, None);
    let layer = show(host, "papers")["packages"]["layer"].as_str().expect("a digest").to_owned();
    host.down();
    let file = host.home.join(format!("mcp/papers/layers/{layer}/usr/lib/node_modules/papers-npm/cli.js"));
    let mut text = std::fs::read_to_string(&file).expect("the program");
    text.push_str("# changed");
    std::fs::remove_file(&file).expect("removed");
    std::fs::write(&file, text).expect("written");
    host.up();
    let (said, answer) = call(host, "t2", "/allow send -- use papers__length {\"of\":\"HOME\"}");
    assert!(answer.contains(&layer[..8]) && answer.contains("nothing was sent"), "{said} {answer}");
}

#[test]
fn unusable_package_or_program_is_refused_by_name() {
    let fixture = Fixture::new();
    fixture.publish_npm("");
    fixture.registry.publish_source("needs_build");
    fixture.registry.publish_wheel_with_source("brings_source");
    for (words, code, named) in [
        (&["--pypi", "needs_build", "--", "needs_build"][..], "package_needs_build", "build step"),
        (&["--pypi", "brings_source", "--", "brings_source"], "package_needs_build", "a package needs a build step"),
        (&["--pypi", "nowhere_pypi", "--", "papers"], "packages_client_failed", "nowhere_pypi"),
        (&["--npm", "papers-npm", "--", "other-program"], "mcp_program", "other-program"),
        (&["--npm", "nowhere-npm", "--", "papers"], "packages_client_failed", "nowhere-npm"),
        (&["--npm", "papers-npm@latest", "--", "papers"], "packages_name", "papers-npm@latest"),
        (&["--pypi", "x>=1", "--", "x"], "packages_name", "x>=1"),
        (&["--npm", "papers-npm", "--env", "TOKEN=secret:none", "--", "papers"], "secret_unknown", "none"),
        (&["--npm", "papers-npm", "--env", "PATH=secret:papers", "--", "papers"], "mcp_environment", "PATH"),
        (&["--npm", "papers-npm", "--", "npx", "papers-npm"], "mcp_command", "npx"),
        (&["--npm", "papers-npm", "--", "sh", "-c", "papers"], "mcp_command", "sh"),
    ] {
        let error = fixture.refused(words);
        assert_eq!(error["code"], code, "{words:?}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(named)), "{words:?}: {error}");
    }
    let servers: Value = fixture.host.ctl(&["--json", "mcp", "list"]).ok().json();
    assert_eq!(servers, json!([]), "nothing was registered");
}
