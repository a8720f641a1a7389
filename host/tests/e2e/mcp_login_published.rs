//! The client scenarios with a login of the published conformance tests, with a real host and the example `login_person`.
//!
//! It needs npm and its registry, so it is a campaign of `.ci/long`. The manual of MCP servers has the table of the results.

use super::mcp::host;
use crate::support::host_fixture::{Build, programs};
use crate::support::jail_fixture::example;
use crate::support::published::Published;
use std::path::Path;

/// The scenarios, and whether the host passes.
const SCENARIOS: [(&str, bool); 22] = [
    ("auth/metadata-default", true),
    ("auth/metadata-var1", true),
    ("auth/metadata-var2", true),
    ("auth/metadata-var3", true),
    ("auth/basic-cimd", true),
    ("auth/scope-from-www-authenticate", true),
    ("auth/scope-from-scopes-supported", true),
    ("auth/scope-omitted-when-undefined", true),
    // People approve the scopes: a server does not add one by its refusal of a call.
    ("auth/scope-step-up", false),
    ("auth/scope-retry-limit", true),
    ("auth/token-endpoint-auth-basic", true),
    ("auth/token-endpoint-auth-post", true),
    ("auth/token-endpoint-auth-none", true),
    // An id of a client that people name has no secret.
    ("auth/pre-registration", false),
    // The host wants the document in which the server names its issuer, which the version 2025-03-26 did not have.
    ("auth/2025-03-26-oauth-metadata-backcompat", false),
    ("auth/2025-03-26-oauth-endpoint-fallback", false),
    ("auth/resource-mismatch", true),
    ("auth/offline-access-scope", true),
    ("auth/offline-access-not-supported", true),
    // Extensions for programs without a person, and for the identities of a company.
    ("auth/client-credentials-jwt", false),
    ("auth/client-credentials-basic", false),
    ("auth/cross-app-access-complete-flow", false),
];

#[test]
#[ignore = "it needs the registry of npm; `.ci/long mcp` runs it"]
fn published_mcp_logins_have_known_results() {
    let (tests, host) = (Published::install(), host());
    let ironctl = programs(Build::Plain).join("ironctl");
    let mut wrong = Vec::new();
    for (scenario, passes) in SCENARIOS {
        let (passed, report) = tests.run(scenario, &[&example("login_person"), &ironctl, &host.home, Path::new("a")]);
        println!("{report}\n{scenario}: {}", if passed { "passed" } else { "failed" });
        if passed != passes {
            wrong.push(report);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
