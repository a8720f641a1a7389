//! The test skills of `ironclaw_skill` through a real host: added, used, upgraded, removed; and a skill with tools of an MCP server.

use super::SkillFixture;
use crate::e2e::mcp;
use crate::support::host_fixture::Build;
use crate::support::mcp_server::HttpServer;
use std::path::{Path, PathBuf};

/// Skills that need something that this test does not make: packages of apt, and a directory that the settings allow.
const ELSEWHERE: [&str; 3] = ["json-query", "recipes", "calendar-week"];

fn sources() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("skill/tests/skills");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(all).expect("a directory").map(|entry| entry.expect("an entry").path()).collect();
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

#[test]
fn test_skills_are_added_used_upgraded_and_removed() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    let names: Vec<String> = sources()
        .iter()
        .map(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
            let own = fixture.directory.path().join(&name);
            copy(path, &own);
            let manifest = std::fs::read_to_string(own.join("skill.toml")).expect("read");
            let line = manifest.lines().find(|line| line.starts_with("version = ")).expect("a version");
            let version = line.trim_start_matches("version = ").trim_matches('"').to_owned();
            fixture.pack(&own, &name, &version);
            fixture.add(&name).ok();
            let newer = manifest.replacen(line, "version = \"9.0.0\"", 1);
            std::fs::write(own.join("skill.toml"), newer).expect("written");
            fixture.pack(&own, &name, "9.0.0");
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
    mcp::ready(host, "tests", &["--url", &server.url], None);
    host.change("a", "mcp_access", &serde_json::json!({"server": "tests", "tools": []}));
    let grants = "[grants]\nmcp = [{ server = \"tests\", tools = [\"echo\"], always_ask = [\"echo\"] }]\n";
    fixture.publish("echoes", "1.0.0", grants, "Use echo.");
    fixture.add("echoes").ok();
    let tools = || fixture.agent()["mcp"].to_string();
    assert!(tools().contains("echo"), "{}", tools());
    // Without the tightening, another version is a loosening that the page names.
    let grants = "[grants]\nmcp = [{ server = \"tests\", tools = [\"echo\"] }]\n";
    fixture.publish("echoes", "1.1.0", grants, "Use echo.");
    let answer = host.ctl(&["skill", "upgrade", "echoes", "--agent", "a", "--yes"]).ok();
    assert!(answer.stdout.contains("NO LONGER") && answer.stdout.contains("tests__echo"), "{}", answer.stdout);
    host.ctl(&["skill", "remove", "echoes", "--agent", "a", "--yes"]).ok();
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
