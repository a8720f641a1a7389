//! The whole page of each kind of change, in files for people to read.
//!
//! `IRONCLAW_GOLDEN=write cargo test -p ironclaw-host --lib review_page` rewrites them.

use super::super::Label;
use super::{Asked, SCRIBE, hostile, persona, registered_again, sample, settings_by_person};
use ironclaw_contract::seam::change::ChangeKind;
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
        labels: vec![Label::External, Label::LlmDerived],
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
        ("persona_by_person", Asked { is_person: true, labels: Vec::new(), ..sample(ChangeKind::Persona) }),
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
