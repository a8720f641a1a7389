//! Tests of commands that reach the network through the gateway of the host, and of everything that they cannot reach.
//!
//! They use the real programs with the scripted model, and servers on loopback. Perl is the client, because every machine has it.

use crate::e2e::calls::why_last_call;
use crate::e2e::packages::registry::Registry;
use crate::support::git_site::GitSite;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::needs::needs;
use crate::support::processes::descendants;
use crate::support::site::{LOOPBACK_WHILE_AWAY, Site};
use serde_json::{Value, json};

/// Starts a host with an agent that may run commands, and the grant of a server on this port to its commands.
fn host_with(port: u16, grant: &Value) -> TestHost {
    let host = TestHost::new().configured(LOOPBACK_WHILE_AWAY).started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    let mut payload = json!({ "host": "127.0.0.1", "port": port, "methods": ["GET", "POST"], "commands": "other" });
    payload.as_object_mut().expect("an object").extend(grant.as_object().expect("an object").clone());
    host.change("a", "egress", &payload);
    host
}

/// Runs a command with the network, and approves it if it waits. Returns its result.
pub(crate) fn online(host: &TestHost, command: &str) -> String {
    let ran = host.entries("call.ran").len();
    let answer = host.ctl(&["--json", "chat", "a", &format!("/allow exec send\nrun online {command}")]);
    if answer.code == 1 {
        // The output of an earlier command is text of others.
        let inbox = host.ctl(&["--json", "inbox"]).ok().json();
        let decided = host.ctl(&["--json", "approve", inbox[0]["id"].as_str().expect("an id"), "--yes"]);
        // A command that fails is told by the exit code.
        assert!(decided.code == 0 || decided.stderr.contains("\"call_failed\""), "{}", decided.stderr);
        wait_for("the command", || host.entries("call.ran").len() > ran);
    }
    let call = host.entries("call.ran").last().expect("a call")["data"]["call"].clone();
    let why = host.ctl(&["--json", "why", call.as_str().expect("an id")]).ok().json();
    why["result"].as_str().unwrap_or_else(|| panic!("no result: {why}")).to_owned()
}

/// Returns a command that prints status and content of a request to the gateway.
fn request(method: &str, path: &str) -> String {
    format!(
        "perl -MHTTP::Tiny -e 'my $r = HTTP::Tiny->new(max_redirect => 0)->request(\"{method}\", \
         \"http://127.0.0.1:8129{path}\"); print \"$r->{{status}} $r->{{content}}\"'"
    )
}

/// Returns a command that tries a TCP connection.
pub(crate) fn connect(port: u16) -> String {
    format!(
        "perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr => \"127.0.0.1:{port}\") ? \"reached\" : \"closed: $!\"'"
    )
}

#[test]
fn command_reaches_a_granted_path_by_the_gateway_alone() {
    let site = Site::start();
    let host = host_with(site.port, &json!({ "paths": ["/page"] }));
    let said = online(&host, &request("GET", &format!("/127.0.0.1:{}/page", site.port)));
    assert!(said.contains("200 ") && said.contains("The page says tulip.") && said.contains("[exit code 0]"), "{said}");
    assert_eq!(site.lines(), ["GET /page HTTP/1.1"]);
    let noted = &host.entries("call.network")[0]["data"];
    assert_eq!((noted["requests"].as_u64(), noted["refused"].as_u64()), (Some(1), Some(0)), "{noted}");
    let said = online(&host, &connect(site.port));
    assert!(said.contains("closed: "), "{said}");
    assert_eq!(site.lines().len(), 1, "nothing else arrived");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn request_beyond_the_grant_is_refused_by_name() {
    let site = Site::start();
    let host = host_with(site.port, &json!({ "paths": ["/page", "/moved"], "upload_bytes_max": 10 }));
    let here = format!("/127.0.0.1:{}", site.port);
    for (method, path, code) in [
        ("GET", format!("{here}/other"), "egress_new_path"),
        ("PUT", format!("{here}/page"), "egress_new_method"),
        ("GET", "/example.org/page".to_owned(), "egress_new_host"),
        ("GET", "/127.0.0.1:1/page".to_owned(), "egress_new_host"),
        ("GET", "/1.1.1.1/page".to_owned(), "egress_new_host"),
    ] {
        let said = online(&host, &request(method, &path));
        assert!(said.contains("403 refused") && said.contains(code), "{method} {path}: {said}");
    }
    let upload = format!(
        "perl -MHTTP::Tiny -e 'print HTTP::Tiny->new->request(\"POST\", \"http://127.0.0.1:8129{here}/page\", \
         {{content => \"x\" x 11}})->{{content}}'"
    );
    assert!(online(&host, &upload).contains("egress_upload"));
    assert!(site.lines().is_empty(), "nothing was sent: {:?}", site.lines());
    let said = online(&host, &request("GET", &format!("{here}/moved")));
    assert!(said.contains("egress_new_host") && said.contains("redirects"), "{said}");
    let why = why_last_call(&host).to_string();
    assert!(why.contains("[the gateway refused GET"), "the person sees the attempt: {why}");
    let codes: Vec<_> = host.entries("call.network").iter().map(|entry| entry["data"]["codes"].clone()).collect();
    assert_eq!(codes.last(), Some(&json!("egress_new_host")), "{codes:?}");
}

#[test]
fn another_process_of_the_jail_uses_the_listener() {
    let site = Site::start();
    let host = host_with(site.port, &json!({ "paths": ["/page"] }));
    // The jail of the session has no listener, before and after a permitted command.
    assert!(host.say("a", &format!("run {}", connect(8129))).contains("closed: "));
    assert!(online(&host, &connect(8129)).contains("reached"));
    assert!(host.say("a", &format!("run {}", connect(8129))).contains("closed: "));
    // A process that a command leaves behind ends with it.
    assert!(online(&host, "sleep 98765 > /dev/null 2>&1 & echo begun").contains("begun"));
    let left = descendants(host.pid().expect("a host"));
    assert!(!left.values().any(|name| name == "sleep"), "{left:?}");
}

/// Returns a request that waits, with its page.
fn waiting(host: &TestHost, request: &str) -> Value {
    host.ctl(&["--json", "why", request]).ok().json()
}

#[test]
fn other_host_for_a_waiting_command_needs_another_yes() {
    let site = Site::start();
    let host = host_with(site.port, &json!({ "paths": ["/page"] }));
    let command = request("GET", &format!("/127.0.0.1:{}/page", site.port));
    let answer = host.ctl(&["--json", "chat", "a", &format!("run online {command}")]);
    assert_eq!(answer.code, 1, "{}", answer.stdout);
    assert!(site.lines().is_empty(), "nothing ran");
    let inbox = host.ctl(&["--json", "inbox"]).ok().json();
    let request = inbox[0]["id"].as_str().expect("an id").to_owned();
    let effect = inbox[0]["effect"].as_str().unwrap_or_default();
    assert!(effect.contains("network_command") && effect.contains("HTTP::Tiny"), "{effect}");
    assert_eq!(inbox[0]["reasons"][0]["reason"], "call_scope");
    // The command can reach another host with a secret meanwhile, then by a tunnel, and then with another value of the secret.
    host.ctl_given("top-secret-token-1\n", &["secret", "set", "forge"]).ok();
    let (other, tunnel) = (Site::start(), "--commands tunnel");
    let port = other.port.to_string();
    let grant = ["egress", "grant", "a", "localhost", "--port", &port, "--yes"];
    let with_secret = ["--commands", "other", "--path", "/page", "--secret", "forge"];
    let changes: [(&str, &dyn Fn()); 3] = [
        ("\"forge\"", &|| drop(host.ctl(&[&grant[..], &with_secret].concat()).ok())),
        ("stored", &|| drop(host.ctl_given("top-secret-token-2\n", &["secret", "rotate", "forge"]).ok())),
        ("tunnels, which this host cannot read", &|| {
            drop(host.ctl(&[&grant[..], &tunnel.split(' ').collect::<Vec<_>>()].concat()).ok());
        }),
    ];
    for (shown, change) in changes {
        let digest = waiting(&host, &request)["shown_digest"].as_str().expect("a digest").to_owned();
        change();
        host.ctl(&["--json", "approve", &request, "--digest", &digest]).refused("shown_differs");
        let page = waiting(&host, &request)["shown"].as_str().expect("a page").to_owned();
        assert!(page.contains("localhost") && page.contains(shown) && !page.contains("top-secret"), "{page}");
    }
    assert!(site.lines().is_empty(), "nothing ran");
    host.ctl(&["approve", &request, "--yes"]).ok();
    wait_for("the command", || !host.entries("call.ran").is_empty());
    assert_eq!(site.lines(), ["GET /page HTTP/1.1"]);
    assert!(other.lines().is_empty());
}

#[test]
fn secret_of_a_grant_is_nowhere_in_the_jail() {
    let git = GitSite::start();
    git.repository("ada/tulip.git", "tulip.txt", "red");
    let host = TestHost::new().configured(LOOPBACK_WHILE_AWAY).started_with("a");
    host.ctl_given("top-secret-token-1\n", &["secret", "set", "forge"]).ok();
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    let port = git.port.to_string();
    let grant =
        ["egress", "grant", "a", "127.0.0.1", "--port", &port, "--commands", "git", "--path", "/ada/{repository}"];
    host.ctl(&[&grant[..], &["--secret", "forge", "--yes"]].concat()).ok();
    let said = online(&host, &format!("git clone http://127.0.0.1:{port}/ada/tulip.git && cat tulip/tulip.txt && env"));
    assert!(said.contains("red") && said.contains("[exit code 0]"), "{said}");
    assert!(!said.contains("top-secret") && !said.contains("dG9wLXNlY3JldC10b2tlbi0x"), "{said}");
    assert!(git.seen().iter().all(|line| line.contains(" Basic ")), "{:?}", git.seen());
    let asked = git.seen().len();
    // Another repository, and a push to the granted one.
    let said = online(&host, &format!("git clone http://127.0.0.1:{port}/eve/other.git"));
    assert!(said.contains("egress_new_path"), "{said}");
    let push =
        "cd tulip && git -c user.name=a -c user.email=a@b commit --allow-empty -m x && git push origin HEAD:main";
    let said = online(&host, push);
    assert!(said.contains("egress_push") && !said.contains("[exit code 0]"), "{said}");
    assert_eq!(git.seen().len(), asked, "nothing was sent");
    assert!(host.ctl(&["egress", "list"]).ok().stdout.contains("git"));
    host.ctl(&["--json", "egress", "revoke", "a", "127.0.0.1:1", "--yes"]).refused("egress_malformed");
    host.ctl(&["egress", "revoke", "a", &format!("127.0.0.1:{port}"), "--yes"]).ok();
    assert!(!host.ctl(&["egress", "list"]).ok().stdout.contains("git"));
}

#[test]
fn npm_and_pip_install_from_granted_registries() {
    needs("node");
    let registry = Registry::new();
    registry.publish("tulip", std::path::Path::new("/workspace/script"));
    registry.publish_wheel("rose", "def main():\n    print('a rose')\n");
    let npm = json!({ "commands": "npm", "paths": ["/npm/{package}"], "methods": ["GET"] });
    let host = host_with(registry.port, &npm);
    let said = online(&host, "npm install tulip && node node_modules/tulip/cli.js");
    assert!(said.contains("hello") && said.contains("[exit code 0]"), "{said}");
    let pip = |paths: &[&str]| json!({ "host": "127.0.0.1", "port": registry.port, "methods": ["GET"], "commands": "pip", "paths": paths });
    host.change("a", "egress", &pip(&["/simple/{package}/", "/files/{file}"]));
    let install = "python3 -m pip install --no-cache-dir --target";
    let said = online(&host, &format!("{install} t rose && PYTHONPATH=t python3 -c 'import rose; rose.main()'"));
    assert!(said.contains("a rose") && said.contains("[exit code 0]"), "{said}");
    // Its files at a path that is not granted.
    host.change("a", "egress", &pip(&["/simple/{package}/"]));
    let said = online(&host, &format!("{install} u rose"));
    assert!(said.contains("egress_new_path") && !said.contains("[exit code 0]"), "{said}");
}

#[test]
fn requests_of_one_command_are_bounded() {
    let site = Site::start();
    let host = host_with(site.port, &json!({ "paths": ["/page"] }));
    let many = "perl -MHTTP::Tiny -e 'my $h = HTTP::Tiny->new; my $s; \
                for (1..5100) { $s = $h->get(\"http://127.0.0.1:8129/x/y\")->{content} } print $s'";
    let said = online(&host, many);
    assert!(said.contains("egress_too_much"), "{said}");
    assert!(site.lines().is_empty());
    let noted = &host.entries("call.network")[0]["data"];
    assert_eq!(noted["requests"], 5100, "{noted}");
}
