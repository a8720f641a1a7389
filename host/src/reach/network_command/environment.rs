//! The environment of a command that reaches the network: each program finds the granted hosts by their own names, through the gateway.
//!
//! Never has a secret, and never an address of the gateway that a program writes into a file. See [`crate::reach::jail_network::inside`].

use crate::reach::jail_network::address::{gateway, origin};
use crate::reach::jail_network::{GrantedHost, Reach, trust};
use ironclaw_contract::seam::link::path::WORKSPACE;
use ironclaw_judge::egress::{Commands, Grant};

/// The same for every command.
const FIXED: [(&str, &str); 16] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", WORKSPACE),
    ("TMPDIR", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("USER", "ironclaw"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_SSH_VARIANT", "ssh"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("npm_config_audit", "false"),
    ("npm_config_fund", "false"),
    ("npm_config_update_notifier", "false"),
    // Node reads the variables of a proxy only with this one.
    ("NODE_USE_ENV_PROXY", "1"),
    ("NODE_OPTIONS", trust::NODE_OPTIONS),
    // Its own client of git knows neither the certificates nor the spellings of this environment.
    ("CARGO_NET_GIT_FETCH_WITH_CLI", "true"),
    // The directory of the workspace is shared with the machine, and links between file systems fail.
    ("UV_LINK_MODE", "copy"),
    ("GOTOOLCHAIN", "local"),
];
/// The names under which programs look for a proxy.
const PROXIES: [&str; 6] =
    ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"];
/// The jail itself, which no program asks the gateway for.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// The spellings of a repository by ssh, and by the protocol of git; `H` is the host. Any other gets the words of [`trust::SSH`].
const SPELLINGS: [&str; 6] = ["git@H:", "ssh://git@H/", "ssh://git@H:22/", "ssh://H/", "git+ssh://git@H/", "git://H/"];

/// Returns the variables of a command.
pub(super) fn variables(reach: &Reach) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
    FIXED.into_iter().for_each(|(name, value)| add(name, value));
    let agent = reach.command.as_ref().map_or("AGENT", |command| &command.agent);
    add("GIT_SSH_COMMAND", &format!("sh {} {agent}", trust::SSH));
    let gateway = gateway();
    PROXIES.into_iter().for_each(|name| add(name, &gateway));
    let own = directly(reach);
    ["no_proxy", "NO_PROXY"].into_iter().for_each(|name| add(name, &own));
    trust::variables().for_each(|(name, value)| add(&name, &value));
    let of_use = |wanted| {
        reach.hosts.iter().map(|host: &GrantedHost| &host.grant).filter(move |grant| grant.commands() == Some(wanted))
    };
    if let Some(address) = of_use(Commands::Npm).find_map(|grant| base(grant, |_| true)) {
        add("npm_config_registry", &address);
        add("pnpm_config_registry", &address);
        add("YARN_NPM_REGISTRY_SERVER", address.trim_end_matches('/'));
        if let Some(host) = address.strip_prefix("http://") {
            add("YARN_UNSAFE_HTTP_WHITELIST", host.split([':', '/']).next().unwrap_or_default());
        }
    }
    // The page of a package is a directory, and its files are not.
    let index = of_use(Commands::Pip).find_map(|grant| base(grant, |path| path.ends_with('/')));
    if let Some(address) = index.filter(|address| address != PYPI) {
        add("PIP_INDEX_URL", &address);
        add("UV_DEFAULT_INDEX", &address);
    }
    let spelled = of_use(Commands::Git).flat_map(|grant| {
        let base = format!("url.{}.insteadOf", origin(grant));
        SPELLINGS.map(|spelling| (base.clone(), spelling.replace('H', grant.host().as_str())))
    });
    let spelled: Vec<_> = spelled.collect();
    add("GIT_CONFIG_COUNT", &spelled.len().to_string());
    for (n, (key, value)) in spelled.into_iter().enumerate() {
        add(&format!("GIT_CONFIG_KEY_{n}"), &key);
        add(&format!("GIT_CONFIG_VALUE_{n}"), &value);
    }
    all
}

/// The index that every client of Python packages asks by itself.
const PYPI: &str = "https://pypi.org/simple/";

/// Returns the hosts that programs reach without the gateway: the jail itself, but no granted host of this machine.
fn directly(reach: &Reach) -> String {
    let granted = reach.hosts.iter().map(|host| &host.grant).chain(&reach.tunnels);
    let granted: Vec<_> = granted.map(|grant| grant.host().as_str()).collect();
    // A name in this list includes all names below it.
    let is_granted = |own: &str| {
        granted.iter().any(|name| name.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    let own: Vec<_> = OWN.into_iter().filter(|own| !is_granted(own)).collect();
    own.join(",")
}

/// Returns the address of the directory in which the first slot of a path begins.
fn base(grant: &Grant, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let path = grant.paths().iter().map(ToString::to_string).find(|path| is_wanted(path))?;
    let fixed = path.split('{').next().unwrap_or_default();
    let directory = &fixed[..fixed.rfind('/').map_or(0, |at| at + 1)];
    Some(format!("{}{}", origin(grant), directory.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::jail_network::route::tests::host;
    use ironclaw_judge::egress::Loopback;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn of(hosts: Vec<GrantedHost>) -> BTreeMap<String, String> {
        let (hosts, tunnels) = (Arc::new(hosts), Vec::new());
        let all = variables(&Reach { hosts, tunnels, loopback: Loopback::Refused, command: None });
        let count = all.len();
        let all: BTreeMap<_, _> = all.into_iter().collect();
        assert_eq!(all.len(), count, "a variable is there twice");
        all
    }

    #[test]
    fn programs_know_granted_hosts_by_their_own_names() {
        let all = of(vec![
            host("github.com", Commands::Git, &["/a/b/info/refs"]),
            host("registry.npmjs.org", Commands::Npm, &["/{package}", "/{package}/-/{file}"]),
            host("files.pythonhosted.org", Commands::Pip, &["/packages/{file}"]),
            host("pypi.org", Commands::Pip, &["/simple/{package}/"]),
        ]);
        for (name, value) in [
            ("https_proxy", "http://127.0.0.1:8129"),
            ("no_proxy", "localhost,127.0.0.1,::1"),
            ("NODE_EXTRA_CA_CERTS", "/certificates/gateway.pem"),
            ("GIT_CONFIG_COUNT", "6"),
            ("GIT_CONFIG_KEY_0", "url.https://github.com/.insteadOf"),
            ("GIT_CONFIG_VALUE_0", "git@github.com:"),
            ("npm_config_registry", "https://registry.npmjs.org/"),
            ("pnpm_config_registry", "https://registry.npmjs.org/"),
            ("YARN_NPM_REGISTRY_SERVER", "https://registry.npmjs.org"),
        ] {
            assert_eq!(all.get(name).map(String::as_str), Some(value), "{name}");
        }
        // The index of every client.
        assert!(!all.contains_key("PIP_INDEX_URL"));
        // Only a proxy has the address of the gateway.
        for (name, value) in all.iter().filter(|(name, _)| !name.to_lowercase().ends_with("_proxy")) {
            assert!(!value.contains("8129"), "{name}: {value}");
        }
    }

    #[test]
    fn registry_may_be_below_a_path() {
        let of = |commands, path| of(vec![host("forge.example", commands, &[path])]);
        let npm = of(Commands::Npm, "/api/npm/{package}");
        assert_eq!(npm["npm_config_registry"], "https://forge.example/api/npm/");
        let pip = of(Commands::Pip, "/simple/{package}/");
        assert_eq!(pip["PIP_INDEX_URL"], "https://forge.example/simple/");
        assert_eq!(pip["UV_DEFAULT_INDEX"], "https://forge.example/simple/");
    }

    #[test]
    fn program_without_a_granted_host_has_no_address() {
        let all = of(vec![host("example.org", Commands::Other, &["/a"])]);
        for name in ["npm_config_registry", "PIP_INDEX_URL", "GIT_CONFIG_KEY_0"] {
            assert!(!all.contains_key(name), "{name}");
        }
    }
}
