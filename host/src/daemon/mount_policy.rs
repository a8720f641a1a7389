//! The files of this machine that agents may mount, and the host's own files, which they never may.
//!
//! Read once at a start: a later caller holds the record, and a disk that hangs would block the record too. See [`crate::gateway`].

use super::zone_sources;
use crate::daemon::config::Config;
use crate::reach::packages;
use crate::registry::live_settings::HostPolicy;
use crate::registry::live_settings::time::HostZone;
use ironclaw_jail as jail;
use ironclaw_jail::mount_table::{Mounts, canonical};
use ironclaw_judge::ReceiverPolicy;
use ironclaw_ledger::sink::Sink;
use ironclaw_state::home::Home;
use ironclaw_state::keys;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The mode bit that lets other users read a file.
const READ_BY_OTHERS: u32 = 0o004;

/// A file or directory of the host that no agent may read.
struct HostPath {
    what: &'static str,
    path: PathBuf,
    remedy: &'static str,
}

/// The reason that a file or directory of the host is not safe from jails with programs.
#[derive(Debug, thiserror::Error)]
pub enum Exposed {
    /// It is at or below a path that these jails show.
    #[error(
        "{what} {} is at or below {}, which agents with run_command and the clients of package managers can read: {remedy}",
        .path.display(),
        .shown.display()
    )]
    Shown {
        /// Name of the exposed item.
        what: &'static str,
        /// Path of the exposed item.
        path: PathBuf,
        shown: PathBuf,
        /// Instruction for the operator.
        remedy: &'static str,
    },
    /// The bind mounts are unknown.
    #[error(
        "cannot read the table of mounts, so the host cannot check which of its files agents can read: {source}; mount /proc, \
         or raise the limit on open files"
    )]
    Mounts { source: io::Error },
}

/// Collects the facts of this machine that changes are checked against. An allowed directory that is made later counts by its name: the
/// check of a mount follows no link.
pub(super) fn collect_host_policy(
    config: &Config,
    home: &Home,
    runtime: &Path,
    socket: &Path,
) -> Result<HostPolicy, Exposed> {
    let own: Vec<HostPath> = own(config, home).into_iter().chain(sockets(runtime, socket)).collect();
    refuse_exposed(&own, &places_of_commands(), &packages::shown())?;
    // A process that could write there would control the host at its next start. Reading is harmless.
    let programs = std::env::current_exe().ok().and_then(|me| me.parent().map(Path::to_owned));
    let units = directories::BaseDirs::new().map(|dirs| dirs.config_dir().join("systemd"));
    let sources = config.packages.apt_sources.clone();
    let private = own.into_iter().map(|own| own.path).chain([programs, units, sources].into_iter().flatten());
    let allowed = config.mounts.allow.iter();
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let allowed: Vec<_> = allowed.map(|path| (path.clone(), real(path))).collect();
    Ok(HostPolicy {
        mounts: allowed.iter().map(|(_, real)| real.clone()).collect(),
        linked: allowed.into_iter().filter(|(named, real)| named != real).collect(),
        private: private.flat_map(|path| [canonical(&path), path]).collect(),
        packages: config.packages.clone(),
        budget: config.budget.clone(),
        egress: config.egress.clone(),
        zone: HostZone::choose(&config.time, &zone_sources::read()),
        receiver: ReceiverPolicy::default(),
    })
}

/// Refuses a new home, before anything is created, if a jail with programs would show it.
pub(super) fn refuse_home(path: &Path) -> Result<(), Exposed> {
    refuse_exposed(&[home_at(path)], &places_of_commands(), &packages::shown())
}

/// Refuses a file for a master key if a jail with programs would show it.
///
/// # Errors
/// Names the file and the shown path.
pub fn refuse_key_file(path: &Path) -> Result<(), Exposed> {
    let key = HostPath { what: "the master key", path: path.to_owned(), remedy: "name a file elsewhere" };
    refuse_exposed(&[key], &places_of_commands(), &packages::shown())
}

/// Refuses to start, before a key is read, if a jail with programs shows the host's own files, the operator's home directory, or a file
/// that may hold passwords of apt.
pub(super) fn refuse_shown(config: &Config, home: &Home) -> Result<(), Exposed> {
    let (commands, clients) = (places_of_commands(), packages::shown());
    let homes = homes_of_operator().into_iter().filter(|path| is_own_directory(path)).map(|path| HostPath {
        what: "your home directory",
        path,
        remedy: "move it with `usermod --home DIRECTORY --move-home USER`, or run the host as another user",
    });
    let own: Vec<HostPath> = own(config, home).into_iter().chain(homes).collect();
    refuse_exposed(&own, &commands, &clients)?;
    // The client for apt reads its own settings on purpose.
    let closed = |path: &&PathBuf| path.metadata().is_ok_and(|found| found.mode() & READ_BY_OTHERS == 0);
    let sources = config.packages.apt_sources.as_ref().filter(closed).map(|path| HostPath {
        what: "packages.apt_sources",
        path: path.clone(),
        remedy: "move the file elsewhere and name it there in config.toml, or make it readable for all users",
    });
    refuse_exposed(sources.as_slice(), &commands, &[])
}

fn places_of_commands() -> Vec<PathBuf> {
    jail::system::SHOWN.iter().map(PathBuf::from).collect()
}

fn home_at(path: &Path) -> HostPath {
    HostPath {
        what: "the home",
        path: path.to_owned(),
        remedy: "move it to a directory elsewhere and name that with --home",
    }
}

/// Returns the host's own directories and files, each with the remedy if a jail shows it.
fn own(config: &Config, home: &Home) -> Vec<HostPath> {
    let heads = Sink::choose(&config.ledger, home).ok().and_then(|sink| sink.root().map(Path::to_owned));
    let settings = directories::ProjectDirs::from("", "", "ironclaw").map(|dirs| dirs.config_dir().to_owned());
    let named = [
        ("the directory of heads", heads, "set ledger.heads to a directory elsewhere"),
        ("the settings directory", settings, "move it elsewhere and set XDG_CONFIG_HOME to the directory above it"),
        ("the master key", config.keys.master_key_file.clone(), "move it elsewhere and set keys.master_key_file"),
        (
            "the directory of credentials",
            keys::credentials_directory(),
            "have the service manager put credentials elsewhere (systemd uses /run/credentials)",
        ),
    ];
    let named = named.into_iter().filter_map(|(what, path, remedy)| Some(HostPath { what, path: path?, remedy }));
    std::iter::once(home_at(home.path())).chain(named).collect()
}

/// Returns the sockets on which the host listens.
fn sockets(runtime: &Path, socket: &Path) -> [HostPath; 2] {
    let own = |what, path: &Path, remedy| HostPath { what, path: path.to_owned(), remedy };
    let directory = socket.parent().unwrap_or(socket);
    [
        own("the runtime directory", runtime, "set XDG_RUNTIME_DIR to a private directory elsewhere"),
        own("the directory of the API's socket", directory, "set api.socket to a path elsewhere"),
    ]
}

fn refuse_exposed(own: &[HostPath], commands: &[PathBuf], clients: &[PathBuf]) -> Result<(), Exposed> {
    refuse_exposed_by(Mounts::read(), own, commands, clients)
}

fn refuse_exposed_by(
    mounts: io::Result<Mounts>,
    own: &[HostPath],
    commands: &[PathBuf],
    clients: &[PathBuf],
) -> Result<(), Exposed> {
    let mounts = mounts.map_err(|source| Exposed::Mounts { source })?;
    for HostPath { what, path, remedy } in own {
        if let Some(shown) = commands.iter().chain(clients).find(|shown| mounts.is_within(path, shown)) {
            return Err(Exposed::Shown { what, path: path.clone(), shown: shown.clone(), remedy });
        }
    }
    Ok(())
}

/// Returns the operator's home directories: that of the environment and that of the user database.
fn homes_of_operator() -> Vec<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    let named = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
    named.into_iter().chain(user.map(|user| user.dir)).collect()
}

/// Returns true if a directory exists and belongs to this user. The home of a system user may be shared, such as /usr/sbin.
fn is_own_directory(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A home, and the paths that a jail would show.
    struct Scene {
        _directory: tempfile::TempDir,
        root: PathBuf,
        home: Home,
    }

    fn scene() -> Scene {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there");
        for made in ["usr/local", "elsewhere"] {
            fs::create_dir_all(root.join(made)).expect("made");
        }
        std::os::unix::fs::symlink(root.join("usr/local"), root.join("linked")).expect("linked");
        let home = Home::create(&root.join("home")).expect("a home");
        Scene { _directory: directory, root, home }
    }

    fn refused(own: &[HostPath], root: &Path) -> Option<(&'static str, PathBuf)> {
        match refuse_exposed(own, &[root.join("usr")], &[root.join("certificates")]) {
            Ok(()) => None,
            Err(Exposed::Shown { what, path, .. }) => Some((what, path)),
            Err(error @ Exposed::Mounts { .. }) => panic!("{error}"),
        }
    }

    #[test]
    fn table_of_mounts_that_cannot_be_read_refuses_the_start() {
        let unread = Err(io::Error::from_raw_os_error(nix::libc::EMFILE));
        let own = [home_at(Path::new("/nowhere"))];
        let refused = refuse_exposed_by(unread, &own, &places_of_commands(), &[]).expect_err("bind mounts are unknown");
        assert!(matches!(refused, Exposed::Mounts { .. }), "{refused}");
    }

    #[test]
    fn every_kind_of_own_path_below_a_shown_place_is_refused() {
        let Scene { root, home, .. } = &scene();
        let elsewhere = root.join("elsewhere");
        for shown in [root.join("usr/local/x"), root.join("linked/x"), root.join("certificates/x"), root.join("usr")] {
            let with = |spoil: fn(&mut Config, &Path)| {
                let mut config = Config::default();
                config.ledger.heads = Some(elsewhere.join("heads"));
                spoil(&mut config, &shown);
                config
            };
            let plain = with(|_, _| {});
            let socket = elsewhere.join("api.sock");
            assert_eq!(refused(&own(&plain, home), root), None);
            assert_eq!(refused(&sockets(&elsewhere, &socket), root), None);
            let heads = with(|config, path| config.ledger.heads = Some(path.to_owned()));
            let key = with(|config, path| config.keys.master_key_file = Some(path.to_owned()));
            let cases = [
                ("the runtime directory", sockets(&shown, &socket).into()),
                ("the directory of the API's socket", sockets(&elsewhere, &shown.join("api.sock")).into()),
                ("the directory of heads", own(&heads, home)),
                ("the master key", own(&key, home)),
                ("the home", vec![home_at(&shown)]),
            ];
            for (what, own) in cases {
                assert_eq!(refused(&own, root).map(|(what, _)| what), Some(what), "{}", shown.display());
            }
        }
    }

    #[test]
    fn home_below_a_shown_path_is_refused() {
        for place in ["/usr/local/x", "/etc/alternatives/x", "/etc/ssl/certs/x", "/etc/apt/keyrings/x"] {
            assert!(refuse_home(Path::new(place)).is_err(), "{place}");
        }
        for place in ["/home/bob", "/usrlocal", "/opt/ironclaw", "/etc/ironclaw"] {
            refuse_home(Path::new(place)).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
