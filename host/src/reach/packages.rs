//! Software in an agent's jail: fetched by the machine's own clients in a jail of their own, pinned by its digest, read-only.
//!
//! Never runs a script of a package, and never keeps a file that could lead out of the layer. See `reach::packages::layer`.

mod client;
mod fetch;
mod layer;
mod names;
mod pypi;
mod shadow;
mod source;
mod unpack;
mod verified;

pub use crate::registry::live_settings::packages::Config;
pub(crate) use fetch::ROOTS;
pub use layer::verify;
pub use verified::VerifiedLayers;

use crate::store::refusal::Refusal;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::Packages;
use ironclaw_jail::Identity;
use ironclaw_jail::launcher::{self, Launcher};
use ironclaw_jail::system::Names;
use ironclaw_state::failpoint;
use ironclaw_state::home::{self, Home, LayerOwner, make_private, remove_tree};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tokio::time::Instant;

/// Names in one change; a person reads no longer list.
pub const NAMES_MAX: usize = 64;
/// Directory of the machine's programs; jails of clients only see clients in it.
pub use crate::registry::live_settings::packages::PROGRAMS;
/// Program that unpacks an archive for apt.
const UNPACKER: &str = "/usr/bin/dpkg-deb";
/// apt's list of the machine's own packages.
const STATUS: &str = "/var/lib/dpkg/status";

/// The reason that a layer was not built. The former layer of the agent is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A deliberate refusal: a bad name, a missing or failed client, or a package with content that no layer may hold.
    #[error("{0}")]
    Refused(Refusal),
    /// The client's jail could not be made.
    #[error(transparent)]
    Launch(#[from] launcher::Error),
    /// The directories of the agent cannot be used.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The system reports an error.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Converts it into a refusal for the person who asked: a breakdown is the host's fault. It names no path of the home.
    pub fn refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Launch(error) => {
                let remedy = error.remedy();
                tracing::error!(%error, "the jail of a package client could not be made");
                let message = "the jail of a package client could not be made; the host's log has the reason";
                Refusal::new(DenialCode::PackagesJail, message).hint(remedy)
            }
            Self::Home(error) => {
                let cause = match &error {
                    home::Error::Io { source, .. } => source.to_string(),
                    _ => "the directories of the agent cannot be used".to_owned(),
                };
                failed(&error, &cause)
            }
            Self::Io { ref source, .. } => failed(&self, &source.to_string()),
        }
    }
}

/// Logs a failure completely, and returns it for the person who asked, without a path.
fn failed(error: &dyn std::error::Error, cause: &str) -> Refusal {
    tracing::error!(%error, "packages could not be fetched or stored");
    let message = format!("packages could not be fetched or stored: {cause}");
    Refusal::new(DenialCode::PackagesFailed, message).hint("the host's log names the file")
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

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
    if let Err(refusal) = names_around_usr(Path::new("/")) {
        return Some(refusal);
    }
    if !wanted.apt.is_empty() {
        let apt = "apt packages need a Debian or Ubuntu machine, or packages.apt in config.toml; ask for npm packages instead";
        let found = missing(config.apt(), "apt", apt)
            .or_else(|| missing(Path::new(UNPACKER), "apt", "install the package dpkg"))
            .or_else(|| missing(Path::new(STATUS), "apt", apt));
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
    client::shown().chain(fetch::APT_SETTINGS).chain([STATUS]).map(PathBuf::from).collect()
}

/// Returns the links around `/usr`. Packages are unpacked below `/usr`, which is right only if `/bin` and the like link there.
fn names_around_usr(root: &Path) -> Result<Names, Refusal> {
    let no = |error| {
        Refusal::new(DenialCode::PackagesNotMerged, format!("packages do not fit this machine, because {error}"))
    };
    Names::read(root).map_err(|error| no(error).hint("install the package usrmerge"))
}

/// Inputs of a fetch.
#[derive(Debug, Clone)]
pub struct FetchContext {
    /// Makes the jails of the clients.
    pub launcher: Launcher,
    /// Home with the layers.
    pub home: Home,
    pub config: Config,
    /// User of the clients as the host's files see it. As root, a uid that no session has.
    pub identity: Identity,
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
        return Err(Refusal::new(
            DenialCode::PackagesNone,
            "the change names no package, so there is no layer to build",
        )
        .into());
    }
    let work_dir = WorkDir::clear(context, owner, change)?;
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
    let layer::Built { digest, files, bytes, left_out } = built;
    Ok(Layer { digest, files, bytes, installed, left_out })
}

/// The directory of one change while its packages are fetched.
struct WorkDir {
    path: PathBuf,
    /// The deadline of all clients.
    until: Instant,
}

impl WorkDir {
    /// Creates it empty.
    fn clear(context: &FetchContext, owner: &LayerOwner, change: ChangeId) -> Result<Self, Error> {
        let own = context.home.layers_of(owner);
        make_private(own.parent().expect("it is in the home"))?;
        make_private(&own)?;
        let all = own.join("fetching");
        make_private(&all)?;
        let path = all.join(change.to_string());
        discard(&path)?;
        make_private(&path)?;
        let work_dir = Self { path, until: Instant::now() + context.config.fetch_time_max() };
        make_private(&work_dir.etc())?;
        // The client's uid reads it, inside a directory that only the host can enter.
        set_mode(&work_dir.etc(), 0o755)?;
        client::create_common_files(context, &work_dir)?;
        Ok(work_dir)
    }

    /// Returns the directory that the clients read besides the machine's settings.
    fn etc(&self) -> PathBuf {
        self.path.join("etc")
    }

    /// Returns the directory that the clients write to.
    fn work(&self) -> PathBuf {
        self.path.join("work")
    }
}

/// Removes unused layers and leftovers of fetching. Call it only while no fetch runs, with the layers of all owners and of the running
/// sandboxes.
pub fn sweep(home: &Home, live: &[(LayerOwner, Digest)]) {
    let owners = entries(&home.path().join("agents")).into_iter().chain(entries(&home.mcp()));
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

/// Removes a directory tree, also if its directories are read-only or deeper than a path may be. A missing one is no error.
fn discard(path: &Path) -> Result<(), Error> {
    remove_tree(path).map_err(Error::io(path))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(Error::io(path))
}

/// Returns the refusal of a package with content that no layer may hold.
fn unfit(message: String) -> Error {
    Refusal::new(DenialCode::PackagesUnfit, message).hint("ask for another package").into()
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

    #[test]
    fn a_machine_whose_programs_are_not_all_below_usr_is_refused() {
        let root = tempfile::tempdir().expect("a temporary directory");
        std::os::unix::fs::symlink("usr/lib", root.path().join("lib")).expect("linked");
        let names = names_around_usr(root.path()).expect("merged");
        assert_eq!(names.links, [("lib".to_owned(), PathBuf::from("usr/lib"))]);
        std::os::unix::fs::symlink("opt/lib64", root.path().join("lib64")).expect("linked");
        let refusal = names_around_usr(root.path()).expect_err("refused");
        assert!(refusal.message.contains("because /lib64 leads to opt/lib64"), "{refusal}");
        std::fs::create_dir(root.path().join("bin")).expect("made");
        let refusal = names_around_usr(root.path()).expect_err("refused");
        assert_eq!(refusal.code, DenialCode::PackagesNotMerged);
        assert!(refusal.message.contains("because /bin is no link into /usr"), "{refusal}");
    }

    #[test]
    fn fetched_files_are_removed_at_any_depth() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let top = directory.path().join("agents/agt_x/fetching/chg_x");
        std::fs::create_dir_all(&top).expect("made");
        // Deeper than any path may be long: created from within, as an unpacker does.
        let made = std::process::Command::new("sh")
            .args([
                "-c",
                "for i in $(seq 1 1000); do mkdir abcdefgh && cd -P abcdefgh || exit 1; done; mkdir -m 500 shut",
            ])
            .current_dir(&top)
            .status();
        assert!(made.is_ok_and(|made| made.success()));
        discard(&top).expect("removed");
        assert!(!top.exists() && directory.path().join("agents").exists());
        discard(&top).expect("a second time is nothing");
    }
}
