//! The uses of a granted host by commands: the paths that the clients of package registries and of git request.
//!
//! Never asks a host. The paths are those of the protocols: registries of npm, the index of Python packages (PEP 503), that of cargo
//! (RFC 2789), the proxy of Go modules (`GOPROXY`) with its checksums, and the compact index of gems.

use crate::failure::Error;
use clap::ValueEnum;
use ironclaw_operator::Commands;

/// Parts of the names of Go modules, at most.
const GO_PARTS_MAX: usize = 6;
/// The database of checksums of Go modules.
const GO_DATABASE: &str = "sum.golang.org";
/// The registry of cargo whose paths are known.
const CRATES_INDEX: &str = "index.crates.io";

/// A use, as an operator names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Use {
    Git,
    Npm,
    Pip,
    Cargo,
    Go,
    Gem,
    Other,
    Tunnel,
}

/// The use and the paths of a grant.
pub(super) struct Described {
    pub(super) paths: Vec<String>,
    pub(super) commands: Option<Commands>,
}

impl Use {
    /// Returns what a grant of this host says. For git, a given path is that of a repository.
    pub(super) fn described(self, host: &str, given: Vec<String>, push: bool) -> Result<Described, Error> {
        // The index of cargo has no fixed part in its paths, so no template can describe it.
        let is_tunnel = self == Self::Tunnel || self == Self::Cargo && host == CRATES_INDEX && given.is_empty();
        let paths = match self {
            _ if is_tunnel => given,
            Self::Git if given.is_empty() => git_paths(all(&["/{owner}/{repository}"]), push),
            Self::Git => git_paths(given, push),
            Self::Other if given.is_empty() => {
                let hint = "name each path that a command may request: --path '/files/{name}'";
                return Err(Error::usage("--commands other needs --path", hint));
            }
            _ if given.is_empty() => self.usual(host),
            _ => given,
        };
        let commands = match self {
            _ if is_tunnel => Commands::Tunnel,
            Self::Git => Commands::Git,
            Self::Npm => Commands::Npm,
            Self::Pip => Commands::Pip,
            Self::Cargo | Self::Go | Self::Gem | Self::Other | Self::Tunnel => Commands::Other,
        };
        Ok(Described { paths, commands: Some(commands) })
    }

    /// Returns the paths of packages on this host.
    fn usual(self, host: &str) -> Vec<String> {
        match self {
            Self::Npm => {
                all(&["/{package}", "/{package}/-/{file}", "/{scope}/{package}", "/{scope}/{package}/-/{file}"])
            }
            Self::Pip if host.trim_start_matches("http://").starts_with("files.") => {
                all(&["/packages/{a}/{b}/{hash}/{file}"])
            }
            // poetry asks for the metadata of a version in a form of its own.
            Self::Pip => all(&["/simple/{package}/", "/pypi/{package}/json", "/pypi/{package}/{version}/json"]),
            Self::Cargo => all(&["/crates/{crate}/{file}", "/crates/{crate}/{version}/download"]),
            Self::Go => go_paths(host),
            Self::Gem => all(&[
                "/versions",
                "/info/{gem}",
                "/gems/{file}",
                "/specs.4.8.gz",
                "/latest_specs.4.8.gz",
                "/prerelease_specs.4.8.gz",
                "/quick/Marshal.4.8/{file}",
            ]),
            Self::Git | Self::Other | Self::Tunnel => Vec::new(),
        }
    }
}

fn all(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|&path| path.to_owned()).collect()
}

fn git_paths(repositories: Vec<String>, push: bool) -> Vec<String> {
    let of_repository = |path: String| {
        let path = path.trim_end_matches('/').to_owned();
        let services = [Some("git-upload-pack"), push.then_some("git-receive-pack")].into_iter().flatten();
        services.flat_map(move |service| [format!("{path}/info/refs?service={service}"), format!("{path}/{service}")])
    };
    repositories.into_iter().flat_map(of_repository).collect()
}

/// Returns the paths of modules with names of 1 to [`GO_PARTS_MAX`] parts, and those of their checksums.
fn go_paths(host: &str) -> Vec<String> {
    let names = || (1..=GO_PARTS_MAX).map(|parts| (1..=parts).map(|part| format!("/{{m{part}}}")).collect::<String>());
    // A proxy has the database below a path.
    let is_database = host == GO_DATABASE;
    let checksums = if is_database { String::new() } else { format!("/sumdb/{GO_DATABASE}") };
    let lookups = names().map(|name| format!("{checksums}/lookup{name}"));
    let tiles = ["{n}", "{x}/{n}", "{x}/{n}/{width}", "{x}/{y}/{n}", "{x}/{y}/{n}/{width}"];
    let tiles = tiles.map(|tile| format!("{checksums}/tile/{{height}}/{{level}}/{tile}"));
    let database = ["supported", "latest"].map(|name| format!("{checksums}/{name}"));
    let modules = names().flat_map(|name| [format!("{name}/@v/{{file}}"), format!("{name}/@latest")]);
    modules.filter(|_| !is_database).chain(lookups).chain(tiles).chain(database).collect()
}
