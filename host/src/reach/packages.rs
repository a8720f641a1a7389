//! Software in an agent's jail: fetched by the machine's own clients in a jail of their own, pinned by its digest, read-only.
//!
//! Never runs a script of a package, and never keeps a file that could lead out of the layer. See `reach::packages::layer`.

pub mod browser;
mod client;
mod error;
mod fetch;
mod layer;
mod names;
mod pypi;
mod resolve;
mod shadow;
mod source;
mod unpack;
mod verified;
mod work_dir;

pub use crate::registry::live_settings::packages::Config;
pub use error::Error;
pub(crate) use fetch::ROOTS;
pub use layer::verify;
pub use resolve::{Resolved, resolve};
pub use verified::VerifiedLayers;
pub use work_dir::FetchContext;

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::seam::change::Packages;
use ironclaw_operator::DenialCode;
use ironclaw_state::failpoint;
use ironclaw_state::home::{Home, LayerOwner};
use ironclaw_store::refusal::Refusal;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use work_dir::{WorkDir, discard};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Digest of its whole content, and the name of its directory.
    pub digest: Digest,
    /// Number of files, directories and links that it holds.
    pub files: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Fetched packages, `name=version`: the requested ones and those that they need.
    pub installed: Vec<String>,
    /// Files for places outside of `/usr`, which the layer does not have: their number for each place, under the host's own name for it.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Programs of the packages of a server that have the name of a program of the machine, by their paths in the jail. A name alone starts
    /// the program of the machine.
    pub behind: Vec<String>,
}

/// Refuses names and machines that cannot work. Runs nothing.
pub fn refused(config: &Config, wanted: &Packages) -> Option<Refusal> {
    if let Some(refusal) = names::refused(wanted) {
        return Some(refusal);
    }
    let missing = |client: &Path, of: &str, remedy: &str| {
        let is_there = std::fs::metadata(client).is_ok_and(|found| found.is_file());
        let message = format!("this machine has no {} to fetch packages of {of} with", client.display());
        (!is_there).then(|| Refusal::new(DenialCode::PackagesClientMissing, message).hint(remedy))
    };
    if wanted.is_empty() {
        return None;
    }
    if let Err(refusal) = client::names_around_usr(Path::new("/")) {
        return Some(refusal);
    }
    if !wanted.apt.is_empty() {
        let apt = "apt packages need a Debian or Ubuntu machine, or packages.apt in config.toml; ask for npm packages instead";
        let found = missing(config.apt(), "apt", apt)
            .or_else(|| missing(Path::new(unpack::UNPACKER), "apt", "install the package dpkg"))
            .or_else(|| missing(Path::new(fetch::STATUS), "apt", apt));
        if found.is_some() {
            return found;
        }
    }
    let npm = || missing(config.npm(), "npm", "install the package npm, or set packages.npm in config.toml");
    let pip = || missing(config.pip(), "pypi", "install the package python3-pip, or set packages.pip in config.toml");
    let needs = |names: &[String]| !names.is_empty();
    needs(&wanted.npm).then(npm).flatten().or_else(|| needs(&wanted.pypi).then(pip).flatten())
}

/// Returns the files and directories of the machine that clients see.
pub(crate) fn shown() -> Vec<PathBuf> {
    client::shown().chain(fetch::APT_SETTINGS).chain([fetch::STATUS]).map(PathBuf::from).collect()
}

/// Fetches packages for an owner and builds their layer. Discards leftovers of an earlier call for the same change; reuses a layer with
/// the same content.
///
/// # Errors
/// Returns [`Error`]; every layer is unchanged then.
pub async fn make(
    context: &FetchContext,
    owner: &LayerOwner,
    change: ChangeId,
    wanted: &Packages,
) -> Result<Layer, Error> {
    if let Some(refusal) = refused(&context.config, wanted) {
        return Err(refusal.into());
    }
    if wanted.is_empty() {
        let message = "the change names no package, so there is no layer to build";
        return Err(Refusal::new(DenialCode::PackagesNone, message).into());
    }
    let work_dir = WorkDir::clear(context, owner, change)?;
    client::create_common_files(context, &work_dir)?;
    let made = build(context, &work_dir, owner, wanted).await;
    // On failure, the next call for this change discards it.
    if let Err(error) = discard(&work_dir.path) {
        tracing::warn!(%error, "cannot remove a directory that packages were fetched in");
    }
    made
}

async fn build(
    context: &FetchContext,
    work_dir: &WorkDir,
    owner: &LayerOwner,
    wanted: &Packages,
) -> Result<Layer, Error> {
    let mut sources = Vec::new();
    let mut installed = Vec::new();
    if !wanted.apt.is_empty() {
        let fetched = fetch::apt(context, work_dir, &wanted.apt).await?;
        sources.extend(unpack::archives(context, work_dir, &fetched).await?);
        installed.extend(fetched.into_iter().map(|archive| archive.name));
    }
    if !wanted.npm.is_empty() {
        let (source, names) = fetch::npm(context, work_dir, &wanted.npm).await?;
        sources.push(source);
        installed.extend(names);
    }
    if !wanted.pypi.is_empty() {
        let (source, names) = pypi::fetch(context, work_dir, &wanted.pypi).await?;
        sources.push(source);
        installed.extend(names);
    }
    failpoint::reach("packages.fetched");
    let (home, config, place) = (context.home.clone(), context.config.clone(), work_dir.path.join("layer"));
    let owner = owner.clone();
    let built = tokio::task::spawn_blocking(move || layer::build(&home, &config, &owner, &sources, &place)).await;
    let built = built.map_err(|error| Error::Io { path: work_dir.path.clone(), source: io::Error::other(error) })??;
    let layer::Built { digest, files, bytes, left_out, behind } = built;
    Ok(Layer { digest, files, bytes, installed, left_out, behind })
}

/// Removes unused layers and leftovers of fetching. Call it only while no fetch runs, with the layers of all owners and of the running
/// sandboxes.
pub fn sweep(home: &Home, live: &[(LayerOwner, Digest)]) {
    let owners = entries(&home.agents()).into_iter().chain(entries(&home.mcp()));
    for owner in owners {
        for left in entries(&owner.join("fetching")) {
            remove_left(&left);
        }
        for layer in entries(&owner.join("layers")) {
            if !live.iter().any(|(owner, digest)| home.layer(owner, digest) == layer) {
                remove_left(&layer);
            } else if is_of_an_earlier_version(&layer)
                && let Err(error) = layer::open_directories(&layer)
            {
                tracing::warn!(%error, path = %layer.display(), "the directories of these packages stay read-only");
            }
        }
        // Removes only empty directories.
        for directory in [owner.join("fetching"), owner.join("layers"), owner] {
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// Returns true if the directories of this layer are read-only, as earlier versions made them.
fn is_of_an_earlier_version(layer: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    layer.symlink_metadata().is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o200 == 0)
}

fn remove_left(path: &Path) {
    match discard(path) {
        Ok(()) => tracing::info!(path = %path.display(), "removed unused packages"),
        Err(error) => tracing::warn!(%error, "could not remove unused packages"),
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(apt: &[&str], npm: &[&str]) -> Packages {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Packages { apt: own(apt), npm: own(npm), ..Packages::default() }
    }

    #[test]
    fn machine_without_the_client_is_refused_with_path_and_remedy() {
        let config =
            Config { apt: Some("/usr/none/apt-get".into()), npm: Some("/usr/none/npm".into()), ..Config::default() };
        for (wanted, client) in [(wanted(&["jq"], &[]), "/usr/none/apt-get"), (wanted(&[], &["jq"]), "/usr/none/npm")] {
            let refusal = refused(&config, &wanted).expect("refused");
            assert_eq!(refusal.code, DenialCode::PackagesClientMissing);
            assert!(refusal.message.contains(client) && refusal.hint.contains("config.toml"), "{refusal:?}");
        }
        assert_eq!(
            refused(&config, &wanted(&["-x"], &[])).expect("refused").code,
            DenialCode::PackagesName,
            "names come first"
        );
        assert_eq!(refused(&config, &wanted(&[], &[])), None, "nothing needs no client");
    }
}
