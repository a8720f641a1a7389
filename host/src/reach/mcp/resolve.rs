//! The command of a configuration file of another host, as a server of this one: a fetcher becomes exact packages and a program.
//!
//! Registers nothing, and starts no server. See [`crate::reach::mcp_jail::fetcher`] for the words of the fetchers.

use super::servers::Servers;
use crate::reach::mcp_jail::{self, Process, fetcher};
use crate::reach::packages::{self, FetchContext};
use fetcher::{Fetched, Registry};
use ironclaw_contract::seam::change::Packages;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::{Denied, Refusal};
use std::time::Duration;
use tokio::time::timeout;

/// The time for all packages of one command.
const TIME_MAX: Duration = Duration::from_secs(170);

/// A command in the form of a registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedCommand {
    pub command: Vec<String>,
    /// Its packages in exact versions.
    pub packages: Packages,
    /// The programs of the first package, if the command does not name one of them.
    pub programs: Vec<String>,
}

impl Servers {
    /// Returns a command in the form of a registration.
    ///
    /// # Errors
    /// Refuses what no server can be, a package that the registry does not have, and one whose program is not certain.
    pub async fn resolve(&self, command: Vec<String>) -> Result<ResolvedCommand, Denied> {
        let fetched = match fetcher::read(&command) {
            Some(Ok(fetched)) => fetched,
            Some(Err(why)) => {
                let refusal = Refusal::new(DenialCode::McpCommand, why);
                return Err(refusal
                    .hint("name its package with --npm or --pypi, and its program: ironctl mcp add")
                    .into());
            }
            None => {
                let process = Process { program: command.clone(), ..Process::default() };
                return match mcp_jail::refused(&process, false) {
                    Some(refusal) => Err(refusal.into()),
                    None => Ok(ResolvedCommand { command, ..ResolvedCommand::default() }),
                };
            }
        };
        let late = || {
            let message = format!("the registry did not answer within {} seconds", TIME_MAX.as_secs());
            Refusal::new(DenialCode::PackagesLate, message).hint("try again, or name exact versions: ironctl mcp add")
        };
        timeout(TIME_MAX, self.fetched(fetched)).await.map_err(|_| late())?
    }

    async fn fetched(&self, fetched: Fetched) -> Result<ResolvedCommand, Denied> {
        let _alone = self.resolving.0.lock().await;
        let context = FetchContext {
            launcher: self.jails.launcher.clone(),
            home: self.home.clone(),
            config: self.settings.now().host_policy.packages.clone(),
            identity: self.jails.identity,
        };
        let (mut packages, mut programs) = (Packages::default(), None);
        for wanted in &fetched.packages {
            let resolved = packages::resolve(&context, wanted).await.map_err(packages::Error::refusal)?;
            match wanted.registry {
                Registry::Npm => packages.npm.push(resolved.package),
                Registry::Pypi => packages.pypi.push(resolved.package),
            }
            programs.get_or_insert(resolved.programs);
        }
        let programs = programs.unwrap_or_default();
        let program = program(&fetched, &programs)?;
        let is_usual = program == fetched.usual_program();
        let command = std::iter::once(program).chain(fetched.arguments).collect();
        Ok(ResolvedCommand { command, packages, programs: if is_usual { Vec::new() } else { programs } })
    }
}

/// Returns the program of a package: the named one, the only one, or the one with the name of the package.
fn program(fetched: &Fetched, programs: &[String]) -> Result<String, Refusal> {
    let usual = fetched.usual_program();
    let name = fetched.packages.first().map(|package| package.name.clone()).unwrap_or_default();
    let bare = name.rsplit('/').next().unwrap_or_default();
    match programs {
        _ if fetched.program.is_some() => Ok(usual),
        [] => Err(Refusal::new(DenialCode::McpProgram, format!("the package {name} brings no program"))
            .hint("it may be a library; name the package that has the program")),
        [only] => Ok(only.clone()),
        several if several.contains(&usual) => Ok(usual),
        several if several.iter().any(|program| program == bare) => Ok(bare.to_owned()),
        several => {
            let several = several.join(", ");
            Err(Refusal::new(DenialCode::McpProgram, format!("the package {name} brings the programs {several}"))
                .hint("name one of them: ironctl mcp add NAME --npm or --pypi PACKAGE -- PROGRAM"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_of_a_package_is_certain_or_listed() {
        let read = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            fetcher::read(&words).expect("a fetcher").expect("read")
        };
        for (line, programs, wanted) in [
            ("npx @a/b", &["c"][..], Ok("c")),
            ("npx @a/b", &["b", "c"], Ok("b")),
            ("npx @a/b", &["c", "d"], Err("c, d")),
            ("npx @a/b", &[], Err("no program")),
            ("npx -p @a/b c", &["d"], Ok("c")),
            ("npx @modelcontextprotocol/server-x", &["mcp-server-x", "x"], Ok("mcp-server-x")),
            ("uvx b", &["b_cli"], Ok("b_cli")),
        ] {
            let programs: Vec<String> = programs.iter().map(|one| (*one).to_owned()).collect();
            match (program(&read(line), &programs), wanted) {
                (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{line}"),
                (Err(refusal), Err(words)) => assert!(refusal.message.contains(words), "{line}: {refusal:?}"),
                (found, _) => panic!("{line}: {found:?}"),
            }
        }
    }
}
