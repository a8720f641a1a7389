//! The client scenarios of the published conformance tests, with the example `conformance_client`.
//!
//! It needs npm and its registry, so it is a campaign of `.ci/long`. The manual of MCP servers has the table of the results. The tests of
//! the host run the scenarios with a login.

use crate::published::Published;
use crate::server::example;

/// The scenarios for a client without a login, and whether it passes. This client answers no question of a server and resumes no stream.
const SCENARIOS: [(&str, bool); 4] =
    [("initialize", true), ("tools_call", true), ("elicitation-sep1034-client-defaults", false), ("sse-retry", false)];

#[test]
#[ignore = "it needs the registry of npm; `.ci/long mcp` runs it"]
fn published_mcp_scenarios_have_known_results() {
    let tests = Published::install();
    for (scenario, passes) in SCENARIOS {
        let (passed, report) = tests.run(scenario, &[&example("conformance_client")]);
        assert_eq!(passed, passes, "{scenario}: {report}");
    }
}
