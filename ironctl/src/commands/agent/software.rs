//! `ironctl agent install` and `uninstall`: the packages of apt, npm and PyPI in the jail of an agent.
//!
//! Keeps the other packages of the agent, and never fetches one itself: the host does after the approval. See
//! [`crate::commands::propose`].

use crate::at::At;
use crate::client::Client;
use crate::commands::propose;
use crate::failure::Error;
use ironclaw_operator::{Agent, ChangeKind, Waiting, WaitingStatus, routes};
use serde_json::json;
use std::time::Duration;

/// Time until packages are fetched and unpacked; the host has its own bounds (`[packages]`).
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The tool that an agent needs to run a program.
const RUN_COMMAND: &str = "run_command";

/// Options of `ironctl agent install`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl agent install assistant jq ripgrep\n  ironctl agent install assistant --npm prettier\n  ironctl agent install assistant --pypi mypy==1.18.2"
)]
pub struct Install {
    #[command(flatten)]
    named: Named,
}

/// Options of `ironctl agent uninstall`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl agent uninstall assistant ripgrep")]
pub struct Uninstall {
    #[command(flatten)]
    named: Named,
}

/// The packages of a command.
#[derive(Debug, clap::Args)]
struct Named {
    /// Name or id of the agent
    agent: String,
    /// Name of a package; repeatable
    #[arg(value_name = "PACKAGE", required = true)]
    packages: Vec<String>,
    /// The names are packages of npm, as NAME or NAME@VERSION
    #[arg(long, conflicts_with = "pypi")]
    npm: bool,
    /// The names are packages of PyPI, as NAME or NAME==VERSION
    #[arg(long)]
    pypi: bool,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

impl Named {
    fn manager(&self) -> Of {
        match (self.npm, self.pypi) {
            (true, _) => Of::Npm,
            (false, true) => Of::Pypi,
            (false, false) => Of::Apt,
        }
    }
}

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Apt,
    Npm,
    Pypi,
}

impl Of {
    const ALL: [Self; 3] = [Self::Apt, Self::Npm, Self::Pypi];

    fn name(self) -> &'static str {
        match self {
            Self::Apt => "apt",
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }

    /// Returns the advice to name a package as one of this package manager.
    fn advice(self) -> &'static str {
        match self {
            Self::Apt => "leave out the option",
            Self::Npm => "--npm",
            Self::Pypi => "--pypi",
        }
    }
}

/// The names of the packages of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Installed {
    apt: Vec<String>,
    npm: Vec<String>,
    pypi: Vec<String>,
}

impl Installed {
    fn from_agent(agent: &Agent) -> Self {
        agent.packages.clone().map_or_else(Self::default, |had| Self { apt: had.apt, npm: had.npm, pypi: had.pypi })
    }

    /// Returns the packages of one package manager.
    fn names(&mut self, of: Of) -> &mut Vec<String> {
        match of {
            Of::Apt => &mut self.apt,
            Of::Npm => &mut self.npm,
            Of::Pypi => &mut self.pypi,
        }
    }

    fn add(&mut self, of: Of, packages: &[String]) {
        let names = self.names(of);
        names.extend_from_slice(packages);
        names.sort();
        names.dedup();
    }

    /// Removes packages. Returns the first one that the agent does not have.
    fn remove<'a>(&mut self, of: Of, packages: &'a [String]) -> Option<&'a String> {
        let names = self.names(of);
        for package in packages {
            let Some(index) = names.iter().position(|name| name == package) else { return Some(package) };
            names.remove(index);
        }
        None
    }
}

/// Installs packages for an agent beside those that it has. A package that it has is fetched again.
pub async fn install(at: &At, client: &Client, args: Install) -> Result<(), Error> {
    let of = args.named.manager();
    let Named { agent, packages, yes, .. } = args.named;
    let agent = client.call(routes::AGENT, [&agent]).await?;
    let mut wanted = Installed::from_agent(&agent);
    wanted.add(of, &packages);
    let changed = change(at, client, &agent, wanted, yes).await?;
    let is_applied = changed.is_some_and(|change| change.entry.status == WaitingStatus::Done);
    if is_applied && !agent.enabled_tools.iter().any(|tool| tool == RUN_COMMAND) {
        let name = &agent.name;
        at.out.remark(format!("{name} runs no programs yet: ironctl agent set {name} --add-tool {RUN_COMMAND}"))?;
    }
    Ok(())
}

/// Removes packages from an agent.
pub async fn uninstall(at: &At, client: &Client, args: Uninstall) -> Result<(), Error> {
    let of = args.named.manager();
    let Named { agent, packages, yes, .. } = args.named;
    let agent = client.call(routes::AGENT, [&agent]).await?;
    let had = Installed::from_agent(&agent);
    let mut wanted = had.clone();
    if let Some(missing) = wanted.remove(of, &packages) {
        return Err(not_installed(&agent.name, had, of, missing));
    }
    change(at, client, &agent, wanted, yes).await.map(drop)
}

/// Creates the failure for a package that the agent does not have.
fn not_installed(agent: &str, mut had: Installed, of: Of, package: &str) -> Error {
    let hint = match Of::ALL.into_iter().find(|other| had.names(*other).iter().any(|name| name == package)) {
        Some(other) => format!("it is a package of {}: {}", other.name(), other.advice()),
        None => format!("ironctl agent show {agent} lists its packages"),
    };
    let of = of.name();
    Error::failed("package_not_installed", format!("agent {agent} has no package {package} of {of}")).hinting(hint)
}

/// Submits the complete list of packages and prints the decided change.
async fn change(
    at: &At,
    client: &Client,
    agent: &Agent,
    wanted: Installed,
    yes: bool,
) -> Result<Option<Waiting>, Error> {
    let Installed { apt, npm, pypi } = wanted;
    let (id, payload) = (agent.id.to_string(), json!({ "apt": apt, "npm": npm, "pypi": pypi }));
    let submitted = propose::submit(client, ChangeKind::Packages, Some(&id), payload).await;
    let decided = propose::decide_submitted(at, client, submitted, yes, FETCH_TIMEOUT).await?;
    at.out.json(&decided)?;
    Ok(decided)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn packages_are_added_to_those_of_the_agent() {
        let mut packages = Installed { apt: names(&["ripgrep"]), npm: names(&["cowsay"]), pypi: Vec::new() };
        packages.add(Of::Apt, &names(&["jq", "ripgrep"]));
        packages.add(Of::Npm, &names(&["prettier"]));
        packages.add(Of::Pypi, &names(&["mypy"]));
        let npm = names(&["cowsay", "prettier"]);
        assert_eq!(packages, Installed { apt: names(&["jq", "ripgrep"]), npm, pypi: names(&["mypy"]) });
    }

    #[test]
    fn only_an_installed_package_is_removed() {
        let had = Installed { apt: names(&["jq", "ripgrep"]), npm: names(&["cowsay"]), pypi: Vec::new() };
        let mut packages = had.clone();
        assert_eq!(packages.remove(Of::Apt, &names(&["jq"])), None);
        assert_eq!(packages, Installed { apt: names(&["ripgrep"]), ..had.clone() });
        let cowsay = names(&["cowsay"]);
        assert_eq!(packages.remove(Of::Apt, &cowsay), Some(&cowsay[0]));
        let hint = |of, package: &str| {
            let failure = not_installed("a", had.clone(), of, package);
            failure.report().expect("reported").error.hint
        };
        assert!(hint(Of::Apt, "cowsay").contains("--npm") && hint(Of::Npm, "jq").contains("leave out the option"));
        assert!(hint(Of::Pypi, "rg").contains("agent show a"));
    }
}
