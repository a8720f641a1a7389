//! Tests of hosts of the local network: what `[egress] lan` lets grants and MCP servers reach, and everything that it never does.
//!
//! They use the real programs with the scripted model, and servers at private addresses. See `support::local_network`.

use crate::e2e::mcp;
use crate::e2e::network_commands::online;
use crate::support::git_site::GitSite;
use crate::support::host_fixture::TestHost;
use crate::support::local_network::{LocalNetwork, OTHERS, OWN};
use crate::support::mcp_server::{ECHO_READS, HttpServer};
use crate::support::site::Site;
use serde_json::{Value, json};

const LAN: &str = "[egress]\nlan = [\"10.0.0.0/8\"]\n";
/// A range with every local address.
const WIDE: &str = "[egress]\nlan = [\"0.0.0.0/0\", \"::/0\"]\n";

/// Starts a site at an address of the other machine.
fn site(network: &LocalNetwork, address: &'static str) -> Site {
    network.there(move || {
        let address = if address.contains(':') { format!("[{address}]:0") } else { format!("{address}:0") };
        Site::start_at(&address)
    })
}

fn host(settings: &str) -> TestHost {
    let host = TestHost::new();
    host.configure(settings);
    host.up();
    host.agent("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command", "http_fetch"] }));
    host
}

fn reload(host: &TestHost, settings: &str) {
    host.configure(settings);
    host.ctl(&["config", "reload"]).ok();
}

/// Grants a host over plain http, and returns the code of the refusal or an empty text.
fn grant(host: &TestHost, name: &str, port: u16, more: &[&str]) -> String {
    let at = format!("http://{name}:{port}");
    let words = [&["--json", "egress", "grant", "a", &at, "--path", "/page", "--yes"], more].concat();
    let answer = host.ctl(&words);
    match answer.code {
        0 => String::new(),
        _ => answer.error()["code"].as_str().unwrap_or_else(|| panic!("{}", answer.stderr)).to_owned(),
    }
}

/// Returns the page of a change that waits.
fn page(host: &TestHost, kind: &str, payload: &Value) -> String {
    let payload = payload.to_string();
    let agent: &[&str] = if kind == "mcp_register" { &[] } else { &["--agent", "a"] };
    let words = ["--json", "change", "submit", "--kind", kind, "--payload", &payload, "--reason", "it is time"];
    let submitted = host.ctl(&[&words[..], agent].concat()).ok().json();
    let id = submitted["id"].as_str().expect("an id").to_owned();
    let shown = host.ctl(&["inbox", "show", &id]).ok().stdout;
    host.ctl(&["reject", &id]).ok();
    shown.split_whitespace().collect::<Vec<_>>().join(" ").replace("!! ", "")
}

fn fetch(host: &TestHost, thread: &str, url: &str) -> String {
    host.ctl(&["chat", "a", "--thread", thread, &format!("fetch {url}")]).stdout
}

#[test]
fn private_address_is_reached_only_as_its_page_shows() {
    let test = "e2e::local_network::private_address_is_reached_only_as_its_page_shows";
    let Some(network) = LocalNetwork::enter(test) else { return };
    let [seven, eight, ..] = OTHERS;
    network.name(&[("nas.example", seven)]);
    let near = site(&network, seven);
    let url = format!("http://nas.example:{}/page", near.port);
    let host = host("");
    // Without the setting nothing is granted, and a grant over TLS is refused at its use.
    assert_eq!(grant(&host, "nas.example", near.port, &[]), "egress_malformed");
    reload(&host, LAN);
    host.ctl_given("top-secret-1\n", &["secret", "set", "forge"]).ok();
    let payload = json!({ "host": "http://nas.example", "port": near.port, "methods": ["GET"], "paths": ["/page"], "secret": "forge" });
    let shown = page(&host, "egress", &payload);
    for line in [
        format!("LOCAL NETWORK: \"http://nas.example\" has the private address {seven}."),
        "PLAIN HTTP: machines on the way".to_owned(),
        "SECRET \"forge\" goes over PLAIN HTTP".to_owned(),
    ] {
        assert!(shown.contains(&line), "{line}: {shown}");
    }
    assert_eq!(grant(&host, "nas.example", near.port, &[]), "");
    assert!(fetch(&host, "t1", &url).contains("The page says tulip."));
    assert_eq!(near.lines().len(), 1);

    // Another address of the name, alone or beside the first one, is not connected to.
    let other = network.there(move || Site::start_at(&format!("{eight}:0")));
    for names in [
        &[("nas.example", eight)][..],
        &[("nas.example", seven), ("nas.example", eight)],
        &[("nas.example", "8.8.8.8")],
        &[("nas.example", "127.0.0.1")],
        &[("nas.example", "169.254.169.254")],
        &[("nas.example", OWN)],
    ] {
        network.name(names);
        let said = fetch(&host, "t2", &url);
        assert!(
            said.contains("shown_differs") && said.contains(seven) && said.contains("nothing was sent"),
            "{names:?}: {said}"
        );
    }
    assert_eq!((near.lines().len(), other.lines().len()), (1, 0));
    // A person reads the new address, and the same words are a change then.
    network.name(&[("nas.example", eight)]);
    let payload =
        json!({ "host": "http://nas.example", "port": near.port, "methods": ["GET", "HEAD"], "paths": ["/page"] });
    assert!(page(&host, "egress", &payload).contains(&format!("private address {eight}.")));
    network.name(&[("nas.example", seven)]);

    // A server of the network leads to no other one.
    network.name(&[("nas.example", seven), ("printer.example", eight)]);
    host.ctl(&[
        "egress",
        "grant",
        "a",
        &format!("http://nas.example:{}", near.port),
        "--path",
        "/to/{where}",
        "--path",
        "/page",
        "--yes",
    ])
    .ok();
    let said = fetch(&host, "t3", &format!("http://nas.example:{}/to/printer.example:{}", near.port, other.port));
    assert!(said.contains("not followed") && other.lines().is_empty(), "{said}");
    let said = fetch(&host, "t4", &format!("http://printer.example:{}/page", other.port));
    assert!(!said.contains("tulip") && other.lines().is_empty(), "{said}");

    // Without the range the use ends at once, and the audit lists the reach until it is revoked.
    assert!(fetch(&host, "t5", &url).contains("tulip"));
    let findings = host.ctl(&["--json", "doctor", "--audit"]).json()["findings"].to_string();
    assert!(findings.contains("local_network_reached") && findings.contains(seven), "{findings}");
    reload(&host, "[egress]\nlan = [\"192.168.0.0/16\"]\n");
    let seen = near.lines().len();
    let said = fetch(&host, "t6", &url);
    assert!(said.contains("is not in `[egress] lan`") && near.lines().len() == seen, "{said}");
    host.ctl(&["egress", "revoke", "a", "nas.example", "--yes"]).ok();
    let findings = host.ctl(&["--json", "doctor", "--audit"]).json()["findings"].to_string();
    assert!(!findings.contains("local_network_reached"), "{findings}");
}

#[test]
fn no_range_admits_an_address_that_is_never_reached() {
    let test = "e2e::local_network::no_range_admits_an_address_that_is_never_reached";
    let Some(network) = LocalNetwork::enter(test) else { return };
    let own = Site::start_at("0.0.0.0:0");
    let six = site(&network, "fd77::7");
    let names = [
        ("loopback.example", "127.0.0.1"),
        ("six.example", "::1"),
        ("metadata.example", "169.254.169.254"),
        ("cloud.example", "fd00:ec2::254"),
        ("mapped.example", "::ffff:10.77.0.7"),
        ("nat.example", "64:ff9b::a4d:7"),
        ("own.example", OWN),
        ("zero.example", "0.0.0.0"),
        ("public.example", "8.8.8.8"),
        ("unique.example", "fd77::7"),
    ];
    network.name(&names);
    let host = host(WIDE);
    for (name, _) in &names[..9] {
        assert_eq!(grant(&host, name, own.port, &[]), "egress_malformed", "{name}");
        // Over TLS a host is granted, as any other, and its address is refused at its use.
        let at = format!("{name}:{}", own.port);
        host.ctl(&["egress", "grant", "a", &at, "--path", "/page", "--yes"]).ok();
        if *name != "public.example" {
            let said = fetch(&host, name, &format!("https://{at}/page"));
            assert!(said.contains("nothing was sent"), "{name}: {said}");
        }
        let url = format!("http://{name}:{}/mcp", own.port);
        let refused = host.ctl(&["--json", "mcp", "add", "near", "--url", &url, "--yes"]);
        assert_eq!(refused.error()["code"], "mcp_url", "{name}: {}", refused.stderr);
    }
    assert!(own.lines().is_empty());
    // The address is reached with its range, and not with another one.
    assert_eq!(grant(&host, "unique.example", six.port, &[]), "");
    let url = format!("http://unique.example:{}/page", six.port);
    assert!(fetch(&host, "u1", &url).contains("tulip"));
    reload(&host, LAN);
    assert!(fetch(&host, "u2", &url).contains("is not in `[egress] lan`"));
    assert_eq!(grant(&host, "unique.example", six.port, &["--method", "HEAD"]), "egress_malformed");
    assert_eq!(six.lines().len(), 1);
}

#[test]
fn server_in_the_local_network_is_used_at_its_shown_address() {
    let test = "e2e::local_network::server_in_the_local_network_is_used_at_its_shown_address";
    let Some(network) = LocalNetwork::enter(test) else { return };
    let [seven, eight, ..] = OTHERS;
    network.name(&[("nas.example", seven)]);
    let server = network.there(|| HttpServer::start(&["--listen", "0.0.0.0"]));
    let port = server.url.rsplit(':').next().expect("a port").trim_end_matches("/mcp").to_owned();
    let host = host(LAN);
    host.ctl_given("top-secret-1\n", &["secret", "set", "key"]).ok();
    let url = format!("http://nas.example:{port}/mcp");
    let headers = json!([{ "name": "x-api-key", "secret": "key" }]);
    let shown = page(&host, "mcp_register", &json!({ "name": "nas", "url": url, "headers": headers }));
    for line in [&*format!("private address {seven}."), "PLAIN HTTP: machines", "SECRET \"key\" goes over PLAIN HTTP"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    mcp::ready(&host, "nas", &["--url", &url], Some(ECHO_READS));
    let (said, _) = mcp::call(&host, "t1", "use nas__echo {\"text\":\"tulips\"}");
    assert_eq!(said["status"], "done", "{said}");
    host.ctl(&["mcp", "add", "bare", "--url", &format!("http://{seven}:{port}/mcp"), "--yes"]).ok();

    // Another address of the name, and then no range.
    network.name(&[("nas.example", eight)]);
    let tested = host.ctl(&["mcp", "test", "nas"]);
    host.restart();
    let (said, answer) = mcp::call(&host, "t2", "use nas__echo {\"text\":\"tulips\"}");
    assert_ne!(said["status"], "done", "{said} {answer} {}", tested.stderr);
    assert!(host.ctl(&["mcp", "test", "nas"]).stderr.contains(eight));
    network.name(&[("nas.example", seven)]);
    host.ctl(&["mcp", "test", "nas"]).ok();
    reload(&host, "[egress]\nlan = []\n");
    let (said, answer) = mcp::call(&host, "t3", "use nas__echo {\"text\":\"tulips\"}");
    assert_ne!(said["status"], "done", "a kept connection is not used: {said} {answer}");
    for name in ["nas", "bare"] {
        let refused = host.ctl(&["mcp", "test", name]);
        assert!(refused.stderr.contains("`[egress] lan`"), "{name}: {}", refused.stderr);
    }
}

#[test]
fn commands_use_a_forge_and_indexes_of_the_local_network() {
    let test = "e2e::local_network::commands_use_a_forge_and_indexes_of_the_local_network";
    let Some(network) = LocalNetwork::enter(test) else { return };
    let [seven, eight, ..] = OTHERS;
    network.name(&[("forge.example", seven), ("index.example", seven)]);
    let forge = network.there(move || {
        let forge = GitSite::start_at(&format!("{seven}:0"));
        forge.repository("ada/tulip.git", "tulip.txt", "red");
        forge
    });
    let index = site(&network, seven);
    let host = host(LAN);
    let at = format!("http://forge.example:{}", forge.port);
    host.ctl(&["egress", "grant", "a", &at, "--commands", "git", "--path", "/ada/tulip.git", "--yes"]).ok();
    let said = online(&host, &format!("git clone {at}/ada/tulip.git w && cat w/tulip.txt"));
    assert!(said.contains("red") && said.contains("[exit code 0]"), "{said}");
    for (purpose, path) in [("npm", "tulip"), ("pip", "simple/tulip/")] {
        let at = format!("http://index.example:{}", index.port);
        host.ctl(&["egress", "grant", "a", &at, "--commands", purpose, "--yes"]).ok();
        let url = format!("http://127.0.0.1:8129/index.example:{}/{path}", index.port);
        let said = online(&host, &format!("perl -MHTTP::Tiny -e 'print HTTP::Tiny->new->get(\"{url}\")->{{status}}'"));
        assert!(said.contains("200"), "{purpose}: {said}");
    }
    network.name(&[("forge.example", eight), ("index.example", eight)]);
    let said = online(&host, &format!("git clone {at}/ada/tulip.git again"));
    assert!(said.contains("shown_differs") && said.contains(seven) && said.contains(eight), "{said}");
}
