//! Tests of each kind of change from its proposal in a conversation to its effect, with `ironctl`, the real daemon and the sandbox.
//! They also kill the host at each step, and check the role that a decision needs.
//!
//! Changes of kind `packages` have their own file, because they need package managers. See `deciders`, `packages_change` and
//! `chaos::changes_random`.

mod deciders;

use crate::chaos::kill::{choose_cases, run_settings};
use crate::support::client::Raw;
use crate::support::host_fixture::{Answer, Build, TestHost, alive, wait_for};
use crate::support::mcp_server::HttpServer;
use fastrand::Rng;
use ironclaw_contract::seam::change::ChangeKind;
use serde_json::{Value, json};
use std::path::Path;

/// A host whose agent proposes each kind of change in a conversation.
pub(crate) struct ChangeFixture {
    pub(crate) host: TestHost,
    directory: tempfile::TempDir,
    /// The MCP server that the agent proposes.
    _calendar: Option<HttpServer>,
}

/// The proposals of these tests: the word of the message, the kind, and the payload as TOML.
const PROPOSALS: [(&str, &str, &str); 12] = [
    ("persona", "persona", r#"{ instructions = "Answer briefly." }"#),
    ("tools", "enabled_tools", r#"["list_dir"]"#),
    ("wiring", "wiring", r#"{ channel = "desk", engage = "pattern", pattern = "^!a" }"#),
    (
        "permissions",
        "permissions",
        r#"{ access = "members", grant = [{ identity = "loopback:bob", role = "member" }] }"#,
    ),
    ("mounts", "mounts", r#"[{ source = "SHARED/papers" }]"#),
    (
        "create",
        "create_agent",
        r#"{ name = "newcomer", persona = { instructions = "Find sources." }, enabled_tools = ["read_file"] }"#,
    ),
    (
        "register",
        "mcp_register",
        r#"{ name = "calendar", url = "CALENDAR", tools = [{ name = "echo", description = "Gives the text back" }, { name = "count" }], headers = [{ name = "Authorization", secret = "calendar", scheme = "Bearer" }] }"#,
    ),
    ("access", "mcp_access", r#"{ server = "calendar" }"#),
    ("egress", "egress", r#"{ host = "docs.example", methods = ["GET"], paths = ["/pages"] }"#),
    ("destination", "destinations", r#"{ name = "bob", channel = "desk", address = "bob" }"#),
    ("foreign", "persona", r#"{ instructions = "x", enabled_tools = ["run_command"] }"#),
    ("unknown", "exec", "{}"),
];

impl ChangeFixture {
    pub(crate) fn new(build: Build) -> Self {
        let host = TestHost::own(build);
        let directory = tempfile::Builder::new().prefix("shared").tempdir().expect("a directory");
        std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
        let shared = directory.path().canonicalize().expect("an existing directory");
        std::fs::create_dir(shared.join("papers")).expect("made");
        std::fs::write(shared.join("papers/plan.txt"), "the plan\n").expect("written");
        for (path, mode) in [("papers", 0o755), ("papers/plan.txt", 0o644)] {
            std::fs::set_permissions(shared.join(path), std::os::unix::fs::PermissionsExt::from_mode(mode))
                .expect("set");
        }
        let shared = shared.display().to_string();
        let calendar = HttpServer::start(&[]);
        let filled = |payload: &str| payload.replace("SHARED", &shared).replace("CALENDAR", &calendar.url);
        let proposals = PROPOSALS.map(|(word, kind, payload)| (word, kind, filled(payload)));
        let rules = rules(proposals.iter().map(|(word, kind, payload)| (*word, *kind, payload.as_str())));
        let script = host.home.join("script.toml");
        std::fs::write(&script, rules).expect("written");
        host.configure(&format!(
            "[model]\nscript = {:?}\n[mounts]\nallow = [{shared:?}]\n[session]\nidle_seconds = 600\n",
            script.display().to_string()
        ));
        host.up();
        host.agent("a");
        host.ctl_given("s3cret\n", &["secret", "set", "calendar"]).ok();
        host.add_linked_person("bob", "loopback:bob");
        host.ctl(&["channel", "add", "webhook", "desk", "--agent", "a", "--url", "http://127.0.0.1:9/in", "--yes"])
            .ok();
        host.ctl(&["person", "link", "bob", "desk:bob", "--yes"]).ok();
        Self { host, directory, _calendar: Some(calendar) }
    }

    /// Returns a fixture for another host, whose script has [`rules`].
    pub(crate) fn over(host: TestHost, directory: tempfile::TempDir) -> Self {
        Self { host, directory, _calendar: None }
    }

    /// Proposes a change in the conversation and returns its id.
    pub(crate) fn propose(&self, word: &str) -> String {
        let reply = self.host.say("a", &format!("want {word}"));
        let id = reply.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(|part| part.starts_with("chg_"));
        id.unwrap_or_else(|| panic!("{word}: {reply}")).to_owned()
    }

    /// Proposes a change of the agent as the owner, with this JSON.
    pub(crate) fn submit(&self, kind: &str, payload: impl std::fmt::Display) -> Answer {
        self.host.submit("a", kind, payload)
    }

    pub(crate) fn show(&self, id: &str) -> Value {
        self.host.ctl(&["--json", "inbox", "show", id]).ok().json()
    }

    pub(crate) fn waiting(&self) -> Vec<String> {
        let list = self.host.ctl(&["--json", "inbox", "list", "--type", "change"]).ok().json();
        let list = list.as_array().expect("a list").clone();
        list.iter().map(|change| change["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Confirms the tools of the server, without which no agent can propose to use it.
    fn confirm_calendar(&self) {
        self.host.ctl(&["mcp", "test", "calendar"]).refused("did not confirm the tools");
        let shown = self.host.ctl(&["--json", "mcp", "show", "calendar"]).ok().json();
        let digest = shown["digest"].as_str().expect("a digest");
        self.host.ctl(&["mcp", "confirm", "calendar", "--digest", digest, "--yes"]).ok();
    }

    /// Waits until the change has its final status.
    pub(crate) fn settled(&self, id: &str) -> Value {
        wait_for("the change to be settled", || self.show(id)["status"] != "approved");
        self.show(id)
    }

    /// Returns the notices in the conversation, in order.
    pub(crate) fn notices(&self) -> Vec<String> {
        notices(&self.host)
    }

    pub(crate) fn agent(&self) -> Value {
        self.host.ctl(&["--json", "agent", "show", "a"]).ok().json()
    }

    /// Returns all state that a change of any kind can alter.
    fn changeable_state(&self) -> Value {
        json!({
            "agent": { "persona": self.agent()["persona"], "tools": self.agent()["enabled_tools"], "access": self.agent()["access"],
                "roles": self.agent()["roles"], "mounts": self.agent()["mounts"], "wirings": self.agent()["wirings"], "mcp": self.agent()["mcp"],
                "packages": self.agent()["packages"] },
            "agents": self.host.ctl(&["--json", "agent", "list"]).ok().json().as_array().expect("a list").len(),
            "mcp": self.host.ctl(&["--json", "mcp", "list"]).ok().json(),
        })
    }
}

/// Returns the notices in all conversations, in order.
pub(crate) fn notices(host: &TestHost) -> Vec<String> {
    let list = host.ctl(&["--json", "session", "list"]).ok().json();
    let sessions = list.as_array().expect("a list").clone();
    let mut notices = Vec::new();
    for session in sessions {
        let text = host.ctl(&["session", "export", session["id"].as_str().expect("an id")]).ok().stdout;
        for line in text.lines() {
            let item: Value = serde_json::from_str(line).expect("a line of JSON");
            let spans = item["spans"].as_array().filter(|_| item["kind"] == "message");
            if spans.is_some_and(|spans| !spans.is_empty() && spans.iter().all(|span| span["author"] == "host")) {
                notices.push(item["text"].as_str().expect("words").to_owned());
            }
        }
    }
    notices
}

/// Returns the rules of a script by which an agent proposes a change for `want WORD`: the word, the kind, the payload as TOML.
pub(crate) fn rules<'a>(proposals: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let rule = |(word, kind, payload)| {
        format!(
            "[[rule]]\nwhen = '^want {word}$'\ncalls = [{{ tool = \"request_capability_change\", arguments = \
             {{ kind = \"{kind}\", payload = {payload}, reason = \"it was asked for\" }} }}]\nreply = \"{{result}}\"\n\
             reply_error = \"{{error}}\"\n"
        )
    };
    proposals.map(rule).collect()
}

/// Returns whether the effect of a kind is visible.
fn has_effect(fixture: &ChangeFixture, word: &str) -> bool {
    let agent = fixture.agent();
    match word {
        "persona" => agent["persona"] == "Answer briefly.",
        "tools" => {
            let refused = fixture.host.say("a", "read plan.txt").contains("not enabled");
            agent["enabled_tools"] == json!(["list_dir"]) && refused
        }
        "wiring" => agent["wirings"].to_string().contains("^!a"),
        "permissions" => agent["access"] == "members" && agent["roles"].to_string().contains("bob"),
        "mounts" => fixture.host.say("a", "read /papers/plan.txt").contains("the plan"),
        "create" => {
            let made = fixture.host.ctl(&["--json", "agent", "show", "newcomer"]);
            made.code == 0
                && made.json()["persona"] == "Find sources."
                && made.json()["enabled_tools"] == json!(["read_file"])
        }
        "register" => fixture.host.ctl(&["mcp", "list"]).ok().stdout.contains("calendar"),
        "access" => agent["mcp"].to_string().contains("calendar"),
        "egress" => fixture.host.ctl(&["egress", "list", "a"]).ok().stdout.contains("docs.example"),
        "destination" => fixture.host.ctl(&["destination", "list", "a"]).ok().stdout.contains("active"),
        other => panic!("{other}"),
    }
}

#[test]
fn test_proposals_cover_each_kind_that_agents_may_propose() {
    for kind in ChangeKind::for_agents() {
        // `packages_change` proposes packages, because they need a registry.
        let is_proposed =
            kind == ChangeKind::Packages || PROPOSALS.iter().any(|(_, proposed, _)| *proposed == kind.name());
        assert!(is_proposed, "no proposal of kind {kind}");
    }
}

#[test]
fn each_kind_is_held_shown_approved_applied_and_reported() {
    let fixture = ChangeFixture::new(Build::Plain);
    let before = fixture.notices().len();
    let mut earlier = before;
    // The tools are last, because the checks of other kinds use the tool that this change removes.
    for word in
        ["persona", "wiring", "mounts", "create", "register", "access", "egress", "destination", "permissions", "tools"]
    {
        assert!(!has_effect(&fixture, word), "{word}: before");
        let id = fixture.propose(word);
        assert_eq!(fixture.waiting(), [id.as_str()], "{word}");
        let held = fixture.show(&id);
        assert_eq!((&held["status"], &held["requested_by"]["kind"]), (&json!("pending"), &json!("agent")), "{held}");
        assert_eq!(held["details"]["change"]["reason"], "it was asked for", "{held}");
        assert!(held["origin"]["session"].is_string() && held["origin"]["message"].is_string(), "{held}");
        assert!(!has_effect(&fixture, word), "{word}: held");
        let approved = fixture.host.ctl(&["approve", &id]).ok();
        assert!(approved.stdout.contains(&id), "the output names the approved change: {}", approved.stdout);
        let done = fixture.settled(&id);
        assert_eq!(done["status"], "done", "{word}: {done}");
        assert!(done["ended_at"].is_string() && done["decided_by"]["id"].is_string(), "{done}");
        assert!(fixture.waiting().is_empty(), "{word}");
        wait_for(&format!("the effect of {word}"), || has_effect(&fixture, word));
        let now = fixture.notices();
        let reports = now.iter().filter(|text| text.contains(&id) && text.contains("is applied")).count();
        assert_eq!(reports, 1, "{word}: {now:?}");
        assert!(now.len() > earlier, "{word}");
        earlier = now.len();
        if word == "register" {
            fixture.confirm_calendar();
        }
    }
    fixture.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn rejected_change_of_each_kind_has_no_effect_and_is_reported() {
    let fixture = ChangeFixture::new(Build::Plain);
    let reject = |word: &str| {
        let before = fixture.changeable_state();
        let id = fixture.propose(word);
        fixture.host.ctl(&["reject", &id, "--reason", &format!("not {word} today")]).ok();
        let done = fixture.settled(&id);
        assert_eq!((&done["status"], &done["applied_at"]), (&json!("rejected"), &Value::Null), "{word}: {done}");
        assert_eq!(fixture.changeable_state(), before, "{word}");
        let notices = fixture.notices();
        let is_reported = notices.iter().any(|text| text.contains(&id) && text.contains(&format!("not {word} today")));
        assert!(is_reported, "{word}: {notices:?}");
        fixture.host.ctl(&["approve", &id]).refused("rejected already");
        assert_eq!(fixture.changeable_state(), before, "{word}");
    };
    reject("register");
    assert_eq!(fixture.changeable_state()["mcp"], json!([]));
    // Access to a server that does not exist cannot be proposed.
    let id = fixture.propose("register");
    fixture.host.ctl(&["approve", &id]).ok();
    fixture.settled(&id);
    fixture.confirm_calendar();
    for word in ["persona", "wiring", "mounts", "create", "access", "permissions", "tools"] {
        reject(word);
    }
}

#[test]
fn foreign_field_and_unknown_kind_are_refused_and_recorded() {
    let fixture = ChangeFixture::new(Build::Plain);
    let reply = fixture.host.say("a", "want foreign");
    assert!(reply.contains("enabled_tools"), "{reply}");
    let reply = fixture.host.say("a", "want unknown");
    assert!(reply.contains("exec"), "{reply}");
    assert!(fixture.waiting().is_empty());
    let refused = fixture.host.entries("call.refused");
    assert_eq!(refused.len(), 2, "{refused:?}");
    // A person cannot propose it either.
    fixture.submit("persona", r#"{"instructions":"x","enabled_tools":["run_command"]}"#).refused("enabled_tools");
    for (kind, payload, word) in [
        ("persona", r#"{"instructions":"x","instructions":"y"}"#, "duplicate key"),
        ("exec", "{}", "exec"),
        ("persona", r#""text""#, "object or list"),
    ] {
        let answer = fixture.submit(kind, payload);
        assert!([1, 2].contains(&answer.code) && answer.stderr.contains(word), "{}: {}", answer.code, answer.stderr);
    }
    assert!(fixture.waiting().is_empty());
}

/// Kills the host at every step of a change, and checks that the change is completed exactly once. The fast tier kills at one of the
/// steps after an approval (`IRONCLAW_SEED` selects it); `IRONCLAW_LONG=1` kills at all of them.
#[test]
fn host_killed_between_any_two_steps_applies_a_change_once() {
    let points = ["approved", "change_prepared", "change_applied"];
    let is_long = std::env::var_os("IRONCLAW_LONG").is_some();
    let (seed, count) = run_settings("IRONCLAW_POINTS", if is_long { points.len() as u64 } else { 1 });
    for point in choose_cases(&points, count, &mut Rng::with_seed(seed)) {
        let mut fixture = ChangeFixture::new(Build::Failpoints);
        let id = fixture.propose("persona");
        // A kill after the proposal leaves the change pending.
        fixture.host.kill_host();
        fixture.host.up_failing_at(point);
        assert_eq!(fixture.waiting(), [id.as_str()], "{point}");
        assert_eq!(fixture.agent()["persona"], "", "{point}: no person has decided");
        let host_pid = fixture.host.pid().expect("the host runs");
        // The answer may or may not arrive before the host dies.
        drop(fixture.host.ctl(&["approve", &id]));
        wait_for(&format!("the host to die at {point}"), || !alive(host_pid));
        fixture.host.up();
        let done = fixture.settled(&id);
        assert_eq!(done["status"], "done", "{point}: {done}");
        assert_eq!(fixture.agent()["persona"], "Answer briefly.", "{point}");
        let of =
            |what: &str| fixture.host.entries(what).iter().filter(|entry| entry["data"]["change"] == json!(id)).count();
        assert_eq!((of("change.approved"), of("change.applied")), (1, 1), "{point}");
        assert_eq!(fixture.notices().iter().filter(|text| text.contains("is applied")).count(), 1, "{point}");
        fixture.host.kill_host();
        fixture.host.up();
        assert_eq!(fixture.show(&id)["status"], "done", "{point}");
        fixture.host.ctl(&["approve", &id]).refused("already");
    }
    // A kill after a rejection, before its notice. `packages_change` tests failed changes.
    let point = "rejected";
    let mut fixture = ChangeFixture::new(Build::Failpoints);
    let id = fixture.propose("persona");
    fixture.host.down();
    fixture.host.up_failing_at(point);
    let host_pid = fixture.host.pid().expect("the host runs");
    drop(fixture.host.ctl(&["reject", &id]));
    wait_for(&format!("the host to die at {point}"), || !alive(host_pid));
    fixture.host.up();
    assert_eq!(fixture.settled(&id)["status"], "rejected", "{point}");
    assert_eq!(fixture.agent()["persona"], "", "{point}");
    assert!(fixture.notices().iter().any(|text| text.contains(&id)), "{point}");
}

#[test]
fn invalid_policy_prevents_the_start_and_is_explained() {
    let fixture = ChangeFixture::new(Build::Plain);
    fixture.host.down();
    let policy = fixture.host.home.join("policy.toml");
    std::fs::write(&policy, "[default]\napprovals = 0\n").expect("written");
    let refused = fixture.host.ctl(&["up", "--detach"]);
    assert!(refused.code != 0 && refused.stderr.contains("a person always decides"), "{}", refused.stderr);
    fixture.host.ctl(&["config", "check"]).refused("a person always decides");
    std::fs::write(&policy, "[default]\napprovals = 2\nrequester_may_approve = false\n").expect("written");
    fixture.host.up();
    let id = fixture.propose("persona");
    fixture.host.ctl(&["approve", &id]).refused("another person has to approve it");
    // A command with an immediate effect would bypass the policy.
    fixture.host.ctl(&["agent", "add", "another"]).refused("policy");
}

#[test]
fn mount_replaced_by_a_link_or_outside_is_refused() {
    let fixture = ChangeFixture::new(Build::Plain);
    let shared: &Path = fixture.directory.path();
    std::os::unix::fs::symlink("/", shared.join("link")).expect("linked");
    let home = fixture.host.home.display().to_string();
    let below = |name: &str| format!("{}/{name}", shared.display());
    for (source, why) in [
        ("/", "it is the root directory"),
        ("/etc", "it belongs to the system"),
        (&home, "below no directory that may be mounted"),
        (&below("../"), "its path has . or .. or an empty part"),
        (&below("link"), "its path has a symbolic link"),
        (&below("link/etc"), "its path has a symbolic link"),
        (&below("none"), "it does not exist"),
    ] {
        fixture.submit("mounts", json!([{ "source": source }])).refused(why);
    }
    assert!(fixture.waiting().is_empty());
    let id = fixture.propose("mounts");
    fixture.host.ctl(&["approve", &id]).ok();
    assert_eq!(fixture.settled(&id)["status"], "done");
    wait_for("the mount", || fixture.host.say("a", "read /papers/plan.txt").contains("the plan"));
    assert!(!fixture.host.say("a", "write /papers/new.txt: x").contains("Wrote"), "it is read-only");
    assert!(!shared.join("papers/new.txt").exists());
    fixture.host.down();
    std::fs::rename(shared.join("papers"), shared.join("moved")).expect("moved");
    std::os::unix::fs::symlink("/etc", shared.join("papers")).expect("linked");
    fixture.host.up();
    let said = fixture.host.ctl(&["chat", "a", "read /papers/passwd"]).refused("/papers, which is a symbolic link");
    assert!(!said.stdout.contains("root:"), "{}", said.stdout);
}

#[test]
fn skill_is_not_installed_by_name_or_through_permissions() {
    let fixture = ChangeFixture::new(Build::Plain);
    let before = fixture.changeable_state();
    for version in ["1.0.0", "../../../etc"] {
        let reply = fixture.host.say("a", &format!("install skill weather {version}"));
        assert!(reply.contains("call_tool_not_enabled"), "{reply}");
    }
    let refused = fixture.host.entries("call.refused");
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(fixture.changeable_state(), before);
    // With the tool too, a name without a source and a signature installs nothing.
    fixture.host.ctl(&["agent", "set", "a", "--add-tool", "skill_install", "--yes"]).ok();
    let before = fixture.changeable_state();
    for (version, code) in [("1.0.0", "skill_source_none"), ("../../../etc", "skill_version")] {
        let reply = fixture.host.say("a", &format!("install skill weather {version}"));
        assert!(reply.contains(code), "{reply}");
    }
    for payload in [r#"{"skill":"weather","version":"1.0.0"}"#, r#"{"access":"everyone","skill":"weather"}"#] {
        fixture.submit("permissions", payload).refused("skill");
    }
    assert!(fixture.waiting().is_empty());
    assert_eq!(fixture.changeable_state(), before);
}

#[test]
fn role_needs_the_whole_identity_and_not_a_prefix() {
    let fixture = ChangeFixture::new(Build::Plain);
    fixture.host.ctl(&["person", "add", "mallory"]).ok();
    fixture.host.ctl(&["person", "link", "bob", "matrix:@alice:corp.example", "--yes"]).ok();
    fixture.host.ctl(&["person", "link", "mallory", "matrix:@alice:evil.example", "--yes"]).ok();
    let grant =
        |identity: &str| fixture.submit("permissions", json!({ "grant": [{ "identity": identity, "role": "admin" }] }));
    for (cut, why) in [
        ("matrix:@alice", "is linked to no person"),
        ("matrix:@alice:", "is linked to no person"),
        ("@alice:corp.example", "is not a valid identity"),
        ("matrix:@ALICE:corp.example", "is linked to no person"),
    ] {
        grant(cut).refused(why);
    }
    let id = grant("matrix:@alice:corp.example").ok().json()["id"].as_str().expect("an id").to_owned();
    let shown = fixture.show(&id)["shown"].as_str().expect("a text").to_owned();
    assert!(shown.contains("bob") && !shown.contains("mallory"), "{shown}");
    // The directory was granted to another agent meanwhile, so the shown page is outdated.
    fixture.host.ctl(&["person", "unlink", "bob", "matrix:@alice:corp.example"]).ok();
    fixture.host.ctl(&["person", "link", "mallory", "matrix:@alice:corp.example", "--yes"]).ok();
    fixture.host.ctl(&["approve", &id]).refused("differs from the time of the request");
    assert_eq!(fixture.show(&id)["status"], "withdrawn");
    let roles = fixture.agent()["roles"].to_string();
    assert!(!roles.contains("mallory") && !roles.contains("bob"), "{roles}");
}

#[test]
fn reason_of_a_rejection_is_not_taken_for_user_text() {
    let fixture = ChangeFixture::new(Build::Plain);
    let id = fixture.propose("persona");
    // The script answers text of the user. It would propose this change if it took the reason for such text.
    fixture.host.ctl(&["reject", &id, "--reason", "want create"]).ok();
    wait_for("the notice in the conversation", || fixture.notices().iter().any(|text| text.contains("want create")));
    fixture.host.say("a", "hello");
    fixture.host.say("a", "echo again");
    assert!(fixture.waiting().is_empty(), "no change was proposed");
}

#[test]
fn immediate_command_does_not_bypass_the_policy() {
    let fixture = ChangeFixture::new(Build::Plain);
    fixture.host.down();
    let policy = "[kind.create_agent]\napprovals = 2\n[kind.wiring]\nroles = [\"owner\"]\n";
    std::fs::write(fixture.host.home.join("policy.toml"), policy).expect("written");
    fixture.host.up();
    fixture.host.ctl(&["agent", "add", "another"]).refused("policy");
    let carol = Raw::add_person(&fixture.host, "carol", &["--role", "admin"]);
    let (status, said) = carol.ask("POST", "/v1/channels/desk/agents", r#"{"agent":"a"}"#);
    assert!(status == 403 && said["error"]["code"] == "policy_asks_for_more", "{status} {said}");
    fixture.host.ctl(&["agent", "connect", "a", "desk", "--yes"]).ok();
    // To remove the channel of an agent needs as many approvals as to disconnect it.
    let (status, said) = carol.ask("DELETE", "/v1/channels/desk", "");
    assert!(status == 403 && said["error"]["code"] == "policy_asks_for_more", "{status} {said}");
    fixture.host.ctl(&["agent", "disconnect", "a", "desk"]).ok();
    let (status, said) = carol.ask("DELETE", "/v1/channels/desk", "");
    assert_eq!(status, 200, "an unused channel can be removed: {said}");
    // Two people approve a wiring and a new agent through the gateway.
    let payload = r#"{"name":"another"}"#;
    let made = fixture
        .host
        .ctl(&["--json", "change", "submit", "--kind", "create_agent", "--payload", payload, "--reason", "r"])
        .ok();
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    fixture.host.ctl(&["approve", &id]).ok();
    assert_eq!(fixture.show(&id)["status"], "pending", "one of two approvals");
    let shown = json!({ "approve": fixture.show(&id)["shown_digest"] }).to_string();
    let (status, said) = carol.ask("POST", &format!("/v1/waiting/{id}/decision"), &shown);
    assert_eq!(status, 200, "{said}");
    assert_eq!(fixture.settled(&id)["status"], "done");
}
