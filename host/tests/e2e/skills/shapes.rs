//! The test skills of `ironclaw_skill` through a real host: added, used, upgraded, removed; and a skill with tools of an MCP server.

use super::SkillFixture;
use crate::e2e::mcp;
use crate::e2e::packages::{Registry, archive, make_writable};
use crate::support::host_fixture::{Build, wait_for};
use crate::support::mcp_server::HttpServer;
use crate::support::record;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Skills that need software, a directory or an MCP server, which other tests make.
const ELSEWHERE: [&str; 3] = ["json-query", "recipes", "calendar-week"];

fn test_skills() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("skill/tests/skills")
}

fn sources() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(test_skills()).expect("a directory").map(|entry| entry.expect("an entry").path()).collect();
    found.retain(|path| path.join("skill.toml").is_file() && !ELSEWHERE.iter().any(|name| path.ends_with(name)));
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied")),
        }
    }
}

/// Adds a test skill whose manifest is changed, and returns its name.
fn add(fixture: &SkillFixture, path: &Path, change: impl Fn(String) -> String) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
    let own = fixture.directory.path().join(&name);
    copy(path, &own);
    let manifest = change(std::fs::read_to_string(own.join("skill.toml")).expect("read"));
    std::fs::write(own.join("skill.toml"), &manifest).expect("written");
    let version = version_line(&manifest).trim_start_matches("version = ").trim_matches('"').to_owned();
    fixture.pack(&own, &name, &version);
    fixture.add(&name).ok();
    name
}

fn version_line(manifest: &str) -> &str {
    manifest.lines().find(|line| line.starts_with("version = ")).expect("a version")
}

/// Publishes version 9.0.0 of an added test skill.
fn publish_newer(fixture: &SkillFixture, name: &str) {
    let own = fixture.directory.path().join(name);
    let manifest = std::fs::read_to_string(own.join("skill.toml")).expect("read");
    let newer = manifest.replacen(version_line(&manifest), "version = \"9.0.0\"", 1);
    std::fs::write(own.join("skill.toml"), newer).expect("written");
    fixture.pack(&own, name, "9.0.0");
}

#[test]
fn test_skills_are_added_used_upgraded_and_removed() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    let names: Vec<String> = sources()
        .iter()
        .map(|path| {
            let name = add(&fixture, path, |manifest| manifest);
            publish_newer(&fixture, &name);
            name
        })
        .collect();
    assert_eq!(fixture.skills().len(), names.len());
    for name in &names {
        let said = host.say("a", &format!("use skill {name}"));
        assert!(said.contains(&format!("name: {name}")), "{said}");
        host.ctl(&["skill", "upgrade", name, "--agent", "a", "--yes"]).ok();
    }
    assert!(fixture.skills().iter().all(|skill| skill["version"] == "9.0.0"));
    for name in &names {
        host.ctl(&["skill", "remove", name, "--agent", "a", "--yes"]).ok();
    }
    assert!(fixture.skills().is_empty());
}

#[test]
fn skill_grants_confirmed_tools_of_a_server_and_tightens_them() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    let server = HttpServer::start(&[]);
    mcp::ready(host, "calendar", &["--url", &server.url], None);
    host.change("a", "mcp_access", &serde_json::json!({"server": "calendar", "tools": []}));
    let grants = "[grants]\nmcp = [{ server = \"calendar\", tools = [\"echo\"], always_ask = [\"echo\"] }]\n";
    fixture.publish("echoes", "1.0.0", grants, "Use echo.");
    fixture.add("echoes").ok();
    let tools = || fixture.agent()["mcp"].to_string();
    assert!(tools().contains("echo"), "{}", tools());
    // Without the tightening, another version is a loosening that the page names.
    let grants = "[grants]\nmcp = [{ server = \"calendar\", tools = [\"echo\"] }]\n";
    fixture.publish("echoes", "1.1.0", grants, "Use echo.");
    let answer = host.ctl(&["skill", "upgrade", "echoes", "--agent", "a", "--yes"]).ok();
    assert!(answer.stdout.contains("NO LONGER") && answer.stdout.contains("calendar__echo"), "{}", answer.stdout);
    host.ctl(&["skill", "remove", "echoes", "--agent", "a", "--yes"]).ok();
    assert!(!tools().contains("echo"), "{}", tools());
    // The test skill with the tools of this server.
    let path = test_skills().join("calendar-week");
    add(&fixture, &path, |manifest| manifest.replace("list_events", "count").replace("add_event", "echo"));
    assert!(tools().contains("echo") && tools().contains("count"), "{}", tools());
    publish_newer(&fixture, "calendar-week");
    host.ctl(&["skill", "upgrade", "calendar-week", "--agent", "a", "--yes"]).ok();
    host.ctl(&["skill", "remove", "calendar-week", "--agent", "a", "--yes"]).ok();
    assert!(!tools().contains("echo"), "{}", tools());
}

#[test]
fn two_skills_share_a_grant_until_both_are_removed() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    let grants = "[grants]\ntools = [\"run_command\"]\n[[grants.egress]]\nhost = \"Api.Example\"\nmethods = [\"GET\"]\npaths = [\"/v1\"]\n";
    let hosts = || host.ctl(&["--json", "egress", "list", "a"]).ok().json().as_array().expect("a list").len();
    for name in ["heron", "crane"] {
        fixture.publish(name, "1.0.0", grants, "x");
        fixture.add(name).ok();
    }
    assert_eq!((fixture.has_tool("run_command"), hosts()), (true, 1));
    host.ctl(&["skill", "remove", "heron", "--agent", "a", "--yes"]).ok();
    assert_eq!((fixture.has_tool("run_command"), hosts()), (true, 1), "the other one needs them");
    host.ctl(&["skill", "remove", "crane", "--agent", "a", "--yes"]).ok();
    assert_eq!((fixture.has_tool("run_command"), hosts()), (false, 0));
    // A grant of a person on other terms is never replaced.
    let own = serde_json::json!({"host": "api.example", "methods": ["POST"], "paths": ["/v2"]});
    host.change("a", "egress", &own);
    fixture.add("heron").refused("skill_conflict");
    assert_eq!(hosts(), 1);
}

#[test]
fn skills_bring_software_and_directories_of_the_machine() {
    let fixture = SkillFixture::new(Build::Plain);
    let (host, directory) = (&fixture.host, fixture.directory.path());
    let registry = Registry::new();
    registry.offer(&[archive(directory, "jq-of-tests", |_| ())]);
    let list = directory.join("own.list");
    std::fs::write(&list, format!("deb [trusted=yes] http://127.0.0.1:{}/apt ./\n", registry.port)).expect("written");
    let machine = directory.canonicalize().expect("an existing path");
    for (name, file) in [("recipes-of-us", "soup.md"), ("data", "one.md")] {
        std::fs::create_dir_all(machine.join(name)).expect("made");
        std::fs::write(machine.join(name).join(file), "A leek.").expect("written");
    }
    let settings = |allowed: &str| {
        let (allowed, port) = (machine.join(allowed), registry.port);
        host.configure(&format!(
            "[mounts]\nallow = [{allowed:?}]\n[packages]\napt_sources = {list:?}\nports = [{port}]\n"
        ));
        host.ctl(&["config", "reload"]).ok();
    };
    settings("");
    host.change("a", "mounts", &json!([{"source": machine.join("data")}]));
    let of_us = machine.join("recipes-of-us").display().to_string();
    // The machine may have the real one.
    add(&fixture, &test_skills().join("json-query"), |manifest| manifest.replace("\"jq\"", "\"jq-of-tests\""));
    add(&fixture, &test_skills().join("recipes"), |manifest| manifest.replace("/srv/recipes", &of_us));
    let is_used = || {
        wait_for("the software", || host.say("a", "run jq-of-tests").contains("hello"));
        assert!(host.say("a", "read /recipes/soup.md").contains("A leek."));
    };
    is_used();
    for name in ["json-query", "recipes"] {
        publish_newer(&fixture, name);
        host.ctl(&["skill", "upgrade", name, "--agent", "a", "--yes"]).ok();
    }
    is_used();
    assert!(fixture.skills().iter().all(|skill| skill["version"] == "9.0.0"));
    // A directory and a tool that stay are no longer allowed.
    settings("recipes-of-us");
    host.down();
    let sql = "UPDATE agents SET enabled_tools = json_insert(enabled_tools, '$[#]', 'gone_tool') WHERE name = 'a'";
    record::open_to_change(&host.home).execute(sql, []).expect("changed");
    record::restore_owner(host);
    host.up();
    for name in ["recipes", "json-query"] {
        host.ctl(&["skill", "remove", name, "--agent", "a", "--yes"]).ok();
    }
    let agent = fixture.agent();
    assert!(
        agent["mounts"].to_string().contains("/data") && !agent["mounts"].to_string().contains("/recipes"),
        "{agent}"
    );
    assert_eq!((fixture.has_tool("gone_tool"), fixture.has_tool("run_command")), (true, false));
    assert!(!agent["packages"].to_string().contains("jq"), "{agent}");
    host.kill_host();
    make_writable(&host.home.join("agents"));
}
