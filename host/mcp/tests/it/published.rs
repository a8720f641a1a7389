//! The package of the published conformance tests, from the registry of npm.

use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

/// The package of the tests.
const TESTS: &str = "@modelcontextprotocol/conformance@0.1.16";
/// The version of node that runs them, because node of the machine can be too old.
const NODE: &str = "22.23.3";
/// Milliseconds of a scenario.
const SCENARIO_MS: &str = "20000";

/// The installed package.
pub(crate) struct Published {
    directory: tempfile::TempDir,
    node: String,
}

impl Published {
    /// Installs the package.
    pub(crate) fn install() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let node = format!("node-linux-{}", if ARCH == "aarch64" { "arm64" } else { "x64" });
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(directory.path());
        npm.args([TESTS, &format!("{node}@{NODE}")]);
        assert!(npm.status().expect("npm runs").success(), "npm installs the tests");
        Self { directory, node }
    }

    /// Runs a scenario with a client, which gets the URL of a server as its last argument. Returns whether it passes, and the report.
    pub(crate) fn run(&self, scenario: &str, client: &[&Path]) -> (bool, String) {
        let modules = self.directory.path().join("node_modules");
        let mut tests = Command::new(modules.join(&self.node).join("bin/node"));
        tests.arg(modules.join(".bin/conformance")).args(["client", "--timeout", SCENARIO_MS, "--scenario", scenario]);
        let words: Vec<&str> = client.iter().map(|word| word.to_str().expect("UTF-8")).collect();
        tests.args(["--command", &words.join(" ")]).current_dir(self.directory.path());
        let said = tests.output().expect("node runs");
        let report = [said.stdout.as_slice(), &said.stderr].map(String::from_utf8_lossy).concat();
        assert!(report.contains("Test Results:"), "{scenario}: {report}");
        (said.status.success(), report)
    }
}
