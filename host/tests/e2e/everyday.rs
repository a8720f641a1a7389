//! Tests of changes in one line: persona, tools, directories and packages of an agent, and the conversation that was used last.
//!
//! The commands run without a terminal against the real daemon, so `--yes` is the answer of the person. See `change_effects`.

use crate::e2e::packages_change::Software;
use crate::e2e::streaming;
use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::HostUser;
use crate::support::model_server::{Act, Server};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Returns the system text of the last request to the model.
fn system_text(server: &Server) -> String {
    let (role, text) = server.seen().last().expect("the model got a request").conversation().swap_remove(0);
    assert_eq!(role, "system");
    text
}

fn agent(host: &TestHost) -> Value {
    host.ctl(&["--json", "agent", "show", "a"]).ok().json()
}

/// Restarts the host with this policy.
fn set_policy(host: &TestHost, policy: &str) {
    host.restart_with("policy.toml", policy);
}

/// Returns the ids of the changes that wait.
fn waiting(host: &TestHost) -> Vec<String> {
    let list = host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
    let id = |change: &Value| change["id"].as_str().expect("an id").to_owned();
    list.as_array().expect("a list").iter().map(id).collect()
}

#[test]
fn persona_and_tools_are_set_in_one_line() {
    let server = Server::start(|_| Act::Say("Noted.".to_owned()));
    let host = streaming::new_host("", &server, "openai", &[]);
    let file = host.home.join("persona.txt");
    std::fs::write(&file, "Speak of tulips.\nBriefly.\n").expect("written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("permissions");
    let named = format!("@{}", file.display());
    let words = ["agent", "set", "a", "--persona", &named, "--add-tool", "run_command", "--remove-tool", "recall"];
    // Without a terminal the command assumes no answer.
    let before = agent(&host);
    let left = host.ctl(&words).refused("an owner or admin of this host, or an admin of this agent");
    let ids = waiting(&host);
    assert_eq!(ids.len(), 2, "each kind waits: {}", left.stderr);
    assert!(ids.iter().all(|id| left.stderr.contains(&format!("ironctl approve {id}"))), "{}", left.stderr);
    assert_eq!(agent(&host), before);
    // The same changes are approved, and no second ones are made.
    let done = host.ctl(&[&["--json"][..], &words, &["--yes"]].concat()).ok().json();
    let decided: Vec<&str> =
        done["changes"].as_array().expect("changes").iter().filter_map(|c| c["id"].as_str()).collect();
    assert_eq!(decided, ids);
    let after = agent(&host);
    assert_eq!(after["persona"], "Speak of tulips.\nBriefly.");
    let tools = after["enabled_tools"].to_string();
    assert!(tools.contains("run_command") && tools.contains("read_file") && !tools.contains("recall"), "{tools}");
    host.say("a", "hello");
    assert!(system_text(&server).ends_with("Speak of tulips.\nBriefly."), "{}", system_text(&server));
    let again = host.ctl(&[&words[..], &["--yes"]].concat()).ok();
    assert!(again.stdout.contains("already set"), "{}", again.stdout);
    host.ctl(&["agent", "set", "a", "--add-tool", "read_skill", "--yes"]).refused("an agent with a skill has it");
    host.ctl(&["agent", "set", "a", "--persona", "", "--yes"]).ok();
    assert_eq!(agent(&host)["persona"], "");
}

#[test]
fn one_line_change_waits_for_the_others_of_the_policy() {
    let server = Server::start(|_| Act::Say("Noted.".to_owned()));
    let host = streaming::new_host("", &server, "openai", &[]);
    host.ctl(&["person", "add", "carol", "--role", "admin"]).ok();
    set_policy(&host, "[kind.persona]\napprovals = 2\n[kind.enabled_tools]\nrequester_may_approve = false\n");
    let carol = Raw::of_person(&host, "carol");
    let decide = |id: &str| {
        let shown = host.ctl(&["--json", "inbox", "show", id]).ok().json()["shown_digest"].clone();
        carol.ask("POST", &format!("/v1/waiting/{id}/decision"), &json!({ "approve": shown }).to_string())
    };
    // The answer of the first person is one of the two approvals.
    host.ctl(&["agent", "set", "a", "--persona", "Be kind.", "--yes"])
        .refused("2 different people, each an owner or admin");
    let id = waiting(&host).remove(0);
    assert_eq!(agent(&host)["persona"], "");
    assert_eq!(decide(&id).1["approvals"]["by"].as_array().map(Vec::len), Some(2));
    crate::support::host_fixture::wait_for("the persona", || agent(&host)["persona"] == "Be kind.");
    // A requester who may not approve does not, with `--yes` either.
    host.ctl(&["agent", "set", "a", "--remove-tool", "recall", "--yes"]).refused("other than the requester");
    let id = waiting(&host).remove(0);
    let shown = host.ctl(&["--json", "inbox", "show", &id]).ok().json();
    assert_eq!(shown["approvals"]["by"], json!([]), "{shown}");
    assert_eq!(decide(&id).0, 200);
}

#[test]
fn granted_directory_is_named_to_the_model_until_revoked() {
    let beside = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(beside.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
    let root = beside.path().canonicalize().expect("an existing path");
    for name in ["papers", "drafts", "tmp"] {
        std::fs::create_dir(root.join(name)).expect("made");
    }
    std::os::unix::fs::symlink(root.join("drafts"), root.join("link")).expect("linked");
    let at = |name: &str| root.join(name).display().to_string();
    let server = Server::start(|_| Act::Say("Noted.".to_owned()));
    let settings = format!("[mounts]\nallow = [{:?}]\n", root.display().to_string());
    let host = streaming::new_host(&settings, &server, "openai", &[]);
    let granted = host.ctl(&["agent", "grant-dir", "a", &at("papers"), "--yes"]).ok();
    assert!(granted.stdout.contains(&format!("a sees {} at /papers, read only", at("papers"))), "{}", granted.stdout);
    // A link on the way to a directory is resolved before the page is shown, and the grant keeps the earlier one.
    let granted = host.ctl(&["agent", "grant-dir", "a", &at("link"), "--write", "--as", "shared", "--yes"]).ok();
    assert!(granted.stdout.contains(&format!("READ and WRITE \"{}\"", at("drafts"))), "{}", granted.stdout);
    host.say("a", "hello");
    let text = system_text(&server);
    assert!(text.contains("/papers (read only)") && text.contains("/shared (writable)"), "{text}");
    host.ctl(&["agent", "revoke-dir", "a", "/papers", "--yes"]).ok();
    host.say("a", "hello");
    let text = system_text(&server);
    assert!(!text.contains("/papers") && text.contains("/shared (writable)"), "{text}");

    let refused = host.ctl(&["agent", "grant-dir", "a", "/usr/share", "--yes"]).refused("cannot be mounted");
    assert!(refused.stderr.contains("add \"/usr/share\" to `allow` below `[mounts]`"), "{}", refused.stderr);
    host.ctl(&["agent", "grant-dir", "a", "/srv/no/such", "--yes"]).refused("there is no directory /srv/no/such");
    let refused = host.ctl(&["agent", "grant-dir", "a", &at("tmp"), "--yes"]).refused("reserved");
    assert!(refused.stderr.contains("--as /NAME"), "{}", refused.stderr);
    assert_eq!(waiting(&host), Vec::<String>::new(), "a refused request makes no change");
    assert_eq!(agent(&host)["mounts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn package_is_installed_beside_others_and_removed() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    store.publish_for_npm();
    let host = store.host();
    let done = host.ctl(&["agent", "install", "a", "good", "--yes"]).ok();
    assert!(done.stdout.contains("is applied"), "{}", done.stdout);
    store.runs("a", "good", "good is here\n[exit code 0]");
    host.ctl(&["agent", "install", "a", "hello-npm", "--npm", "--yes"]).ok();
    let packages = store.agent("a")["packages"].clone();
    assert_eq!((&packages["apt"], &packages["npm"]), (&json!(["good"]), &json!(["hello-npm"])));
    host.ctl(&["agent", "install", "a", "nowhere", "--yes"]).refused("could not be applied");
    assert_eq!(store.agent("a")["packages"], packages, "a failed change keeps the packages");
    host.ctl(&["agent", "uninstall", "a", "good", "--yes"]).ok();
    let packages = store.agent("a")["packages"].clone();
    assert_eq!((&packages["apt"], &packages["npm"]), (&Value::Null, &json!(["hello-npm"])));
}

#[test]
fn last_used_conversation_is_continued() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.ctl(&["chat", "a", "hello", "--continue"]).refused("you have no conversation with a yet");
    let chat = |more: &str| host.ctl(&["--json", "chat", "a", "hello", more]).ok().json();
    let unnamed = host.chat("a", "hello");
    let new = chat("--new");
    let name = new["thread"].as_str().expect("a name").to_owned();
    assert_ne!(new["session_id"], unnamed["session_id"]);
    let other = chat("--new");
    assert_ne!(other["thread"], new["thread"]);
    let named = host.ctl(&["--json", "chat", "a", "hello", "--thread", &name]).ok().json();
    assert_eq!(named["session_id"], new["session_id"]);
    let last = chat("--continue");
    assert_eq!((&last["session_id"], &last["thread"]), (&new["session_id"], &new["thread"]));
    host.chat("a", "hello");
    assert_eq!(chat("--continue")["session_id"], unnamed["session_id"]);
    // The conversations of another person are not listed.
    let bob = Raw::add_person(&host, "Bob", &[]);
    assert_eq!(bob.get("/v1/agents/a/threads"), (200, json!({ "threads": [], "more": false })));
    let (status, refused) = bob.get("/v1/agents/a/threads?as=owner");
    assert!(status >= 400 && refused["error"]["code"] == "identity_not_yours", "{status} {refused}");
}
