//! Further samples of changes: a server that is registered again, and settings by a person.

use super::*;
use ironclaw_judge::provenance::Labels;

/// Returns the replacement of a known server with two tools by one with one tool, with the grants of agents.
pub(super) fn registered_again(headers: Value, grants: Value) -> Asked {
    let server = |headers: Value, tools: &[&str]| {
        let tools: Vec<Value> = tools.iter().map(|tool| json!({"name": tool})).collect();
        match headers == json!([]) {
            // A host leaves out an empty list of headers.
            true => json!({"name": "files", "url": "https://mcp.example", "tools": tools}),
            false => json!({"name": "files", "url": "https://mcp.example", "tools": tools, "headers": headers}),
        }
    };
    let mut asked = Asked::of(ChangeKind::McpRegister, server(headers, &["read"]));
    asked.before = server(json!([]), &["read", "write"]);
    asked.facts = json!({"secrets": {"files-key": true}, "grants": grants});
    asked
}

/// Returns settings of an agent, asked for by a person.
pub(super) fn settings_by_person(before: Value, payload: Value) -> Asked {
    Asked { before, is_person: true, labels: Labels::NONE, ..Asked::of(ChangeKind::Settings, payload) }
}
