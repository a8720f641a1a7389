//! The client scenarios with a login of the published conformance tests, with a real host and the example `login_person`.
//!
//! It needs npm and its registry, so it is a campaign of `.ci/long`. The manual of MCP servers has the table of the results.

use super::mcp::host;
use crate::support::host_fixture::{Build, programs};
use crate::support::jail_fixture::example;
use crate::support::published::Published;
use std::path::Path;

/// The scenarios, whether the host passes, and a part of the reason why the login or the call ended early.
const SCENARIOS: [(&str, bool, Option<&str>); 22] = [
    ("auth/metadata-default", true, None),
    ("auth/metadata-var1", true, None),
    ("auth/metadata-var2", true, None),
    ("auth/metadata-var3", true, None),
    ("auth/basic-cimd", true, None),
    ("auth/scope-from-www-authenticate", true, None),
    ("auth/scope-from-scopes-supported", true, None),
    ("auth/scope-omitted-when-undefined", true, None),
    // People approve the scopes: a server does not add one by its refusal of a call, whose outcome is unknown then.
    ("auth/scope-step-up", false, Some("call_unknown")),
    ("auth/scope-retry-limit", true, Some("HTTP status 403")),
    ("auth/token-endpoint-auth-basic", true, None),
    ("auth/token-endpoint-auth-post", true, None),
    ("auth/token-endpoint-auth-none", true, None),
    ("auth/pre-registration", true, None),
    // The host wants the document in which the server names its issuer, which the version 2025-03-26 did not have.
    ("auth/2025-03-26-oauth-metadata-backcompat", false, Some("it names no issuer")),
    ("auth/2025-03-26-oauth-endpoint-fallback", false, Some("it names no issuer")),
    ("auth/resource-mismatch", true, Some("its document is about another server")),
    ("auth/offline-access-scope", true, None),
    ("auth/offline-access-not-supported", true, None),
    // Extensions for programs without a person, and for the identities of a company.
    ("auth/client-credentials-jwt", false, Some("unsupported_grant_type")),
    ("auth/client-credentials-basic", false, Some("unsupported_grant_type")),
    ("auth/cross-app-access-complete-flow", false, Some("unsupported_grant_type")),
];

#[test]
#[ignore = "it needs the registry of npm; `.ci/long mcp` runs it"]
fn published_mcp_logins_have_known_results() {
    let (tests, host) = (Published::install(), host());
    let ironctl = programs(Build::Plain).join("ironctl");
    let mut wrong = Vec::new();
    for (scenario, passes, why) in SCENARIOS {
        let (passed, report) = tests.run(scenario, &[&example("login_person"), &ironctl, &host.home, Path::new("a")]);
        let said = why.unwrap_or("OVERALL: PASSED");
        if passed != passes || !report.contains(said) {
            wrong.push(report);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
