//! Tests of packages, from their proposal in a conversation to a command that uses them, with `ironctl`, the real daemon and the sandbox.
//!
//! All packages come from a source of apt and a registry of npm on loopback. See `packages`.

use crate::e2e::changes::{ChangeFixture, rules};
use crate::e2e::packages::{Registry, archive, make_writable, names, program};
use crate::support::host_fixture::{Build, TestHost, alive, kill, wait_for};
use crate::support::jail_fixture::{HostUser, host_users};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

/// The proposals of the agent for `want WORD`: the word, and the payload as TOML.
const PROPOSALS: [(&str, &str); 10] = [
    ("both", r#"{ apt = ["good"], npm = ["hello-npm"] }"#),
    ("good", r#"["good"]"#),
    ("better", r#"["good", "better"]"#),
    ("nothing", "[]"),
    ("unknown", r#"["good", "nowhere"]"#),
    ("unknown npm", r#"{ npm = ["nowhere-npm"] }"#),
    ("source", r#"{ pypi = ["needs_build"] }"#),
    ("suid", r#"["evil-suid", "good"]"#),
    ("option", r#"["-o=Dir::Bin::dpkg"]"#),
    ("path", r#"{ npm = ["../../etc"] }"#),
];

/// A host with an agent that may run commands, and the sources of its software.
pub(crate) struct Software {
    changes: ChangeFixture,
    /// The directory of the archives. A package script that runs would leave a file in its `traces`.
    archives: PathBuf,
    registry: Registry,
}

impl Software {
    pub(crate) fn new(user: HostUser, build: Build) -> Self {
        Self::with(user, build, "", "")
    }

    /// Starts a host with more settings of `[packages]`, and with a fail point until its next start.
    fn with(user: HostUser, build: Build, settings: &str, point: &str) -> Self {
        let mut host = TestHost::with(user, build, None);
        let directory = tempfile::tempdir().expect("a directory");
        let archives = directory.path().to_owned();
        std::fs::create_dir(archives.join("traces")).expect("a directory");
        for (path, mode) in [(archives.clone(), 0o755), (archives.join("traces"), 0o777)] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
        }
        let registry = Registry::new();
        let says = |name: &'static str| {
            archive(&archives, name, move |tree| {
                std::fs::write(tree.join(format!("usr/bin/{name}")), format!("#!/bin/sh\necho {name} is here\n"))
                    .expect("written");
                // No layer accepts this file.
                std::fs::create_dir_all(tree.join("etc")).expect("a directory");
                std::fs::write(tree.join("etc").join(name), "x").expect("written");
            })
        };
        let evil = archive(&archives, "evil-suid", |tree| program(&tree.join("usr/bin/su"), 0o4755));
        registry.offer(&[says("good"), says("better"), evil]);
        let (sources, port) = (archives.join("own.list"), registry.port);
        std::fs::write(&sources, format!("deb [trusted=yes] http://127.0.0.1:{port}/apt ./\n")).expect("written");
        let script = host.home.join("script.toml");
        let proposals = PROPOSALS.iter().map(|(word, payload)| (*word, "packages", *payload));
        std::fs::write(&script, rules(proposals)).expect("written");
        host.configure(&format!(
            "[model]\nscript = {:?}\n[session]\nidle_seconds = 600\nlaunch_attempts_max = 2\nbackoff_ms = 10\n[packages]\n\
             apt_sources = {:?}\nnpm_registry = \"http://127.0.0.1:{port}/npm/\"\npypi_index = \"http://127.0.0.1:{port}/simple/\"\nports = [{port}]\n{settings}",
            script.display().to_string(),
            sources.display().to_string(),
        ));
        if !point.is_empty() {
            host.set_env("IRONCLAW_FAILPOINT", Some(point));
        }
        host.up();
        host.set_env("IRONCLAW_FAILPOINT", None);
        host.agent("a");
        let store = Self { changes: ChangeFixture::over(host, directory), archives, registry };
        store.host().change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
        store
    }

    pub(crate) fn host(&self) -> &TestHost {
        &self.changes.host
    }

    /// Publishes the package `hello-npm`.
    pub(crate) fn publish_for_npm(&self) {
        self.registry.publish("hello-npm", &self.archives.join("traces/npm"));
    }

    /// Proposes packages for the agent, approves them, and returns the change afterwards.
    fn request(&self, packages: &Value) -> Value {
        let change = self.changes.submit("packages", packages.clone()).ok().json();
        self.approve(change["id"].as_str().expect("an id"))
    }

    /// Approves a change and returns it afterwards, applied or failed.
    fn approve(&self, id: &str) -> Value {
        let answer = self.host().ctl(&["approve", id]);
        assert!(answer.stdout.contains(id), "the output names the approved change: {}{}", answer.stdout, answer.stderr);
        self.changes.settled(id)
    }

    pub(crate) fn agent(&self, name: &str) -> Value {
        self.host().ctl(&["--json", "agent", "show", name]).ok().json()
    }
    fn agent_directory(&self, name: &str) -> PathBuf {
        self.host().home.join("agents").join(self.agent(name)["id"].as_str().expect("an id"))
    }

    /// Returns the layers of an agent, and checks that no fetched files are left.
    #[track_caller]
    fn layers(&self, name: &str) -> Vec<String> {
        assert_eq!(names(&self.agent_directory(name).join("fetching")), Vec::<String>::new(), "fetched files are left");
        names(&self.agent_directory(name).join("layers"))
    }

    /// Waits until a command of the agent has this output. A session restarts shortly after a change of its agent.
    pub(crate) fn runs(&self, agent: &str, command: &str, words: &str) {
        let mut said = String::new();
        wait_for(&format!("{command:?} to print {words:?}"), || {
            said = self.host().say(agent, &format!("run {command}"));
            said.contains(words)
        });
    }

    /// Returns the number of notices about a change with these words.
    fn notices(&self, id: &str, words: &str) -> usize {
        self.changes.notices().iter().filter(|text| text.contains(id) && text.contains(words)).count()
    }
}

impl Drop for Software {
    fn drop(&mut self) {
        self.changes.host.kill_host();
        make_writable(&self.changes.host.home.join("agents"));
    }
}

#[test]
fn rejected_or_invalid_software_is_not_fetched() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    store.publish_for_npm();
    for (word, why) in [("option", "-o=Dir::Bin::dpkg"), ("path", "../../etc"), ("nothing", "no change")] {
        let reply = store.host().say("a", &format!("want {word}"));
        assert!(reply.contains(why), "{word}: {reply}");
        assert_eq!(store.changes.waiting(), Vec::<String>::new(), "{word}");
    }
    let id = store.changes.propose("both");
    store.host().ctl(&["reject", &id, "--reason", "not on this machine"]).ok();
    assert_eq!(store.changes.settled(&id)["status"], "rejected");
    wait_for("the notice in the conversation", || store.notices(&id, "not on this machine") == 1);
    store.host().ctl(&["approve", &id]).refused("rejected already");
    store.runs("a", "good; echo tried", "tried\n");
    assert!(store.host().say("a", "run good").contains("not found"));
    assert_eq!(store.agent("a")["packages"], Value::Null);
    assert_eq!(store.registry.connections(), 0, "nothing is fetched before an approval");
    assert_eq!(names(&store.host().home.join("agents")), Vec::<String>::new());
}

#[test]
fn missing_package_client_is_refused_and_named() {
    let store = Software::with(HostUser::Ordinary, Build::Plain, "apt = \"/usr/none/apt-get\"\n", "");
    store.publish_for_npm();
    let reply = store.host().say("a", "want good");
    assert!(reply.contains("this machine has no /usr/none/apt-get"), "{reply}");
    store.changes.submit("packages", json!(["good"])).refused("packages.apt in config.toml");
    assert_eq!(store.changes.waiting(), Vec::<String>::new());
    let refused = store.host().entries("change.refused");
    assert_eq!(refused.len(), 2, "{refused:?}");
    for entry in refused {
        assert_eq!(
            (&entry["data"]["code"], &entry["data"]["kind"]),
            (&json!("packages_client_missing"), &json!("packages"))
        );
    }
    // The client of npm is present.
    assert_eq!(store.request(&json!({ "npm": ["hello-npm"] }))["status"], "done");
    store.runs("a", "hello-npm", "hello\n[exit code 0]");
}

#[test]
fn failed_fetch_keeps_the_old_layer_and_is_explained() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    store.publish_for_npm();
    store.registry.publish_source("needs_build");
    store.host().change("a", "packages", &json!(["good"]));
    store.runs("a", "good", "good is here\n[exit code 0]");
    let (had, layers) = (store.agent("a")["packages"].clone(), store.layers("a"));
    assert_eq!(layers, [had["layer"].as_str().expect("a digest")]);
    let set_closed = |is_closed| store.registry.set_closed(is_closed);
    for (word, why, is_closed) in [
        ("unknown", "nowhere", false),
        ("unknown npm", "nowhere-npm", false),
        ("source", "package_needs_build: ", false),
        ("suid", "evil-suid=1.0-1 brings \"./usr/bin/su\", which is set-uid", false),
        ("better", "cannot read the index of apt", true),
    ] {
        let id = store.changes.propose(word);
        set_closed(is_closed);
        let done = store.approve(&id);
        set_closed(false);
        assert_eq!(done["status"], "failed", "{word}: {done}");
        assert!(done["outcome"].as_str().is_some_and(|said| said.contains(why)), "{word}: {done}");
        assert_eq!(done["applied_at"], Value::Null, "{word}: {done}");
        assert_eq!(store.agent("a")["packages"], had, "{word}");
        assert_eq!(store.layers("a"), layers, "{word}");
        wait_for("the notice in the conversation", || store.notices(&id, "could not be applied") == 1);
        assert_eq!(store.notices(&id, "nothing was changed"), 1, "{word}");
        // The notice quotes no package and does not reveal the path of the home.
        let home = store.host().home.display().to_string();
        for words in [why, &home] {
            assert_eq!(store.notices(&id, words), 0, "{word}: {:?}", store.changes.notices());
        }
        store.host().ctl(&["approve", &id]).refused("already");
    }
    assert!(store.host().say("a", "run good").contains("good is here\n[exit code 0]"));
    assert_eq!(names(&store.archives.join("traces")), Vec::<String>::new());
    // The failed fetch does not block the next change.
    let id = store.changes.propose("better");
    assert_eq!(store.approve(&id)["status"], "done");
    store.runs("a", "good; better", "good is here\nbetter is here\n[exit code 0]");
    store.host().ctl(&["audit", "verify"]).ok();
}

#[test]
fn approved_software_is_in_the_jail_without_running_scripts() {
    for user in host_users() {
        let store = Software::new(user, Build::Plain);
        store.publish_for_npm();
        store.runs("a", "good || hello-npm", "not found");
        let id = store.changes.propose("both");
        assert_eq!(store.changes.waiting(), [id.as_str()], "{user:?}");
        let held = store.changes.show(&id);
        assert_eq!((&held["status"], &held["requested_by"]["kind"]), (&json!("pending"), &json!("agent")), "{held}");
        let shown = held["shown"].as_str().expect("a text");
        let own = store.archives.join("own.list").display().to_string();
        let registry = format!("http://127.0.0.1:{}/npm/", store.registry.port);
        for words in ["good", "hello-npm", "apt", "npm", "/usr/bin/apt-get", "/usr/bin/npm", &own, &registry] {
            assert!(shown.contains(words), "{user:?} {words}: {shown}");
        }
        assert_eq!(store.registry.connections(), 0, "{user:?}: nothing is fetched before an approval");
        let done = store.approve(&id);
        assert_eq!(done["status"], "done", "{user:?} {done}");
        store.runs("a", "good; hello-npm", "good is here\nhello\n[exit code 0]");
        let said = store
            .host()
            .say("a", "run command -v good; command -v hello-npm; touch /usr/bin/good; echo x >> /usr/bin/good");
        assert!(
            said.contains("/usr/bin/good\n/usr/bin/hello-npm\n") && said.contains("Read-only file system"),
            "{said}"
        );
        let has = store.agent("a")["packages"].clone();
        assert_eq!((&has["apt"], &has["npm"]), (&json!(["good"]), &json!(["hello-npm"])), "{user:?} {has}");
        let layer = has["layer"].as_str().expect("a digest").to_owned();
        assert_eq!(store.layers("a"), [layer.as_str()], "{user:?}");
        wait_for("the notice in the conversation", || store.notices(&id, "is applied") == 1);
        let notices = store.changes.notices();
        assert_eq!(store.notices(&id, "fetched: good=1.0-1, hello-npm=1.2.3"), 1, "{user:?} {notices:?}");
        assert_eq!(store.notices(&id, "not below /usr: 2 of etc"), 1, "{user:?} {notices:?}");
        let set = store.host().entries("agent.packages");
        assert_eq!(set.len(), 1, "{user:?} {set:?}");
        assert_eq!(set[0]["data"]["layer"], layer.as_str(), "{user:?} {set:?}");
        assert_eq!(names(&store.archives.join("traces")), Vec::<String>::new(), "{user:?}");
        store.host().ctl(&["doctor", "--prove"]).ok();
        store.host().ctl(&["audit", "verify"]).ok();
    }
}

#[test]
fn fetch_interrupted_by_a_kill_is_completed_once() {
    for point in ["packages.fetched", "packages.placed", "change_prepared"] {
        // The change of `enabled_tools` in the fixture reaches the last fail point too.
        let mut store = Software::new(HostUser::Ordinary, Build::Failpoints);
        let id = store.changes.propose("good");
        store.changes.host.down();
        store.changes.host.up_failing_at(point);
        let host_pid = store.host().pid().expect("the host runs");
        let place = store.agent_directory("a");
        // The answer may or may not arrive before the host dies.
        drop(store.host().ctl(&["approve", &id]));
        wait_for(&format!("the host to die at {point}"), || !alive(host_pid));
        let left = (names(&place.join("fetching")).len(), names(&place.join("layers")).len());
        let expected = match point {
            "packages.fetched" => (1, 0),
            "packages.placed" => (1, 1),
            _ => (0, 1),
        };
        assert_eq!(left, expected, "{point}: the files of an interrupted fetch");
        store.changes.host.up();
        let done = store.changes.settled(&id);
        assert_eq!(done["status"], "done", "{point}: {done}");
        let layer = store.agent("a")["packages"]["layer"].as_str().expect("a digest").to_owned();
        assert_eq!(store.layers("a"), [layer.as_str()], "{point}");
        store.runs("a", "good", "good is here\n[exit code 0]");
        let of =
            |what: &str| store.host().entries(what).iter().filter(|entry| entry["data"]["change"] == json!(id)).count();
        assert_eq!((of("change.approved"), of("change.applied")), (1, 1), "{point}");
        assert_eq!(store.notices(&id, "is applied"), 1, "{point}");
        store.changes.host.kill_host();
        store.changes.host.up();
        assert_eq!(store.changes.show(&id)["status"], "done", "{point}");
        assert_eq!(store.layers("a"), [layer.as_str()], "{point}");
        store.runs("a", "good", "good is here\n[exit code 0]");
    }
}

#[test]
fn failed_fetch_is_reported_once_after_a_kill() {
    let mut store = Software::new(HostUser::Ordinary, Build::Failpoints);
    let id = store.changes.propose("suid");
    store.changes.host.down();
    store.changes.host.up_failing_at("change_failed");
    let host_pid = store.host().pid().expect("the host runs");
    drop(store.host().ctl(&["approve", &id]));
    wait_for("the host to die at change_failed", || !alive(host_pid));
    let asked = store.registry.connections();
    assert!(asked > 0, "the packages were fetched");
    // The second start does not fetch or report again either.
    for start in 0..2 {
        store.changes.host.kill_host();
        store.changes.host.up();
        let done = store.changes.settled(&id);
        assert_eq!((&done["status"], &done["applied_at"]), (&json!("failed"), &Value::Null), "{start}: {done}");
        assert!(done["outcome"].as_str().is_some_and(|said| said.contains("which is set-uid")), "{start}: {done}");
        wait_for("the notice in the conversation", || store.notices(&id, "could not be applied") > 0);
        store.runs("a", "good; echo tried", "tried\n");
        assert_eq!(store.notices(&id, "could not be applied"), 1, "{start}");
        assert_eq!(store.layers("a"), Vec::<String>::new(), "{start}");
        assert_eq!(store.agent("a")["packages"], Value::Null, "{start}");
        let of =
            |what: &str| store.host().entries(what).iter().filter(|entry| entry["data"]["change"] == json!(id)).count();
        assert_eq!((of("change.approved"), of("change.failed"), of("change.applied")), (1, 1, 0), "{start}");
    }
    assert_eq!(store.registry.connections(), asked, "nothing is fetched again");
    store.host().ctl(&["approve", &id]).refused("already");
}

#[test]
fn package_that_replaces_a_program_is_refused_by_name() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    let trace = store.archives.join("traces/npm");
    store.registry.publish_with("evil-npm", &trace, &json!({ "sh": "cli.js" }), &json!({}));
    let done = store.request(&json!({ "npm": ["evil-npm"] }));
    assert_eq!(done["status"], "failed", "{done}");
    assert!(done["outcome"].as_str().is_some_and(|said| said.contains("/usr/bin/sh ")), "{done}");
    assert_eq!((store.agent("a")["packages"].clone(), store.layers("a")), (Value::Null, Vec::new()));
    store.runs("a", "echo it is the shell", "it is the shell\n[exit code 0]");
}

#[test]
fn blocked_dependency_fails_without_the_path_of_the_home() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    let blocked = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/x.tgz", blocked.local_addr().expect("an address"));
    let trace = store.archives.join("traces/npm");
    store.registry.publish_with("needy-npm", &trace, &json!({}), &json!({ "other": address }));
    let done = store.request(&json!({ "npm": ["needy-npm"] }));
    assert_eq!(done["status"], "failed", "{done}");
    let home = store.host().home.display().to_string();
    assert!(done["outcome"].as_str().is_some_and(|said| !said.is_empty() && !said.contains(&home)), "{done}");
}

#[test]
fn hanging_fetch_blocks_no_other_change() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    store.registry.set_silent(true);
    let (asked, id) = (store.registry.connections(), store.changes.propose("good"));
    let mut approving = store.host().command("ironctl");
    approving.arg("--home").arg(&store.host().home).args(["approve", &id]);
    approving.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut approving = approving.spawn().expect("ironctl runs");
    wait_for("a connection to the registry", || store.registry.connections() > asked);
    // Changes of the same agent and of another one are applied.
    store.host().change("a", "persona", &json!({ "instructions": "be brief" }));
    store.host().agent("b");
    store.host().change("b", "persona", &json!({ "instructions": "be brief" }));
    assert_eq!(store.changes.show(&id)["status"], "approved", "the fetch is in progress");
    store.host().kill_host();
    approving.wait().expect("ironctl ends");
}

#[test]
fn stop_during_a_fetch_does_not_fail_the_change() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    for (word, stop) in [("good", "down"), ("better", "panic"), ("good", "launcher")] {
        let id = store.changes.propose(word);
        let (asked, host_pid) = (store.registry.connections(), store.host().pid().expect("the host runs"));
        store.registry.set_silent(true);
        let mut approving = store.host().command("ironctl");
        approving.arg("--home").arg(&store.host().home).args(["approve", &id]);
        approving.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut approving = approving.spawn().expect("ironctl runs");
        wait_for("a connection to the registry", || store.registry.connections() > asked);
        if stop == "launcher" {
            let launcher = store.host().status()["host"]["launcher_pid"].as_i64().expect("a number");
            kill(i32::try_from(launcher).expect("a process id"));
            wait_for("the host to end without its launcher", || !alive(host_pid));
        } else {
            store.host().ctl(&[stop]).ok();
        }
        if stop == "panic" {
            assert_eq!(store.changes.show(&id)["status"], "approved", "no change is applied during an emergency stop");
        }
        store.registry.set_silent(false);
        if stop == "panic" {
            store.host().ctl(&["resume"]).ok();
        } else {
            store.host().up();
        }
        let done = store.changes.settled(&id);
        assert_eq!(done["status"], "done", "{stop}: {done}");
        store.runs("a", word, &format!("{word} is here\n[exit code 0]"));
        assert_eq!(store.notices(&id, "is applied"), 1, "{stop}");
        // The exit code of `ironctl approve` is not checked: the host may or may not answer before it stops.
        approving.wait().expect("ironctl ends");
    }
}

#[test]
fn damaged_layer_is_not_used_until_it_is_fetched_again() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    store.host().agent("b");
    store.host().change("b", "enabled_tools", &json!({ "add": ["run_command"] }));
    for agent in ["a", "b"] {
        store.host().change(agent, "packages", &json!(["good"]));
        store.runs(agent, "good", "good is here\n[exit code 0]");
    }
    let layer = store.agent("a")["packages"]["layer"].as_str().expect("a digest").to_owned();
    assert_eq!(store.layers("b"), [layer.as_str()], "the same packages give the same layer");
    let damaged = store.agent_directory("b").join("layers").join(&layer);
    store.host().down();
    // The damaged file keeps its length and mode.
    let file = damaged.join("usr/bin/good");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("permissions");
    mode(0o755);
    std::fs::write(&file, "#!/bin/sh\necho good is HERE\n").expect("written");
    mode(0o555);
    store.host().up();
    // The valid layer of the other agent is not used for this one.
    assert!(store.host().say("a", "run good").contains("good is here\n[exit code 0]"));
    let notice = store.host().ctl(&["chat", "b", "run good"]);
    let said = format!("{}{}", notice.stdout, notice.stderr);
    assert!(!said.contains("good is HERE\n"), "{said}");
    for words in [layer.as_str(), "are not those that were approved", "ask for the packages again"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let list = store.host().ctl(&["--json", "session", "list"]).ok().json();
    let parked =
        list.as_array().expect("a list").iter().find(|session| session["agent"] == "b").expect("a session").clone();
    let parked = parked["id"].as_str().expect("an id");
    assert!(!store.host().entries("launch.refused").is_empty());
    // A change with the same names fetches them again.
    store.host().change("b", "packages", &json!(["good"]));
    assert_eq!(store.layers("b"), [layer.as_str()]);
    store.host().ctl(&["session", "release", parked]).ok();
    store.runs("b", "good", "good is here\n[exit code 0]");
}

#[test]
fn removed_software_leaves_jail_at_once_and_disk_at_next_start() {
    let store = Software::new(HostUser::Ordinary, Build::Plain);
    store.host().change("a", "packages", &json!(["good"]));
    store.runs("a", "good", "good is here\n[exit code 0]");
    let first = store.layers("a");
    // Other packages are another layer, and no session keeps the former layer.
    let id = store.changes.propose("better");
    assert_eq!(store.approve(&id)["status"], "done");
    store.runs("a", "better", "better is here\n[exit code 0]");
    let both = store.layers("a");
    assert!(both.len() == 2 && both.contains(&first[0]), "{both:?}");
    store.host().down();
    store.host().up();
    let second = store.layers("a");
    assert!(second.len() == 1 && second != first, "{second:?}");
    store.runs("a", "good; better", "good is here\nbetter is here\n[exit code 0]");
    let asked = store.registry.connections();
    let id = store.changes.propose("nothing");
    assert_eq!(store.approve(&id)["status"], "done");
    store.runs("a", "good", "not found");
    assert_eq!(store.agent("a")["packages"], Value::Null);
    assert_eq!(store.registry.connections(), asked, "an empty list is not fetched");
    let agents = store.host().home.join("agents");
    store.host().down();
    store.host().up();
    assert_eq!(names(&agents), Vec::<String>::new());
    // A removed agent keeps no layer either.
    store.host().change("a", "packages", &json!(["good"]));
    assert_eq!(names(&agents).len(), 1);
    store.host().ctl(&["agent", "remove", "a", "--yes"]).ok();
    store.host().down();
    store.host().up();
    assert_eq!(names(&agents), Vec::<String>::new());
}
