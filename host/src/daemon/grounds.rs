//! What of this machine is an agent's to have, and what is the host's own, by the settings and by where it runs.
//!
//! Looked up once at a start: whoever asks later holds the record, and a disk that hangs would hold it too. Next: `gateway`.

use crate::config::Config;
use crate::custody;
use crate::gateway::Grounds;
use crate::home::Home;
use crate::ledger::sink::Sink;
use std::path::{Path, PathBuf};

/// What changes are looked at beside. A directory that is not there allows nothing.
pub(super) fn look(config: &Config, home: &Home, runtime: &Path, socket: &Path) -> Grounds {
    let heads = Sink::choose(&config.ledger, home).ok().and_then(|sink| sink.directory().map(Path::to_owned));
    let settings = directories::ProjectDirs::from("", "", "ironclaw").map(|dirs| dirs.config_dir().to_owned());
    let sockets = socket.parent().map(Path::to_owned);
    // Whoever could write there would be the host at its next start.
    let programs = std::env::current_exe().ok().and_then(|me| me.parent().map(Path::to_owned));
    let units = directories::BaseDirs::new().map(|dirs| dirs.config_dir().join("systemd"));
    let private = [Some(home.path().to_owned()), Some(runtime.to_owned()), sockets, heads, settings, programs, units];
    let credentials =
        [config.keys.master_key_file.clone(), custody::credentials_directory(), config.packages.apt_sources.clone()];
    let allowed = config.mounts.allow.iter();
    let allowed: Vec<_> = allowed.filter_map(|path| Some((path.clone(), path.canonicalize().ok()?))).collect();
    Grounds {
        mounts: allowed.iter().map(|(_, real)| real.clone()).collect(),
        linked: allowed.into_iter().filter(|(named, real)| named != real).collect(),
        private: private.into_iter().chain(credentials).flatten().flat_map(|path| [canonical(&path), path]).collect(),
        packages: config.packages.clone(),
    }
}

/// A path without links, as far as there is something yet.
fn canonical(path: &Path) -> PathBuf {
    let found =
        path.ancestors().find_map(|there| Some(there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?)));
    found.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_hosts_own_is_known_by_the_name_that_a_mount_would_have() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there");
        std::fs::create_dir(root.join("real")).expect("made");
        std::os::unix::fs::symlink("real", root.join("linked")).expect("linked");
        assert_eq!(canonical(&root.join("linked")), root.join("real"));
        // Also of what is made only later.
        assert_eq!(canonical(&root.join("linked/heads/of/it")), root.join("real/heads/of/it"));
    }
}
