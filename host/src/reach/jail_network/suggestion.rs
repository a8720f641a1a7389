//! The next step behind a refusal of the gateway: the exact command with which an operator grants what a program asked for.
//!
//! Pure. A grant replaces the one of its host, so a command repeats what is granted already. See [`super::route`].

use super::address::name;
use super::hosts::{GrantedHost, HTTP_PORT, HTTPS_PORT};
use ironclaw_judge::egress::{Commands, Grant, GrantText, Missing};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::shell::quoted;

/// The end of the path of the first request of git for a repository.
const GIT_REFERENCES: &str = "/info/refs?service=git-upload-pack";
const GIT_PACK: &str = "/git-upload-pack";
const GIT_PUSH: &str = "/git-receive-pack";

/// Hosts that many programs ask, with the use for which `ironctl egress grant` knows their paths.
const KNOWN: [(&str, &str); 16] = [
    ("registry.npmjs.org", "npm"),
    ("registry.yarnpkg.com", "npm"),
    ("npm.jsr.io", "npm"),
    ("pypi.org", "pip"),
    ("files.pythonhosted.org", "pip"),
    ("index.crates.io", "cargo"),
    ("static.crates.io", "cargo"),
    ("proxy.golang.org", "go"),
    ("sum.golang.org", "go"),
    ("rubygems.org", "gem"),
    ("index.rubygems.org", "gem"),
    ("github.com", "git"),
    ("gitlab.com", "git"),
    ("codeberg.org", "git"),
    ("bitbucket.org", "git"),
    ("git.sr.ht", "git"),
];
/// The names with which programs introduce themselves, with their use.
const CLIENTS: [(&str, &str); 7] = [
    ("git/", "git"),
    ("npm/", "npm"),
    ("pnpm/", "npm"),
    ("yarn/", "npm"),
    ("pip/", "pip"),
    ("uv/", "pip"),
    ("poetry/", "pip"),
];

/// A host without a grant that a program asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    /// The name and version of the program, as it says; empty if it says nothing.
    pub(super) client: &'a str,
}

/// Returns the refusal of a host without a grant.
pub(super) fn no_grant(hosts: &[GrantedHost], wanted: &Wanted<'_>, agent: &str) -> Refusal {
    let granted: Vec<_> = hosts.iter().map(|host| name(&host.grant)).collect();
    let words = format!("no grant for commands has {} ({})", named(wanted.host, wanted.port), granted.join(", "));
    Refusal::new(DenialCode::EgressNewHost, words).hint(for_host(wanted, agent))
}

fn for_host(wanted: &Wanted<'_>, agent: &str) -> String {
    let host = wanted.host.trim_end_matches('.').to_ascii_lowercase();
    let known = KNOWN.iter().find(|(name, _)| *name == host);
    let usual = known.or_else(|| CLIENTS.iter().find(|(client, _)| wanted.client.starts_with(client)));
    let begin = format!("an operator can grant it: ironctl egress grant {agent} {}", named(&host, wanted.port));
    match usual {
        Some((_, of_use)) => format!("{begin} --commands {of_use}"),
        None => format!("{begin} --commands other --path PATH, with each path that it may request"),
    }
}

/// Returns the command that grants the target of a redirect, for the use of the host that redirects.
pub(super) fn for_redirect(from: &GrantedHost, host: &str, port: u16, agent: &str) -> String {
    let of_use = from.grant.commands().unwrap_or(Commands::Other);
    let client = CLIENTS.iter().find(|(_, named)| *named == of_use.name()).map_or("", |(client, _)| client);
    for_host(&Wanted { host, port, client }, agent)
}

/// Returns the command that grants a request beyond the grant of its host, and everything that this grant has.
pub(super) fn for_request(held: &Grant, missing: &Missing, agent: &str) -> String {
    let Some(wanted) = missing.proposal() else { return missing.next_step(agent) };
    let held = held.text();
    let of_use = held.commands.unwrap_or(Commands::Other);
    let mut command = format!("ironctl egress grant {agent} {}", named(&held.host, held.port.unwrap_or(HTTPS_PORT)));
    let mut add = |option: &str, value: &str| command.push_str(&format!(" {option} {value}"));
    add("--commands", of_use.name());
    both(&held.methods, &wanted.methods).for_each(|method| add("--method", method));
    let (paths, has_push) = match of_use {
        Commands::Git => repositories(&held, wanted),
        _ => (both(&held.paths, &wanted.paths).cloned().collect(), false),
    };
    paths.iter().for_each(|path| add("--path", &quoted(path)));
    held.secret.iter().for_each(|secret| add("--secret", secret));
    let bytes = held.upload_bytes_max.max(wanted.upload_bytes_max);
    bytes.into_iter().for_each(|bytes| add("--upload-bytes-max", &bytes.to_string()));
    if has_push {
        command.push_str(" --push");
    }
    format!("an operator can grant it: {command}")
}

/// Returns the granted and the wanted values, each once.
fn both<'a>(held: &'a [String], wanted: &'a [String]) -> impl Iterator<Item = &'a String> {
    held.iter().chain(wanted.iter().filter(|value| !held.contains(value)))
}

/// Returns the repositories of a grant for git, which an operator names in place of paths, and whether commits are pushed to them.
fn repositories(held: &GrantText, wanted: &GrantText) -> (Vec<String>, bool) {
    let repository =
        |path: &String| path.strip_suffix(GIT_REFERENCES).or_else(|| path.strip_suffix(GIT_PACK)).map(str::to_owned);
    let mut all: Vec<String> = Vec::new();
    for path in held.paths.iter().chain(&wanted.paths).filter_map(repository) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    (all, held.paths.iter().any(|path| path.ends_with(GIT_PUSH)))
}

/// Returns a host as an operator names it: a grant of plain http is one of https.
fn named(host: &str, port: u16) -> String {
    if matches!(port, HTTP_PORT | HTTPS_PORT) { host.to_owned() } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::super::route::tests::host;
    use super::*;

    #[test]
    fn refused_host_names_the_command_that_grants_it() {
        for (host, port, client, command) in [
            ("registry.yarnpkg.com", 443, "", "registry.yarnpkg.com --commands npm"),
            ("Files.PythonHosted.org.", 443, "curl/8", "files.pythonhosted.org --commands pip"),
            ("index.crates.io", 443, "cargo 1.90.0", "index.crates.io --commands cargo"),
            ("sum.golang.org", 443, "", "sum.golang.org --commands go"),
            ("rubygems.org", 80, "", "rubygems.org --commands gem"),
            ("forge.example", 8443, "git/2.47.3", "forge.example:8443 --commands git"),
            ("index.example", 443, "uv/0.9.1", "index.example --commands pip"),
            (
                "other.example",
                443,
                "curl/8",
                "other.example --commands other --path PATH, with each path that it may request",
            ),
        ] {
            let refusal = no_grant(&[], &Wanted { host, port, client }, "a");
            assert_eq!(refusal.code, DenialCode::EgressNewHost);
            assert_eq!(refusal.hint, format!("an operator can grant it: ironctl egress grant a {command}"));
        }
        let from = self::host("pypi.org", Commands::Pip, &["/simple/{package}/"]);
        assert!(for_redirect(&from, "cdn.example", 443, "a").ends_with("grant a cdn.example --commands pip"));
    }
}
