//! `ironctl agent install` and `uninstall`: the packages of apt and npm in the jail of an agent.
//!
//! Keeps the other packages of the agent, and never fetches one itself: the host does after the approval. See
//! [`crate::commands::propose`].

use crate::client::Client;
use crate::commands::At;
use crate::commands::propose::{self, Wanted};
use crate::failure::Error;
use ironclaw_contract::operator::{Agent, Change, ChangeKind};
use serde_json::json;
use std::time::Duration;

/// Time until packages are fetched and unpacked; the host has its own bounds (`[packages]`).
const FETCH_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The tool that an agent needs to run a program.
const RUN_COMMAND: &str = "run_command";

/// Options of `ironctl agent install`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl agent install assistant jq ripgrep\n  ironctl agent install assistant --npm prettier"
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
    /// The names are packages of npm
    #[arg(long)]
    npm: bool,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// The names of the packages of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Installed {
    apt: Vec<String>,
    npm: Vec<String>,
}

impl Installed {
    fn of(agent: &Agent) -> Self {
        agent.packages.clone().map_or_else(Self::default, |had| Self { apt: had.apt, npm: had.npm })
    }

    /// Returns the packages of one package manager.
    fn names(&mut self, npm: bool) -> &mut Vec<String> {
        if npm { &mut self.npm } else { &mut self.apt }
    }

    fn add(&mut self, npm: bool, packages: &[String]) {
        let names = self.names(npm);
        names.extend_from_slice(packages);
        names.sort();
        names.dedup();
    }

    /// Removes packages. Returns the first one that the agent does not have.
    fn remove<'a>(&mut self, npm: bool, packages: &'a [String]) -> Option<&'a String> {
        let names = self.names(npm);
        for package in packages {
            let Some(index) = names.iter().position(|name| name == package) else { return Some(package) };
            names.remove(index);
        }
        None
    }
}

/// Installs packages for an agent beside those that it has. A package that it has is fetched again.
pub async fn install(at: &At, client: &Client, args: Install) -> Result<(), Error> {
    let Named { agent, packages, npm, yes } = args.named;
    let agent = client.agent(&agent).await?;
    let mut wanted = Installed::of(&agent);
    wanted.add(npm, &packages);
    let changed = change(at, client, &agent, wanted, yes).await?;
    let is_applied = changed.is_some_and(|change| change.status == "applied");
    if is_applied && !agent.enabled_tools.iter().any(|tool| tool == RUN_COMMAND) {
        let name = &agent.name;
        at.out.remark(format!("{name} runs no programs yet: ironctl agent set {name} --add-tool {RUN_COMMAND}"))?;
    }
    Ok(())
}

/// Removes packages from an agent.
pub async fn uninstall(at: &At, client: &Client, args: Uninstall) -> Result<(), Error> {
    let Named { agent, packages, npm, yes } = args.named;
    let agent = client.agent(&agent).await?;
    let had = Installed::of(&agent);
    let mut wanted = had.clone();
    if let Some(missing) = wanted.remove(npm, &packages) {
        return Err(not_installed(&agent.name, had, npm, missing));
    }
    change(at, client, &agent, wanted, yes).await.map(drop)
}

/// Creates the failure for a package that the agent does not have.
fn not_installed(agent: &str, mut had: Installed, npm: bool, package: &str) -> Error {
    let of = if npm { "npm" } else { "apt" };
    let hint = match had.names(!npm).iter().any(|name| name == package) {
        true if npm => "it is a package of apt: leave out --npm".to_owned(),
        true => "it is a package of npm: --npm".to_owned(),
        false => format!("ironctl agent show {agent} lists its packages"),
    };
    Error::failed("package_not_installed", format!("agent {agent} has no package {package} of {of}")).hinting(hint)
}

/// Submits the complete list of packages and prints the decided change.
async fn change(
    at: &At,
    client: &Client,
    agent: &Agent,
    wanted: Installed,
    yes: bool,
) -> Result<Option<Change>, Error> {
    let Installed { apt, npm } = wanted;
    let (id, payload) = (agent.id.to_string(), json!({ "apt": apt, "npm": npm }));
    let wanted = Wanted { kind: ChangeKind::Packages, agent: Some(&id), payload, yes, patience: FETCH_TIMEOUT };
    let decided = propose::decide(at, client, wanted).await?;
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
        let mut packages = Installed { apt: names(&["ripgrep"]), npm: names(&["cowsay"]) };
        packages.add(false, &names(&["jq", "ripgrep"]));
        packages.add(true, &names(&["prettier"]));
        assert_eq!(packages, Installed { apt: names(&["jq", "ripgrep"]), npm: names(&["cowsay", "prettier"]) });
    }

    #[test]
    fn only_an_installed_package_is_removed() {
        let had = Installed { apt: names(&["jq", "ripgrep"]), npm: names(&["cowsay"]) };
        let mut packages = had.clone();
        assert_eq!(packages.remove(false, &names(&["jq"])), None);
        assert_eq!(packages, Installed { apt: names(&["ripgrep"]), npm: names(&["cowsay"]) });
        let cowsay = names(&["cowsay"]);
        assert_eq!(packages.remove(false, &cowsay), Some(&cowsay[0]));
        let hint = |npm, package: &str| {
            let failure = not_installed("a", had.clone(), npm, package);
            failure.report().expect("reported").error.hint
        };
        assert!(hint(false, "cowsay").contains("--npm") && hint(true, "jq").contains("leave out --npm"));
        assert!(hint(true, "rg").contains("agent show a"));
    }
}
