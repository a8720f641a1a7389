//! The environment of a command that reaches the network: git, npm and pip find the granted hosts at the gateway.
//!
//! Never has a secret. See [`crate::reach::jail_network`].

use crate::reach::jail_network::address::{at_gateway, origin};
use crate::reach::jail_network::{GrantedHost, tunnel_variables};
use ironclaw_contract::seam::link::path::WORKSPACE;
use ironclaw_judge::egress::{Commands, Grant};

/// Returns the variables of a command.
pub(super) fn variables(hosts: &[GrantedHost], has_tunnels: bool) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", WORKSPACE),
        ("TMPDIR", "/tmp"),
        ("LANG", "C.UTF-8"),
        ("USER", "ironclaw"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("npm_config_audit", "false"),
        ("npm_config_fund", "false"),
        ("npm_config_update_notifier", "false"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    // Git asks the gateway in place of each granted host, whatever the host is used for.
    all.push(("GIT_CONFIG_COUNT".to_owned(), hosts.len().to_string()));
    for (n, host) in hosts.iter().enumerate() {
        all.push((format!("GIT_CONFIG_KEY_{n}"), format!("url.{}.insteadOf", at_gateway(&host.grant))));
        all.push((format!("GIT_CONFIG_VALUE_{n}"), origin(&host.grant)));
    }
    let of_use = |wanted| hosts.iter().map(|host| &host.grant).filter(move |grant| grant.commands() == Some(wanted));
    let registry = of_use(Commands::Npm).find_map(|grant| base(grant, |_| true));
    // The page of a package is a directory, and its files are not.
    let index = of_use(Commands::Pip).find_map(|grant| base(grant, |path| path.ends_with('/')));
    if has_tunnels {
        all.extend(tunnel_variables());
    }
    all.extend(registry.map(|address| ("npm_config_registry".to_owned(), address)));
    all.extend(index.map(|address| ("PIP_INDEX_URL".to_owned(), address)));
    all
}

/// Returns the address at the gateway of the directory in which the first slot of a path begins.
fn base(grant: &Grant, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let path = grant.paths().iter().map(ToString::to_string).find(|path| is_wanted(path))?;
    let fixed = path.split('{').next().unwrap_or_default();
    let directory = &fixed[..fixed.rfind('/').map_or(0, |at| at + 1)];
    Some(format!("{}{}", at_gateway(grant), directory.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::jail_network::route::tests::host;

    #[test]
    fn programs_find_their_hosts_at_the_gateway() {
        let hosts = [
            host("github.com", Commands::Git, &["/a/b/info/refs"]),
            host("registry.npmjs.org", Commands::Npm, &["/{package}", "/{package}/-/{file}"]),
            host("files.pythonhosted.org", Commands::Pip, &["/packages/{file}"]),
            host("pypi.org", Commands::Pip, &["/simple/{package}/"]),
        ];
        let all = variables(&hosts, false);
        let value = |name: &str| all.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        assert_eq!(value("GIT_CONFIG_COUNT"), Some("4"));
        assert_eq!(value("GIT_CONFIG_KEY_0"), Some("url.http://127.0.0.1:8129/github.com/.insteadOf"));
        assert_eq!(value("GIT_CONFIG_VALUE_0"), Some("https://github.com/"));
        assert_eq!(value("npm_config_registry"), Some("http://127.0.0.1:8129/registry.npmjs.org/"));
        assert_eq!(value("PIP_INDEX_URL"), Some("http://127.0.0.1:8129/pypi.org/simple/"));
    }

    #[test]
    fn registry_may_be_below_a_path() {
        let all = variables(&[host("forge.example", Commands::Npm, &["/api/npm/{package}"])], false);
        let address = "http://127.0.0.1:8129/forge.example/api/npm/".to_owned();
        assert!(all.contains(&("npm_config_registry".to_owned(), address)), "{all:?}");
    }

    #[test]
    fn program_without_a_granted_host_has_no_address() {
        let all = variables(&[host("example.org", Commands::Other, &["/a"])], false);
        assert!(!all.iter().any(|(name, _)| name == "npm_config_registry" || name == "PIP_INDEX_URL"));
    }

    #[test]
    fn proxy_is_named_only_with_a_tunnel() {
        let is_proxy = |(name, _): &(String, String)| name.eq_ignore_ascii_case("https_proxy");
        assert!(!variables(&[], false).iter().any(is_proxy));
        let all = variables(&[], true);
        assert!(all.iter().any(is_proxy));
        assert!(all.contains(&("no_proxy".to_owned(), "127.0.0.1".to_owned())), "{all:?}");
    }
}
