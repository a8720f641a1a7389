//! The client scenarios of the published conformance tests, with the example `conformance_client`.
//!
//! It needs npm and its registry, so it is a campaign of `.ci/long`. The manual of MCP servers has the table of the results.

use crate::server::example;
use std::env::consts::ARCH;
use std::process::Command;

/// The package of the tests.
const TESTS: &str = "@modelcontextprotocol/conformance@0.1.16";
/// The version of node that runs them, because node of the machine can be too old.
const NODE: &str = "22.23.3";
/// Milliseconds of a scenario.
const SCENARIO_MS: &str = "20000";

/// The scenarios for a client without a login, and whether it passes. This client answers no question of a server and resumes no stream.
const SCENARIOS: [(&str, bool); 4] =
    [("initialize", true), ("tools_call", true), ("elicitation-sep1034-client-defaults", false), ("sse-retry", false)];

#[test]
#[ignore = "it needs the registry of npm; `.ci/long mcp` runs it"]
fn published_mcp_scenarios_have_known_results() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let node = format!("node-linux-{}", if ARCH == "aarch64" { "arm64" } else { "x64" });
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(directory.path());
    npm.args([TESTS, &format!("{node}@{NODE}")]);
    assert!(npm.status().expect("npm runs").success(), "npm installs the tests");
    let modules = directory.path().join("node_modules");
    for (scenario, passes) in SCENARIOS {
        let mut tests = Command::new(modules.join(&node).join("bin/node"));
        tests.arg(modules.join(".bin/conformance")).args(["client", "--timeout", SCENARIO_MS, "--scenario", scenario]);
        tests.arg("--command").arg(example("conformance_client")).current_dir(directory.path());
        let said = tests.output().expect("node runs");
        let words = [said.stdout.as_slice(), &said.stderr].map(String::from_utf8_lossy).concat();
        assert!(words.contains("Test Results:"), "{scenario}: {words}");
        assert_eq!(said.status.success(), passes, "{scenario}: {words}");
    }
}
