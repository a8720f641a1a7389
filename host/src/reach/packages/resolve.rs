//! The exact version of a package and its programs, before people approve it.
//!
//! Builds no layer, and runs no program of a package. See `reach::packages::fetch` for the clients.

use super::client::create_common_files;
use super::error::{Error, unfit};
use super::names::{is_version_of_npm, with_range};
use super::work_dir::{FetchContext, WorkDir, discard};
use super::{fetch, pypi, refused};
use crate::reach::mcp_jail::fetcher::{Registry, Wanted};
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::seam::change::Packages;
use ironclaw_state::home::LayerOwner;
use serde_json::Value;

/// The owner of the directories of these fetches. It has no layer.
const OWNER: &str = "resolving";
/// Most programs of one package.
const PROGRAMS_MAX: usize = 64;

/// A package in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// `name@1.2.3` of npm, or `name==1.2.3` of pypi.
    pub package: String,
    /// The programs that it brings, in order.
    pub programs: Vec<String>,
}

/// Finds the newest version of a package that fits its range or tag.
///
/// # Errors
/// Refuses an invalid name, a package that the registry does not have, and a machine without the client.
pub async fn resolve(context: &FetchContext, wanted: &Wanted) -> Result<Resolved, Error> {
    let package = with_range(wanted)?;
    let names = vec![wanted.name.clone()];
    let packages = match wanted.registry {
        Registry::Npm => Packages { npm: names, ..Packages::default() },
        Registry::Pypi => Packages { pypi: names, ..Packages::default() },
    };
    if let Some(refusal) = refused(&context.config, &packages) {
        return Err(refusal.into());
    }
    let work_dir = WorkDir::clear(context, &LayerOwner::Server(OWNER.to_owned()), ChangeId::new())?;
    create_common_files(context, &work_dir)?;
    let resolved = match wanted.registry {
        Registry::Npm => newest_of_npm(context, &work_dir, &wanted.name, &package).await,
        Registry::Pypi => {
            let found = pypi::view(context, &work_dir, package).await;
            found.map(|(version, programs)| Resolved { package: format!("{}=={version}", wanted.name), programs })
        }
    };
    if let Err(error) = discard(&work_dir.path) {
        tracing::warn!(%error, "cannot remove a directory that a package was looked up in");
    }
    resolved
}

async fn newest_of_npm(
    context: &FetchContext,
    work_dir: &WorkDir,
    name: &str,
    package: &str,
) -> Result<Resolved, Error> {
    // The versions of a range come in their order.
    let version = match fetch::npm_view(context, work_dir, package, "version").await? {
        Value::String(version) => Some(version),
        Value::Array(versions) => versions.last().and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let version = version.filter(|version| is_version_of_npm(version));
    let version = version.ok_or_else(|| unfit(format!("npm has no version of {package:?}")))?;
    let package = format!("{name}@{version}");
    let mut programs: Vec<String> = match fetch::npm_view(context, work_dir, &package, "bin").await? {
        Value::Object(programs) => programs.into_iter().map(|(program, _)| program).take(PROGRAMS_MAX).collect(),
        Value::String(_) => vec![name.rsplit('/').next().unwrap_or(name).to_owned()],
        _ => Vec::new(),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    programs.retain(|program| program.bytes().all(plain));
    programs.sort();
    Ok(Resolved { package, programs })
}
