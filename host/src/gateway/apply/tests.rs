//! Tests of the effect of each kind in the record, and of changes that can no longer be applied.

use super::*;
use crate::gateway::Proposed;
use crate::gateway::checks::tests::{Scene, confirm, on_record};
use crate::gateway::writers;
use crate::reach::packages::Layer;
use crate::registry::mounts::{self, Mount};
use crate::registry::{self, Agent, channels, mcp, roles, software};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::change::{Access, AgentRole, ChangeKind};
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use serde_json::{Value, json};

#[track_caller]
fn done(tx: &mut WriteTx<'_>, scene: &Scene, kind: ChangeKind, payload: Value, prepared: &Prepared) -> String {
    let proposed: Proposed = scene.by_owner(kind, payload);
    let approved = scene.approved(tx, proposed);
    apply(tx, &approved, prepared).expect("it can be done").outcome
}

/// Returns the code of the refusal of a change for which nothing is prepared.
#[track_caller]
fn code(tx: &mut WriteTx<'_>, approved: &Approved) -> DenialCode {
    apply(tx, approved, &Prepared::Nothing).expect_err("refused").refusal().code
}

fn noted(tx: &ReadTx<'_>, what: &str) -> Vec<Value> {
    let sql = "SELECT data FROM ledger ORDER BY seq";
    let lines: Vec<String> = tx.list(sql, [], |row| row.get(0)).expect("read");
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["what"] == what).collect()
}

fn layer(digest: Digest) -> Layer {
    Layer {
        digest,
        files: 1,
        bytes: 1,
        installed: vec!["jq=1.6".to_owned()],
        left_out: Default::default(),
        behind: Vec::new(),
    }
}

fn clerk(tx: &ReadTx<'_>) -> Agent {
    registry::find_agent(tx, "clerk").expect("read").expect("there")
}

#[test]
fn software_that_was_not_fetched_is_not_set() {
    on_record(|tx, scene| {
        let approved = scene.approved(tx, scene.by_owner(ChangeKind::Packages, json!(["jq"])));
        assert_eq!(code(tx, &approved), DenialCode::PackagesNotFetched);
        assert_eq!(software::for_agent(tx, scene.clerk.id).expect("read"), None);
        let digest = Digest::of(b"layer");
        done(tx, &scene, ChangeKind::Packages, json!(["jq"]), &Prepared::Layer(layer(digest)));
        let software = software::for_agent(tx, scene.clerk.id).expect("read").expect("there");
        assert_eq!((software.layer, software.packages.apt), (digest, vec!["jq".to_owned()]));
        done(tx, &scene, ChangeKind::Packages, json!([]), &Prepared::Nothing);
        assert_eq!(software::for_agent(tx, scene.clerk.id).expect("read"), None);
    });
}

#[test]
fn receipt_of_a_fetch_names_a_few_packages_requested_first() {
    on_record(|tx, scene| {
        let mut many = layer(Digest::of(b"layer"));
        many.installed = (0..2_000).map(|number| format!("lib{number}=1.0")).chain(["zz=2.0".to_owned()]).collect();
        many.left_out = [("etc", 2), ("other places", 200_000)].into();
        let said = done(tx, &scene, ChangeKind::Packages, json!(["zz"]), &Prepared::Layer(many));
        let told = "agent clerk has zz in its jail (fetched: zz=2.0, lib0=1.0, lib1=1.0, ";
        let end = ", lib18=1.0, and 1981 more; files left out, because they are not below /usr: 2 of etc, 200000 of other places)";
        assert!(said.starts_with(told) && said.ends_with(end), "{said}");
    });
}

#[test]
fn change_of_a_removed_channel_or_agent_is_outdated() {
    on_record(|tx, scene| {
        let wiring = json!({ "channel": "desk", "engage": "all" });
        let approved = scene.approved(tx, scene.by_owner(ChangeKind::Wiring, wiring));
        channels::remove(tx, "desk", scene.owner).expect("removed");
        assert_eq!(code(tx, &approved), DenialCode::ChangeOutdated);
        let approved = scene.approved(tx, scene.by_owner(ChangeKind::EnabledTools, json!([])));
        writers::agents::remove_agent(tx, &Approved::by_test(scene.owner), &scene.clerk).expect("removed");
        assert_eq!(code(tx, &approved), DenialCode::ChangeOutdated);
    });
}

#[test]
fn persona_and_tools_change_with_only_digests_in_the_ledger() {
    on_record(|tx, scene| {
        done(tx, &scene, ChangeKind::Persona, json!({ "instructions": "be very brief" }), &Prepared::Nothing);
        done(tx, &scene, ChangeKind::EnabledTools, json!(["list_dir"]), &Prepared::Nothing);
        assert_eq!(clerk(tx).persona, "be very brief");
        assert_eq!(clerk(tx).enabled_tools, ["list_dir"]);
        let [entry] = &noted(tx, "agent.persona")[..] else { panic!("one entry") };
        assert_eq!(entry["before"], Digest::of(b"old").to_string());
        assert_eq!(entry["after"], Digest::of(b"be very brief").to_string());
        assert_eq!(entry["by"], json!([scene.owner.to_string()]));
        assert!(entry["change"].as_str().is_some_and(|id| id.starts_with("chg_")), "{entry}");
        assert!(!entry.to_string().contains("brief"), "{entry}");
        assert_eq!(noted(tx, "agent.tools").len(), 1);
    });
}

#[test]
fn wiring_gives_a_channel_to_one_agent_with_its_pattern() {
    on_record(|tx, scene| {
        let find = |tx: &ReadTx<'_>| channels::find(tx, "shop").expect("read").expect("there");
        let pattern = json!({ "channel": "shop", "engage": "pattern", "pattern": "^!clerk" });
        done(tx, &scene, ChangeKind::Wiring, pattern, &Prepared::Nothing);
        assert_eq!((find(tx).agent, find(tx).rules.hears.pattern()), (Some(scene.clerk.id), Some("^!clerk")));
        let mut to_other = scene.by_owner(ChangeKind::Wiring, json!({ "channel": "shop", "engage": "all" }));
        to_other.agent = Some(scene.other.id);
        let approved = scene.approved(tx, to_other);
        apply(tx, &approved, &Prepared::Nothing).expect("done");
        assert_eq!((find(tx).agent, find(tx).rules.hears.pattern()), (Some(scene.other.id), None));
    });
}

#[test]
fn access_and_roles_are_what_the_change_says() {
    on_record(|tx, scene| {
        let given = json!({ "access": "members", "grant": [{ "identity": "chat:mia", "role": "member" }] });
        done(tx, &scene, ChangeKind::Permissions, given, &Prepared::Nothing);
        assert_eq!(clerk(tx).access, Access::Members);
        let role = |tx: &ReadTx<'_>| roles::role_of(tx, scene.clerk.id, scene.member).expect("read");
        assert_eq!(role(tx), Some(AgentRole::Member));
        done(tx, &scene, ChangeKind::Permissions, json!({ "revoke": ["mail:mia"] }), &Prepared::Nothing);
        assert_eq!(role(tx), None);
        let mia = registry::find_person(tx, "Mia").expect("read").expect("there");
        assert!(!roles::role_for(tx, &mia, &clerk(tx)).expect("read").may_talk());
        assert_eq!((noted(tx, "agent.access").len(), noted(tx, "agent.roles").len()), (1, 2));
    });
}

#[test]
fn mounts_are_replaced_as_a_whole() {
    on_record(|tx, mut scene| {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("there");
        std::fs::create_dir(root.join("data")).expect("made");
        scene.host_policy.mounts = vec![root.clone()];
        let source = root.join("data").display().to_string();
        done(tx, &scene, ChangeKind::Mounts, json!([{ "source": source }]), &Prepared::Nothing);
        let expected = Mount { source: source.into(), target: "/data".to_owned(), read_only: true, mine: None };
        assert_eq!(mounts::list_for_agent(tx, scene.clerk.id).expect("read"), [expected]);
        done(tx, &scene, ChangeKind::Mounts, json!([]), &Prepared::Nothing);
        assert_eq!(mounts::list_for_agent(tx, scene.clerk.id).expect("read"), []);
        assert_eq!(noted(tx, "agent.mounts").len(), 2);
    });
}

#[test]
fn new_agent_has_only_the_named_grants_and_members() {
    on_record(|tx, scene| {
        let payload = json!({ "name": "helper", "persona": { "instructions": "help" }, "enabled_tools": ["read_file"],
            "members": ["chat:mia"], "wirings": [{ "channel": "desk", "engage": "all" }] });
        done(tx, &scene, ChangeKind::CreateAgent, payload, &Prepared::Nothing);
        done(tx, &scene, ChangeKind::CreateAgent, json!({ "name": "bare" }), &Prepared::Nothing);
        let find = |name: &str| registry::find_agent(tx, name).expect("read").expect("there");
        let (helper, bare) = (find("helper"), find("bare"));
        assert_eq!((helper.access, helper.persona.as_str()), (Access::Members, "help"));
        assert_eq!(helper.enabled_tools, ["read_file"]);
        assert_eq!(roles::role_of(tx, helper.id, scene.member).expect("read"), Some(AgentRole::Member));
        assert_eq!(channels::find(tx, "desk").expect("read").expect("there").agent, Some(helper.id));
        assert_eq!((bare.access, bare.persona.as_str(), bare.enabled_tools.len()), (Access::Members, "", 0));
        assert!(noted(tx, "agent.created").iter().any(|entry| entry["change"].is_string()));
    });
}

#[test]
fn tool_grants_end_with_the_tool_or_the_address_of_a_server() {
    on_record(|tx, scene| {
        let server = |url: &str, tools: &[&str]| {
            let tools: Vec<_> = tools.iter().map(|name| json!({ "name": name })).collect();
            json!({ "name": "files", "url": url, "tools": tools })
        };
        let held = |tx: &ReadTx<'_>| mcp::grants_of(tx, scene.clerk.id).expect("read");
        let register = ChangeKind::McpRegister;
        done(tx, &scene, register, server("https://one.example/", &["read", "write"]), &Prepared::Nothing);
        confirm(tx, &scene, &["read", "write"]);
        done(tx, &scene, ChangeKind::McpAccess, json!({ "server": "files" }), &Prepared::Nothing);
        assert_eq!(held(tx)[0].tools, ["read", "write"]);
        let fewer = scene.by_owner(register, server("https://one.example/", &["read", "erase"]));
        let approved = scene.approved(tx, fewer);
        assert_eq!(approved.facts()["grants"]["clerk"]["keeps"], json!(["read"]), "it is shown");
        let outcome = apply(tx, &approved, &Prepared::Nothing).expect("done").outcome;
        assert!(outcome.contains("one agent lost tools"), "{outcome}");
        assert_eq!(held(tx)[0].tools, ["read"]);
        done(tx, &scene, register, server("https://two.example/", &["read"]), &Prepared::Nothing);
        assert_eq!(held(tx), [], "people approved another address");
        confirm(tx, &scene, &["read"]);
        done(tx, &scene, ChangeKind::McpAccess, json!({ "server": "files" }), &Prepared::Nothing);
        done(tx, &scene, ChangeKind::McpAccess, json!({ "server": "files", "tools": [] }), &Prepared::Nothing);
        assert_eq!(held(tx), []);
        done(tx, &scene, ChangeKind::McpAccess, json!({ "server": "files" }), &Prepared::Nothing);
        done(tx, &scene, register, json!({ "name": "files", "remove": true }), &Prepared::Nothing);
        assert_eq!((held(tx).len(), mcp::servers(tx).expect("read").len()), (0, 0));
    });
}
