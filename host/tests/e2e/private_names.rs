//! Tests of granted names that resolve to addresses of this machine and of private networks.
//!
//! The tests run again in a mount namespace with an `/etc/hosts` of their own, which needs user namespaces. See `tunnels`.

use crate::e2e::network_commands::online;
use crate::e2e::tunnels::perl;
use crate::support::host_fixture::TestHost;
use crate::support::needs::needs;
use crate::support::tls_site::TlsSite;
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Set in the process that has its own `/etc/hosts`.
const INSIDE: &str = "IRONCLAW_TEST_HOSTS";

/// Names that a resolver gives addresses which the host must not reach. `site.example` is a server of the test.
const HOSTS: &str = "127.0.0.1 localhost site.example\n\
    10.0.0.7 ten.example\n\
    169.254.169.254 metadata.example\n\
    ::1 six.example\n\
    ::ffff:127.0.0.1 mapped.example\n\
    10.0.0.7 two.example\n\
    127.0.0.1 two.example\n";

const NAMES: [&str; 6] =
    ["site.example", "ten.example", "metadata.example", "six.example", "mapped.example", "two.example"];

/// Runs a test again in a mount namespace where `/etc/hosts` is [`HOSTS`]. Returns true in the process inside.
fn has_own_hosts(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    needs("unshare");
    needs("mount");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), HOSTS).expect("written");
    // The host of a test by root is another user.
    std::fs::set_permissions(file.path(), Permissions::from_mode(0o644)).expect("own file");
    let own = std::env::current_exe().expect("a program");
    let mut command = Command::new("unshare");
    // Root of a namespace that has only root cannot make jails, so an ordinary user becomes itself again.
    let (user, again) = match nix::unistd::geteuid() {
        user if user.is_root() => ("--fork", String::new()),
        user => ("--map-root-user", format!("unshare --map-user={user} --map-group={} ", nix::unistd::getegid())),
    };
    let script = format!(r#"mount --bind "$1" /etc/hosts && exec {again}"$2" --exact "$3" --nocapture"#);
    command.args(["--mount", user, "sh", "-c", &script, "sh"]);
    command.arg(file.path()).arg(own).arg(test).env(INSIDE, "1");
    let output = command.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the test needs user namespaces and mounts in them: {said}");
    assert!(said.contains("1 passed"), "{said}");
    false
}

fn host_with(site: &TlsSite) -> TestHost {
    let mut host = TestHost::new();
    // The machine may have no certificates, and then the host makes no client.
    let file = host.home.with_file_name("authorities.pem");
    std::fs::write(&file, &site.certificate).expect("written");
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("own file");
    host.set_env("SSL_CERT_FILE", Some(file.to_str().expect("UTF-8")));
    host.up();
    host.agent("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command", "http_fetch"] }));
    for name in NAMES {
        host.change("a", "egress", &json!({ "host": name, "port": site.port, "methods": ["GET"] }));
    }
    host
}

#[test]
fn granted_name_with_a_private_address_is_not_fetched() {
    if !has_own_hosts("e2e::private_names::granted_name_with_a_private_address_is_not_fetched") {
        return;
    }
    let site = TlsSite::start();
    let host = host_with(&site);
    for name in NAMES {
        let said = host.say("a", &format!("fetch https://{name}:{}/page", site.port));
        assert!(said.contains("its address is") && said.contains("nothing was sent"), "{name}: {said}");
    }
    assert_eq!(site.opened(), 0);
}

#[test]
fn granted_name_with_a_private_address_gets_no_tunnel() {
    if !has_own_hosts("e2e::private_names::granted_name_with_a_private_address_gets_no_tunnel") {
        return;
    }
    let site = TlsSite::start();
    let host = TestHost::new().started_with("a");
    host.change("a", "enabled_tools", &json!({ "add": ["run_command"] }));
    for name in NAMES {
        let at = format!("{name}:{}", site.port);
        host.ctl(&["egress", "grant", "a", &at, "--commands", "tunnel", "--yes"]).ok();
        let said = online(&host, &perl(&format!(r#"print "response ", status(ask("{at}"))"#)));
        assert!(said.contains(&format!("refused CONNECT {at}")) && said.contains("response 403"), "{name}: {said}");
    }
    assert_eq!(site.opened(), 0);
}
