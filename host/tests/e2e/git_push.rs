//! Tests of exact pushes: the page shows the commits, an approval pushes these once, and no other way to push exists.
//!
//! They use the real programs with the scripted model, and a server of git on loopback.

use crate::e2e::requests::waiting;
use crate::support::client::Raw;
use crate::support::git_site::{GitSite, git};
use crate::support::host_fixture::{Build, TestHost, alive, wait_for};
use crate::support::site::LOOPBACK_WHILE_AWAY;
use serde_json::{Value, json};
use std::path::PathBuf;

const IDENTITY: &str = "-c user.name=Ada -c user.email=ada@example.org";

/// A host with an agent that may push to `/ada/tulip.git` of a server, which needs a secret.
pub(crate) struct Forge {
    pub(crate) host: TestHost,
    site: GitSite,
    bare: PathBuf,
    /// Scheme and host of the addresses for pushes.
    origin: &'static str,
}

impl Forge {
    fn new(options: &[&str]) -> Self {
        Self::on(TestHost::new(), options)
    }

    pub(crate) fn on(host: TestHost, options: &[&str]) -> Self {
        Self::at("http://127.0.0.1", GitSite::start(), host, options)
    }

    /// Makes one that pushes over TLS. The host knows the authority of the server if the test says so.
    fn over_tls(is_trusted: bool) -> Self {
        let (site, mut host) = (GitSite::start(), TestHost::new());
        if is_trusted {
            trust(&mut host, &site);
        }
        Self::at("https://localhost", site, host, &[])
    }

    fn at(origin: &'static str, site: GitSite, host: TestHost, options: &[&str]) -> Self {
        let bare = site.repository("ada/tulip.git", "tulip.txt", "red");
        site.repository("ada/rose.git", "rose.txt", "white");
        host.configure(LOOPBACK_WHILE_AWAY);
        host.up();
        host.agent("a");
        host.ctl_given("top-secret-token-1\n", &["secret", "set", "forge"]).ok();
        host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
        let port = site.port.to_string();
        let name = origin.split_once("://").expect("a scheme").1;
        let grant = ["egress", "grant", "a", name, "--port", &port, "--commands", "git", "--push"];
        let path = ["--path", "/ada/tulip.git", "--secret", "forge", "--yes"];
        host.ctl(&[&grant[..], &path, options].concat()).ok();
        let forge = Self { host, site, bare, origin };
        // The gateway reaches hosts of this machine over http.
        let clone = format!("run online git clone {} w", forge.url().replace("https", "http"));
        let answer = forge.host.ctl(&["--json", "chat", "a", &format!("/allow exec send\n{clone}")]);
        assert!(answer.stdout.contains("[exit code 0]"), "{}", answer.stdout);
        forge
    }

    pub(crate) fn url(&self) -> String {
        format!("{}:{}/ada/tulip.git", self.origin, self.site.port)
    }

    /// Makes an empty commit with this subject in the workspace.
    pub(crate) fn commit(&self, subject: &str) {
        let said = self.run(&format!("git -C w {IDENTITY} commit --allow-empty --quiet -m \"{subject}\""));
        assert!(said.contains("[exit code 0]"), "{said}");
    }

    /// Runs a command without a network; approves it if it waits.
    fn run(&self, command: &str) -> String {
        self.host.say("a", &format!("/allow exec\nrun {command}"))
    }

    /// Asks for a push that waits. Returns the request.
    pub(crate) fn ask(&self) -> Value {
        let asked = self.host.ctl(&["--json", "chat", "a", &format!("push w to {} branch main", self.url())]);
        assert_eq!(asked.code, 1, "{} {}", asked.stdout, asked.stderr);
        self.host.ctl(&["--json", "inbox"]).ok().json()[0].clone()
    }

    /// Approves a request, and returns the result of its call.
    fn approve(&self, request: &Value) -> String {
        let ran = self.host.entries("call.ran").len();
        let decided = self.host.ctl(&["--json", "approve", request["id"].as_str().expect("an id"), "--yes"]);
        // A push that fails is told by the exit code.
        assert!(decided.code == 0 || decided.stderr.contains("\"call_failed\""), "{}", decided.stderr);
        wait_for("the push", || self.host.entries("call.ran").len() > ran);
        let call = self.host.entries("call.ran").last().expect("a call")["data"]["call"].clone();
        let why = self.host.ctl(&["--json", "why", call.as_str().expect("an id")]).ok().json();
        why["result"].as_str().unwrap_or_else(|| panic!("no result: {why}")).to_owned()
    }

    /// Returns the subjects of the branch on the server, the newest first.
    pub(crate) fn subjects(&self) -> Vec<String> {
        git(&self.bare, &["log", "--format=%s", "main"]).lines().map(str::to_owned).collect()
    }
    fn pushes(&self) -> usize {
        self.site.seen().iter().filter(|line| line.starts_with("POST") && line.contains("git-receive-pack")).count()
    }
}

/// Starts the host with the authority of a server, as an operator with an authority of their own does.
fn trust(host: &mut TestHost, site: &GitSite) {
    let file = host.home.with_file_name("authority.pem");
    std::fs::write(&file, &site.certificate).expect("written");
    host.set_env("SSL_CERT_FILE", file.to_str());
}

#[test]
fn approved_commits_are_pushed_once() {
    is_pushed_once(&Forge::new(&[]));
}

#[test]
fn approved_commits_are_pushed_once_over_tls() {
    is_pushed_once(&Forge::over_tls(true));
}

#[test]
fn server_of_an_unknown_authority_gets_no_push() {
    let mut forge = Forge::over_tls(false);
    forge.commit("mine");
    let before = forge.site.seen();
    let request = forge.ask();
    let said = forge.approve(&request);
    assert!(said.contains("certificate"), "{said}");
    assert_eq!((forge.pushes(), forge.site.seen()), (0, before), "neither a request nor the secret arrived");
    forge.host.down();
    trust(&mut forge.host, &forge.site);
    forge.host.up();
    let request = forge.ask();
    assert!(forge.approve(&request).contains("pushed: the branch main"));
    assert_eq!((forge.pushes(), forge.subjects()), (1, vec!["mine".to_owned(), "first".to_owned()]));
}

/// Checks a push from its page to its effect.
/// Checks that the page names the secret, and that a yes for one value of it is none for another one.
fn is_shown_again(forge: &Forge, request: &Value) {
    let (id, digest) = (request["id"].as_str().expect("an id"), request["shown_digest"].as_str().expect("a digest"));
    forge.host.ctl_given("top-secret-token-2\n", &["secret", "rotate", "forge"]).ok();
    forge.host.ctl(&["--json", "approve", id, "--digest", digest]).refused("shown_differs");
    let shown = forge.host.ctl(&["--json", "why", id]).ok().json()["shown"].to_string();
    for part in ["forge", "as the password of git", "git-receive-pack"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(forge.pushes(), 0);
}

fn is_pushed_once(forge: &Forge) {
    forge.commit("paint it blue");
    let request = forge.ask();
    let effect = request["effect"].as_str().unwrap_or_default();
    let head = forge.run("git -C w rev-parse HEAD");
    let head = head.split_whitespace().find(|word| word.len() == 40).expect("a hash").to_owned();
    let arguments = &request["details"]["call"]["arguments"];
    for shown in
        [forge.url().as_str(), "branch \"main\"", "1 commit, 0 files", arguments["diff"].as_str().expect("a digest")]
    {
        assert!(effect.contains(shown), "{shown}: {effect}");
    }
    let commits = arguments["commits"].as_str().expect("the commits");
    assert_eq!(commits, format!("{head} Ada <ada@example.org>: paint it blue"));
    assert_eq!(forge.pushes(), 0);
    is_shown_again(forge, &request);
    // A commit after the request, and settings of the workspace that would lead elsewhere.
    forge.commit("too late");
    forge.run(&format!("git -C w config url.{}.pushInsteadOf {}", forge.url().replace("tulip", "rose"), forge.url()));
    forge
        .run("printf '#!/bin/sh\\ntouch /workspace/hooked\\n' > w/.git/hooks/pre-push; chmod +x w/.git/hooks/pre-push");
    let said = forge.approve(&request);
    assert!(said.contains("pushed: the branch main") && said.contains(&head), "{said}");
    assert_eq!(forge.subjects(), ["paint it blue", "first"]);
    assert_eq!(forge.pushes(), 1);
    assert!(forge.site.seen().iter().all(|line| line.contains(" Basic ")), "{:?}", forge.site.seen());
    let again = forge.host.ctl(&["approve", request["id"].as_str().expect("an id"), "--yes"]);
    assert_ne!(again.code, 0, "{}", again.stdout);
    assert_eq!(forge.pushes(), 1);
    let seen = forge.run("ls w/../hooked; env; grep -r top-secret . ; echo end");
    assert!(seen.contains("end") && !seen.contains("top-secret-token") && seen.contains("cannot access"), "{seen}");
    let noted = &forge.host.entries("call.push")[0]["data"];
    assert_eq!(noted["requests"], 2, "{noted}");
    assert!(noted["digest"].is_string(), "{noted}");
    forge.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn push_of_a_host_that_died_is_unknown_and_not_made_again() {
    let mut forge = Forge::on(TestHost::own(Build::Failpoints), &[]);
    forge.commit("mine");
    forge.ask();
    forge.host.down();
    forge.host.up_failing_at("call_sent");
    let (raw, pid) = (Raw::of(&forge.host), forge.host.pid().expect("the host runs"));
    let entry = waiting(&raw);
    let path = format!("/v1/waiting/{}/decision", entry["id"].as_str().expect("an id"));
    drop(raw.try_ask("POST", &path, &json!({ "approve": entry["shown_digest"] }).to_string()));
    wait_for("the host to die after the push", || !alive(pid));
    forge.host.up();
    let call = forge.host.entries("call.started").last().expect("a call")["data"]["call"].clone();
    let call = call.as_str().expect("an id");
    let status = || forge.host.ctl(&["--json", "why", call]).ok().json()["status"].clone();
    wait_for("its outcome", || status() == "unknown");
    assert_eq!((forge.pushes(), forge.subjects()), (1, vec!["mine".to_owned(), "first".to_owned()]));
    let inbox = forge.host.ctl(&["--json", "inbox"]).ok().json();
    let types: Vec<&Value> = inbox.as_array().expect("a list").iter().map(|entry| &entry["type"]).collect();
    assert_eq!(types, ["replies"], "no request waits for it, and a notice tells of it");
}

#[test]
fn push_that_raced_another_one_fails() {
    let forge = Forge::new(&[]);
    forge.commit("mine");
    let request = forge.ask();
    let work = forge.bare.with_file_name("tulip.git.work");
    git(&work, &["commit", "--quiet", "--allow-empty", "--message", "theirs"]);
    git(&work, &["push", "--quiet", forge.bare.to_str().expect("text"), "HEAD:refs/heads/main"]);
    let said = forge.approve(&request);
    assert!(said.contains("nothing was pushed") && said.contains("fetch it"), "{said}");
    assert_eq!(forge.subjects(), ["theirs", "first"]);
    assert_eq!(forge.pushes(), 0);
}

#[test]
fn push_that_is_not_exact_is_refused_by_name() {
    let forge = Forge::new(&["--upload-bytes-max", "4000"]);
    let refused = |words: &str, code: &str| {
        forge.host.ctl(&["--json", "chat", "a", words]);
        let entries = forge.host.entries("call.refused");
        let said = entries.last().map(ToString::to_string).unwrap_or_default();
        assert!(said.contains(code), "{words}: {said}");
    };
    let port = forge.site.port;
    forge.commit("one");
    refused(&format!("push w to http://127.0.0.1:{port}/ada/rose.git branch main"), "egress_new_path");
    refused("push w to https://example.org/ada/tulip.git branch main", "egress_new_host");
    refused(&format!("push w to {} branch :main", forge.url()), "call_malformed");
    refused(&format!("push . to {} branch main", forge.url()), "egress_push");
    assert_eq!(forge.pushes(), 0);
    // A pack over the bound of the grant.
    forge.run(&format!(
        "head -c 9000 /dev/urandom > w/big && git -C w add big && git -C w {IDENTITY} commit --quiet -m big"
    ));
    let request = forge.ask();
    let said = forge.approve(&request);
    assert!(said.contains("egress_upload") && said.contains("nothing was pushed"), "{said}");
    // Another history.
    forge.run(&format!(
        "cd w && git checkout --quiet --orphan other && git {IDENTITY} commit --allow-empty --quiet -m other"
    ));
    refused(&format!("push w to {} branch main", forge.url()), "egress_push");
    assert_eq!((forge.pushes(), forge.subjects()), (0, vec!["first".to_owned()]));
}

#[test]
fn page_of_a_push_has_its_diff_and_the_yes_is_bound_to_it() {
    let forge = Forge::on(TestHost::own(Build::Plain), &[]);
    // Programs of the workspace that git would run for a diff, and names that look like lines of the page.
    forge.run(
        "cd w && printf '* diff=evil\\n' > .git/info/attributes && git config diff.external 'touch /workspace/ran;' && \
         git config diff.evil.textconv 'touch /workspace/ran;' && git config diff.renames copies",
    );
    forge.run(&format!(
        "cd w && printf 'blue\\n' > tulip.txt && printf '\\000\\001' > bulb.bin && printf 'echo\\n' > run.sh && chmod +x run.sh && \
         printf 'x\\n' > \"$(printf 'a\\nALL ARGUMENTS')\" && ln -s /etc/passwd link && printf 'hush\\n' > key && git add -A && \
         git {IDENTITY} commit --quiet -m more && git rm --quiet key && git {IDENTITY} commit --quiet -m fewer"
    ));
    let request = forge.ask();
    let id = request["id"].as_str().expect("an id");
    let arguments = &request["details"]["call"]["arguments"];
    let changes = arguments["changes"].as_str().expect("the changed files");
    for line in [
        "changed \"tulip.txt\": +1 -1",
        "new \"run.sh\": EXECUTABLE, +1 -0",
        "new \"link\": LINK, +1 -0",
        "new \"a\\u{a}ALL ARGUMENTS\": +1 -0",
    ] {
        assert!(changes.lines().any(|found| found == line), "{line}\n{changes}");
    }
    let sha256 = "b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2";
    assert!(
        changes.contains(&format!("new \"bulb.bin\": no text, from nothing to 2 bytes with SHA-256 {sha256}")),
        "{changes}"
    );
    let first = changes.lines().nth(1).unwrap_or_default();
    assert!(first.starts_with("new \"key\": IN THE HISTORY ONLY"), "a removed secret leaves too: {changes}");
    let page = forge.host.ctl(&["--json", "approve", id, "--digest", &"0".repeat(64)]);
    assert!(page.stderr.contains("shown_differs"), "{}", page.stderr);
    let shown = Raw::of(&forge.host).get(&format!("/v1/waiting/{id}")).1["shown"].as_str().expect("a page").to_owned();
    let first_screen: String = shown.lines().take(21).collect::<Vec<_>>().join("\n");
    let summary = arguments["summary"].as_str().expect("a summary");
    assert!(summary.starts_with("2 commits, 5 files, +4 -1 lines"), "{summary}");
    let digest = arguments["diff"].as_str().expect("a digest");
    for words in [digest, "IN THE HISTORY ONLY", "5 files, +4 -1 lines"] {
        assert!(first_screen.contains(words), "{words} is not on the first screen:\n{first_screen}");
    }
    let diff = forge.host.ctl(&["--json", "why", id, "--diff"]).ok().json();
    assert_eq!((diff["digest"].as_str(), &diff["left_off"]), (Some(digest), &json!(0)));
    let text = diff["text"].as_str().expect("a text");
    for line in ["  + | blue", "  + | hush", "  + | /etc/passwd"] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let eve = Raw::add_person(&forge.host, "eve", &[]);
    assert_eq!(eve.get(&format!("/v1/waiting/{id}/diff")).0, 404, "another person does not see it");
    let none = forge.run("ls /workspace; ls /workspace/ran");
    assert!(none.contains("cannot access"), "a program of the workspace ran: {none}");
    // Another content under the same subjects is another page.
    forge.run("cp -r w kept");
    forge.run(&format!("cd w && printf 'green\\n' > tulip.txt && git {IDENTITY} commit --quiet -a --amend -m fewer"));
    forge.ask();
    let other = forge.host.ctl(&["--json", "inbox"]).ok().json()[1].clone();
    assert_ne!(
        (&other["details"]["call"]["arguments"]["diff"], &other["shown_digest"]),
        (&arguments["diff"], &request["shown_digest"])
    );
    assert!(forge.approve(&request).contains("pushed: the branch main"), "the commits of the yes are there still");
    assert_eq!(forge.subjects(), ["fewer", "more", "first"]);
    assert_eq!(git(&forge.bare, &["show", "main:tulip.txt"]), "blue\n");
    // The workspace loses the commits of the other one.
    forge.run("rm -rf w && mv kept w && git -C w reflog expire --expire=now --all && git -C w gc --quiet --prune=now");
    forge.host.ctl(&["--json", "why", other["id"].as_str().expect("an id"), "--diff"]).refused("request_diff");
}
