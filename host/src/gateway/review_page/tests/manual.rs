//! The review pages that the manual quotes: each is the output of the code.
//!
//! `IRONCLAW_GOLDEN=write cargo test -p ironclaw-host --lib review_page` rewrites them.

use super::{AGENT, Asked, BOB, persona, settings_by_person};
use ironclaw_contract::seam::change::ChangeKind;
use serde_json::{Value, json};
use std::path::Path;

/// Returns the request behind each page of `change-kinds.md`.
fn cases() -> Vec<Asked> {
    let by_agent = |kind: ChangeKind, before: Value, facts: Value, payload: Value| Asked {
        before,
        facts,
        agent: "assistant".to_owned(),
        principal: "owner".to_owned(),
        ..Asked::of(kind, payload)
    };
    let usual =
        ["list_dir", "read_file", "recall", "remember", "request_capability_change", "search_files", "write_file"];
    let mut with_commands = usual.to_vec();
    with_commands.insert(5, "run_command");
    let header = json!({"name": "authorization", "scheme": "Bearer", "secret": "calendar"});
    vec![
        by_agent(ChangeKind::EnabledTools, json!(usual), json!({}), json!(with_commands)),
        by_agent(
            ChangeKind::Mounts,
            json!([]),
            json!({"sources": {"/srv/papers": {"directory": true, "filesystem": "ext4", "owner": 0}}}),
            json!([{"source": "/srv/papers", "target": "/papers", "read_only": true}]),
        ),
        by_agent(
            ChangeKind::Packages,
            json!({}),
            json!({"clients": {"apt": {"client": "/usr/bin/apt-get", "sources": null}}}),
            json!({"apt": ["jq"]}),
        ),
        by_agent(
            ChangeKind::Wiring,
            json!({"channel": "desk", "engage": "all"}),
            json!({"channels": {"desk": {"generation": 1, "kind": "webhook", "heard_by": {"agent": AGENT, "name": "assistant"}}}}),
            json!({"channel": "desk", "engage": "pattern", "pattern": "^!bot"}),
        ),
        by_agent(
            ChangeKind::Permissions,
            json!({"access": "everyone", "revoke": ["telegram:4711"]}),
            json!({"identities": {"telegram:4711": {"person": BOB, "name": "bob"}}}),
            json!({"access": "members", "grant": [{"identity": "telegram:4711", "role": "member"}]}),
        ),
        by_agent(
            ChangeKind::CreateAgent,
            Value::Null,
            json!({"identities": {}, "channels": {}}),
            json!({"name": "researcher", "persona": {"instructions": "Find sources."}, "enabled_tools": ["read_file"]}),
        ),
        by_agent(
            ChangeKind::McpRegister,
            Value::Null,
            json!({"secrets": {"calendar": true}, "grants": {}}),
            json!({
                "name": "calendar", "url": "https://calendar.example/mcp", "headers": [header],
                "tools": [{"name": "add_event"}, {"name": "list_events", "description": "What is on"}],
            }),
        ),
        by_agent(
            ChangeKind::McpAccess,
            json!({"server": "calendar", "tools": []}),
            json!({"servers": {"calendar": {
                "at": "https://calendar.example/mcp", "is_local": false, "headers": [header],
                "tools": {"add_event": "send", "list_events": "read"},
            }}}),
            json!({"server": "calendar", "tools": ["list_events"]}),
        ),
        by_agent(
            ChangeKind::Egress,
            json!({"host": "api.example", "methods": []}),
            json!({}),
            json!({
                "host": "api.example", "methods": ["GET", "POST"], "paths": ["/repos/{owner}/issues"], "secret": "files-key",
                "upload_bytes_max": 65536,
            }),
        ),
        Asked {
            agent: "t1".to_owned(),
            facts: json!({"of_the_settings": {"tokens_per_day": 0, "cost_per_day_micros": 0}}),
            ..settings_by_person(
                json!({"mode": "enforce", "tokens_per_day": 0}),
                json!({"mode": "dangerous_off", "tokens_per_day": 5}),
            )
        },
    ]
}

/// Returns the change of persona that both files show.
fn of_persona() -> Asked {
    Asked {
        before: json!({"instructions": ""}),
        agent: "assistant".to_owned(),
        principal: "owner".to_owned(),
        reason: "it talks too much".to_owned(),
        ..persona("Answer briefly.")
    }
}

/// Returns a document with this page below its mark.
fn with_page(document: &str, kind: ChangeKind, page: &str) -> String {
    let mark = format!("<!-- review page: {kind} -->\n```\n");
    let (before, rest) = document.split_once(&mark).unwrap_or_else(|| panic!("the document has no {mark:?}"));
    let (_, after) = rest.split_once("```\n").expect("the end of the page");
    format!("{before}{mark}{page}```\n{after}")
}

#[test]
fn pages_of_the_manual_are_the_output_of_the_code() {
    // `change-kinds.md` has the first sections alone.
    let begin = |asked: &Asked| asked.shown().split("\nREASON GIVEN").next().expect("a first part").to_owned();
    let whole = of_persona();
    let kinds = cases().into_iter().chain([of_persona()]).map(|asked| (asked.kind, begin(&asked))).collect();
    for (file, pages) in [("changes.md", vec![(whole.kind, whole.shown())]), ("change-kinds.md", kinds)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operate").join(file);
        let found = std::fs::read_to_string(&path).expect("the document");
        let wanted = pages.iter().fold(found.clone(), |text, (kind, page)| with_page(&text, *kind, page));
        if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|wish| wish == "write") {
            std::fs::write(&path, &wanted).expect("written");
        } else {
            let differs = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
            assert!(found == wanted, "IRONCLAW_GOLDEN=write rewrites {file}; the first difference: {differs:?}");
        }
    }
}
