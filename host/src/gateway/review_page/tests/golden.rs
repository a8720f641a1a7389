//! The whole page of each kind of change, in files for people to read.
//!
//! `IRONCLAW_GOLDEN=write cargo test -p ironclaw-host --lib review_page` rewrites them.

use super::super::Label;
use super::{Asked, SCRIBE, hostile, leaves, persona, plain, registered_again, sample, settings_by_person};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_judge::provenance::Labels;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: &str = "src/gateway/review_page/tests/golden";

/// Returns a change of each kind, and more where the danger is another one, each with the name of its file.
fn cases() -> Vec<(String, Asked)> {
    let mut cases: Vec<(String, Asked)> =
        ChangeKind::ALL.iter().map(|kind| (kind.name().to_owned(), sample(*kind))).collect();
    let read_only = json!([{"source": "/srv/data", "target": "/data", "read_only": true}]);
    for (name, asked) in &mut cases {
        if name.as_str() == "mounts" {
            asked.payload = read_only.clone();
        }
    }
    let header = json!([{"name": "authorization", "secret": "files-key", "scheme": "Bearer"}]);
    let grants = json!({"scribe": {"agent": SCRIBE, "has": ["read", "write"], "keeps": ["read"]}});
    let untrusted = Asked {
        before: json!({"instructions": ""}),
        labels: Labels::recorded(&[Label::External, Label::LlmDerived]),
        approvals: 2,
        requester_may_approve: false,
        ..persona("Be brief.")
    };
    let everyone = Asked {
        before: json!({"access": "members"}),
        facts: json!({"identities": {}}),
        ..Asked::of(ChangeKind::Permissions, json!({"access": "everyone"}))
    };
    let tunnel = Asked {
        before: json!({"host": "api.example", "methods": ["GET"], "paths": ["/repos/{owner}/issues"]}),
        ..Asked::of(
            ChangeKind::Egress,
            json!({"host": "api.example", "methods": [], "upload_bytes_max": 65536, "commands": "tunnel"}),
        )
    };
    let to_agent = Asked {
        before: json!({"name": "writer", "remove": true}),
        facts: json!({"to_agent": {"agent": SCRIBE, "name": "scribe"}}),
        ..Asked::of(ChangeKind::Destinations, json!({"name": "writer", "agent": "scribe"}))
    };
    let variants = [
        ("hostile", hostile()),
        ("destinations_agent", to_agent),
        ("egress_tunnel", tunnel),
        ("mcp_register_replace", registered_again(header, grants)),
        ("mounts_write", sample(ChangeKind::Mounts)),
        ("permissions_everyone", everyone),
        ("persona_by_person", Asked { is_person: true, labels: Labels::NONE, ..sample(ChangeKind::Persona) }),
        ("persona_untrusted", untrusted),
        ("settings_enforce", settings_by_person(json!({"mode": "dangerous_warn"}), json!({"mode": "enforce"}))),
        ("settings_remove", settings_by_person(json!({}), json!({"remove": true}))),
        ("settings_warn", settings_by_person(json!({"mode": "enforce"}), json!({"mode": "dangerous_warn"}))),
    ];
    cases.extend(variants.into_iter().map(|(name, asked)| (name.to_owned(), asked)));
    cases
}

#[test]
fn page_of_each_kind_is_its_golden_file() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(DIRECTORY);
    let mut expected = BTreeSet::new();
    for (name, asked) in cases() {
        let (file, found) = (format!("{name}.txt"), asked.shown());
        let path = directory.join(&file);
        if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|wish| wish == "write") {
            std::fs::write(&path, &found).expect("written");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = found.lines().zip(golden.lines()).find(|(found, golden)| found != golden);
        assert!(found == golden, "IRONCLAW_GOLDEN=write rewrites {file}; the first difference: {differs:?}");
        expected.insert(file);
    }
    let files = std::fs::read_dir(directory).expect("the golden files");
    let present = files.map(|file| file.expect("an entry").file_name().into_string().expect("a name"));
    assert_eq!(present.collect::<BTreeSet<_>>(), expected, "each file has a case");
}

/// Returns changes with long texts wherever others can write one.
fn cases_with_long_texts() -> Vec<(String, Asked)> {
    let words = |whose: &str| {
        format!("The {whose} wrote these words, of which a page has to show each one, and each one once.")
    };
    let mut confirmed = sample(ChangeKind::McpConfirm);
    confirmed.facts["instructions"] = json!(words("server"));
    for tool in confirmed.facts["tools"].as_array_mut().expect("tools") {
        tool["description"] = json!(words(tool["name"].as_str().expect("a name")));
    }
    let mut skill = sample(ChangeKind::Skills);
    skill.facts["description"] = json!(words("author"));
    skill.payload["persona"] = json!(words("persona"));
    skill.facts["ends"] = json!([{ "id": "sch_01j9zq4w0v2m6n8p0r2t4v6x8z", "prompt": words("schedule") }]);
    let described = json!([{ "name": "read", "description": words("requester") }]);
    let server = Asked {
        facts: json!({ "secrets": {}, "grants": {} }),
        ..Asked::of(
            ChangeKind::McpRegister,
            json!({ "name": "notes", "command": ["notes"], "tools": described,
                "environment": [{ "variable": "TEXT", "text": words("variable") }] }),
        )
    };
    let long = [("mcp_confirm", confirmed), ("skills", skill), ("mcp_register", server)];
    long.into_iter().map(|(name, asked)| (format!("{name} with long texts"), asked)).collect()
}

#[test]
fn no_text_is_on_a_page_twice_and_none_is_left_out() {
    let is_long = |text: &&str| text.chars().count() > 40;
    for (name, asked) in cases().into_iter().chain(cases_with_long_texts()).filter(|(name, _)| name != "hostile") {
        let text = asked.shown();
        let (page, rest) = text.split_once("\nIDENTIFIERS\n").expect("the identifiers");
        let page = page.to_owned() + rest.find("\nCHANGES (").map_or("", |at| &rest[at..]);
        let mut lines: Vec<&str> =
            page.lines().map(|line| line.trim_start_matches([' ', '-', '+', '|', '!'])).collect();
        lines.retain(|line| is_long(line));
        lines.sort_unstable();
        let twice = lines.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "{name}:\n{text}");
        let found = plain(&page);
        let all = [&asked.payload, &asked.before, &asked.facts].into_iter().flat_map(leaves);
        for leaf in all.filter(is_long) {
            assert_eq!(found.matches(&plain(leaf)).count(), 1, "{name}: {leaf:?} in\n{text}");
        }
    }
}
