//! Tests of tunnels: TLS connections of commands that the host passes on, and everything that it does not.
//!
//! They use the real programs with the scripted model, and servers on loopback. See `network_commands`.

use crate::e2e::network_commands::{connect, online};
use crate::e2e::packages::registry::Registry;
use crate::support::git_site::GitSite;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::needs::needs;
use crate::support::processes::descendants;
use crate::support::site::LOOPBACK_WHILE_AWAY;
use crate::support::tls_site::{PAGE, TlsSite, client_hello, client_hello_with_ech};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// The perl of a client: `say` opens a connection to the gateway, asks for a tunnel and sends bytes; it returns the status.
const CLIENT: &str = r#"use IO::Socket::INET; $SIG{PIPE} = "IGNORE";
sub ask { my ($to) = @_; my $s = IO::Socket::INET->new("127.0.0.1:8129") or die "closed: $!";
  my $end = chr(13) . chr(10); syswrite $s, "CONNECT $to HTTP/1.1${end}Host: $to$end$end"; $s }
sub status { my ($s) = @_; my $head = ""; while (index($head, chr(13) . chr(10) . chr(13)) < 0) { sysread($s, $head, 1, length $head) or last }
  sysread($s, $head, 1, length $head); (split / /, $head)[1] // "none" }
sub say { my ($to, $hex) = @_; my $s = ask($to); my $status = status($s);
  return $status if $status ne "200"; syswrite $s, pack("H*", $hex); sysread($s, my $answer, 9999); "200 " . unpack("H*", $answer // "") }
"#;

/// Returns a command that runs this perl after [`CLIENT`].
pub(crate) fn perl(script: &str) -> String {
    format!("echo {} | base64 -d | perl", STANDARD.encode(format!("{CLIENT}{script}")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts a server, and a host with an agent whose commands may use tunnels to it.
fn host_with(more: &[&str]) -> (TlsSite, TestHost) {
    let site = TlsSite::start();
    let host = TestHost::new().configured(LOOPBACK_WHILE_AWAY).started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    grant(&host, &site, more);
    (site, host)
}

fn grant(host: &TestHost, site: &TlsSite, more: &[&str]) {
    let at = format!("localhost:{}", site.port);
    host.ctl(&[&["egress", "grant", "a", &at, "--commands", "tunnel", "--yes"], more].concat()).ok();
}

/// Writes the certificate of a server into the workspace.
fn trust(host: &TestHost, site: &TlsSite) {
    let text = STANDARD.encode(&site.certificate);
    host.say("a", &format!("run echo {text} | base64 -d > ca.pem"));
}

/// Returns a command that asks the server for its page, in a tunnel.
fn curl(site: &TlsSite, more: &str) -> String {
    needs("curl");
    format!("CURL_CA_BUNDLE=ca.pem curl --silent --show-error {more} https://localhost:{}/page", site.port)
}

#[test]
fn command_makes_its_own_tls_connection_in_a_tunnel() {
    let (site, host) = host_with(&[]);
    let listed = host.ctl(&["egress", "list"]).ok().stdout;
    assert!(listed.contains("tunnel") && listed.contains("not limited"), "{listed}");
    trust(&host, &site);
    let said = online(&host, &curl(&site, ""));
    assert!(said.contains(PAGE) && said.contains("[exit code 0]"), "{said}");
    assert!(site.requests()[0].starts_with("GET /page HTTP/1.1"), "{:?}", site.requests());
    let noted = &host.entries("call.network")[0]["data"];
    assert_eq!((noted["requests"].as_u64(), noted["tunnels"].as_u64()), (Some(1), Some(1)), "{noted}");
    assert_eq!(noted["hosts"], format!("localhost:{}", site.port), "{noted}");
    assert!(noted["sent_bytes"].as_u64() > Some(200) && noted["received_bytes"].as_u64() > Some(200), "{noted}");
    // The command of the same agent without a network has neither the tunnel nor the variable.
    let said = host.say("a", "run env");
    assert!(!said.contains("https_proxy"), "{said}");
    // Without another file, programs trust the certificates of the machine, and cannot change them.
    let said = online(&host, "grep -c BEGIN $SSL_CERT_FILE; touch $SSL_CERT_FILE.new; env");
    let has_roots = std::path::Path::new("/etc/ssl/certs/ca-certificates.crt").is_file();
    assert_eq!(said.contains("CURL_CA_BUNDLE=/certificates/") && said.contains("Read-only"), has_roots, "{said}");
    assert!(said.contains("https_proxy=http://127.0.0.1:8129"), "{said}");
    // The certificate decides for the command, and the host does not.
    let said = online(&host, &curl(&site, "").replace("ca.pem", "none.pem"));
    assert!(!said.contains(PAGE), "{said}");
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn tunnel_used_between_permitted_calls() {
    let (site, host) = host_with(&[]);
    let to = format!("localhost:{}", site.port);
    let hello = hex(&client_hello("localhost"));
    let left_open = perl(&format!(
        r#"my $s = ask("{to}"); status($s); syswrite $s, pack("H*", "{hello}"); sysread($s, my $answer, 9999);
        if (fork == 0) {{ open STDOUT, ">", "/dev/null"; open STDERR, ">", "/dev/null"; syswrite($s, "x"), select(undef, undef, undef, 0.02) while 1 }}
        print "begun"; "#
    ));
    let said = online(&host, &left_open);
    assert!(said.contains("begun") && said.contains("[exit code 0]"), "{said}");
    assert_eq!(site.opened(), 1);
    wait_for("the end of the tunnel", || site.open() == 0);
    let left = descendants(host.pid().expect("a host"));
    assert!(!left.values().any(|name| name == "perl"), "{left:?}");
    let bytes = site.bytes();
    // Between two permitted commands there is no listener, and the next one has a new gateway.
    assert!(host.say("a", &format!("run {}", connect(8129))).contains("closed: "));
    let said = online(&host, "true");
    assert!(said.contains("[exit code 0]"), "{said}");
    assert_eq!((site.opened(), site.bytes()), (1, bytes));
}

#[test]
fn tunnel_beyond_its_grant_is_refused_by_name() {
    let (site, host) = host_with(&[]);
    let own = format!("localhost:{}", site.port);
    let hello = hex(&client_hello("localhost"));
    let asked = |tries: &[(&str, &str)]| {
        let tries: String = tries.iter().map(|(to, hex)| format!(r#"print say("{to}", "{hex}"), "\n";"#)).collect();
        online(&host, &perl(&tries))
    };
    let address = format!("127.0.0.1:{}", site.port);
    let said = asked(&[
        ("example.org:443", &hello),
        ("localhost:1", &hello),
        ("localhost:53", &hello),
        ("localhost:853", &hello),
        (&address, &hello),
        ("1.1.1.1:443", &hello),
        ("[::1]:443", &hello),
        // The host behind a user is granted; perl reads `@` as a list.
        (&format!("user\\@{own}"), &hello),
    ]);
    assert_eq!(said.matches("403\n").count(), 8, "{said}");
    assert_eq!(said.matches("egress_new_host").count(), 8, "{said}");
    assert_eq!(site.opened(), 0);
    let query = hex(b"\x00\x1d\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01");
    let said = asked(&[
        (&own, &hex(&client_hello("evil.example"))),
        (&own, &hex(&client_hello("127.0.0.1"))),
        (&own, &hex(&client_hello_with_ech("localhost"))),
        (&own, &query),
        (&own, &hex(b"GET / HTTP/1.1\r\n\r\n")),
    ]);
    // The alert `access_denied`.
    assert_eq!(said.matches("200 15030300020231\n").count(), 5, "{said}");
    for why in ["TLS for evil.example", "no server name", "an encrypted ClientHello", "not TLS"] {
        assert!(said.contains(&format!("CONNECT {own} ({why}): egress_tunnel_sni")), "{why}: {said}");
    }
    assert_eq!((site.bytes(), site.requests().len()), (0, 0), "no byte was passed on");
    let codes: Vec<_> = host.entries("call.network").iter().map(|entry| entry["data"]["codes"].clone()).collect();
    assert_eq!(codes, [json!("egress_new_host"), json!("egress_tunnel_sni")]);
}

#[test]
fn bytes_of_a_command_in_tunnels_are_bounded() {
    let (site, host) = host_with(&["--upload-bytes-max", "20000"]);
    trust(&host, &site);
    host.say("a", "run head -c 30000 /dev/zero | tr '\\0' x > large && head -c 8000 large > small");
    let said = online(&host, &curl(&site, "--data-binary @large"));
    assert!(said.contains("egress_upload") && !said.contains(PAGE), "{said}");
    assert!(site.bytes() <= 20_000, "{} bytes arrived", site.bytes());
    // Over all tunnels of a command: two fit, and a third does not. The next command begins anew.
    let three = ["a", "b", "c"].map(|_| curl(&site, "--data-binary @small")).join("; ");
    let said = online(&host, &three);
    assert_eq!((said.matches(PAGE).count(), said.matches("egress_upload").count()), (2, 1), "{said}");
    assert!(online(&host, &curl(&site, "")).contains(PAGE));
}

#[test]
fn ten_thousand_tunnels_are_bounded() {
    let (site, host) = host_with(&[]);
    let to = format!("localhost:{}", site.port);
    // A tunnel that is open has a place, and others wait for it.
    let said = online(
        &host,
        &perl(&format!(
            r#"my @all = map {{ ask("{to}") }} 1 .. 70; my ($bits, $open) = ("", 0); vec($bits, fileno $_, 1) = 1 for @all;
            while ($open < 64) {{ select(my $ready = $bits, undef, undef, undef);
              for my $s (grep {{ vec($ready, fileno $_, 1) }} @all) {{ status($s); vec($bits, fileno $s, 1) = 0; $open++ }} }}
            my $more = select(my $ready = $bits, undef, undef, 0.3); print "open $open more $more\n";
            close $_ for grep {{ !vec($bits, fileno $_, 1) }} @all; my @waiting = grep {{ fileno $_ }} @all;
            print "then ", join(" ", map {{ status($_) }} @waiting), "\n";"#
        )),
    );
    assert!(said.contains("open 64 more 0") && said.contains("then 200 200 200 200 200 200\n"), "{said}");
    wait_for("the connections at the site", || site.opened() >= 70);
    assert_eq!(site.opened(), 70);
    let said = online(
        &host,
        &perl(&format!(
            r#"my %count; for (1 .. 10000) {{ $count{{status(ask("{to}"))}}++ }} print map {{ "$_: $count{{$_}}\n" }} sort keys %count;"#
        )),
    );
    assert!(said.contains("200: 5000\n403: 5000\n") && said.contains("egress_too_much"), "{said}");
    wait_for("the connections at the site", || site.opened() >= 70 + 5000);
    assert_eq!(site.opened(), 70 + 5000);
    assert_eq!(site.bytes(), 0);
    let noted = &host.entries("call.network")[1]["data"];
    assert_eq!((&noted["requests"], &noted["tunnels"]), (&json!(10_000), &json!(5000)), "{noted}");
}

#[test]
fn credential_through_a_tunnel_is_refused() {
    let (site, host) = host_with(&[]);
    let git = GitSite::start();
    host.ctl_given("top-secret-token-1\n", &["secret", "set", "forge"]).ok();
    let at = ["egress", "grant", "a", "localhost:443", "--commands", "tunnel", "--yes"];
    for part in [["--secret", "forge"], ["--method", "GET"], ["--path", "/page"]] {
        host.ctl(&[&at[..], &part].concat()).refused("takes no methods, paths and secret: leave them out");
    }
    let two_ports = host.ctl(&[&at[..], &["--port", "444"]].concat());
    assert!(two_ports.code == 2 && two_ports.stderr.contains("two ports"), "{}", two_ports.stderr);
    let port = git.port.to_string();
    let of_git =
        ["egress", "grant", "a", "127.0.0.1", "--port", &port, "--commands", "git", "--secret", "forge", "--yes"];
    host.ctl(&of_git).ok();
    // The secret of the other grant is neither in the jail nor in the tunnel.
    trust(&host, &site);
    let said = online(&host, &format!("env; {}", curl(&site, "--verbose")));
    assert!(said.contains(PAGE) && !said.contains("top-secret"), "{said}");
    let request = site.requests().concat().to_lowercase();
    assert!(!request.contains("authorization") && !request.contains("top-secret"), "{request}");
    // The gateway sends no request to a host of tunnels.
    let said = online(&host, &format!("curl --silent http://127.0.0.1:8129/localhost:{}/page", site.port));
    assert!(said.contains("egress_new_host"), "{said}");
    assert_eq!(site.opened(), 1);
}

#[test]
fn presets_work_beside_a_tunnel() {
    let ((site, host), git, registry) = (host_with(&[]), GitSite::start(), Registry::new());
    needs("node");
    git.repository("ada/tulip.git", "tulip.txt", "red");
    registry.publish("tulip", std::path::Path::new("/workspace/script"));
    registry.publish_wheel("rose", "def main():\n    print('a rose')\n");
    let paths = |commands: &str, port: u16, paths: &[&str]| json!({ "host": "127.0.0.1", "port": port, "methods": ["GET"], "commands": commands, "paths": paths });
    let port = git.port.to_string();
    host.ctl(&["egress", "grant", "a", "127.0.0.1", "--port", &port, "--commands", "git", "--yes"]).ok();
    let said = online(&host, &format!("git clone http://127.0.0.1:{port}/ada/tulip.git && cat tulip/tulip.txt"));
    assert!(said.contains("red") && said.contains("[exit code 0]"), "{said}");
    host.change("a", "egress", &paths("npm", registry.port, &["/npm/{package}"]));
    let said = online(&host, "rm -rf tulip; npm install tulip && node node_modules/tulip/cli.js");
    assert!(said.contains("hello") && said.contains("[exit code 0]"), "{said}");
    host.change("a", "egress", &paths("pip", registry.port, &["/simple/{package}/", "/files/{file}"]));
    let install =
        "python3 -m pip install --no-cache-dir --target t rose && PYTHONPATH=t python3 -c 'import rose; rose.main()'";
    let said = online(&host, install);
    assert!(said.contains("a rose") && said.contains("[exit code 0]"), "{said}");
    assert_eq!(site.opened(), 0);
}
