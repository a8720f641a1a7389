//! The removal of a home and of the host's files outside of it.
//!
//! Removes only paths that it lists, follows no link, and never works beside a running host. A damaged home can be removed too, so it
//! opens no record. See [`super`] for the set-up.

use super::super::error::Error;
use super::super::socket_directory;
use crate::daemon::config::{self, Config};
use crate::upkeep::backup;
use ironclaw_ledger::sink::Sink;
use ironclaw_operator::{Removal, RemovalPath};
use ironclaw_state::home::{self, Home};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Lists the files of the host on this home.
///
/// # Errors
/// Refuses a directory that is no home, or that has files of other programs.
pub fn list(path: &Path) -> Result<Removal, Error> {
    let home = Home::for_removal(path)?;
    refuse_foreign_files(&home)?;
    let config = match config::load(&home) {
        Ok((config, _)) => config,
        // A wrong file names no directory that could be left out.
        Err(_) => Config::default(),
    };
    let shown = |path: &Path, what: &str| RemovalPath { path: path.display().to_string(), what: what.to_owned() };
    let (mut remove, mut keep) = (Vec::new(), Vec::new());
    match Sink::choose(&config.ledger, &home) {
        Ok(sink @ Sink::Default { .. }) => {
            remove.extend(sink.directories_for(&home).iter().map(|path| shown(path, "heads of the ledger")));
        }
        Ok(Sink::Named(path)) => keep.push(shown(&path, "the named directory of heads (ledger.heads)")),
        Ok(Sink::None(_)) | Err(_) => {}
    }
    if let Some(path) = socket_directory::for_login(&home).filter(|path| is_directory(path)) {
        remove.push(shown(&path, "sockets"));
    }
    if let Some(path) = config.api.socket.as_ref().filter(|path| is_socket(path)) {
        remove.push(shown(path, "the socket of the API (api.socket)"));
    }
    if let Some(path) =
        config.keys.master_key_file.as_ref().filter(|path| !path.starts_with(home.path()) && path.exists())
    {
        keep.push(shown(path, "the master key (keys.master_key_file)"));
    }
    keep.extend(backup::former_homes(home.path()).iter().map(|path| {
        let command = format!("the home before a restore; `ironctl --home {} uninstall`", path.display());
        shown(path, &command)
    }));
    remove.push(shown(home.path(), "the home"));
    Ok(Removal { home: home.path().display().to_string(), remove, keep })
}

/// Removes the listed files, and the home last.
///
/// # Errors
/// Refuses while a host runs. Names the first path that cannot be removed; a second call continues.
pub fn remove(path: &Path) -> Result<Removal, Error> {
    let home = Home::for_removal(path)?;
    // Held until the end: no host may start meanwhile.
    let _held = home.hold()?;
    socket_directory::remove_left(&home);
    let removal = list(path)?;
    for RemovalPath { path, .. } in &removal.remove {
        let path = Path::new(path);
        match home::remove_tree(path) {
            // A mount point stays, and a directory in one that this user may not change. Both are empty then.
            Err(_) if is_empty(path) => {}
            removed => removed.map_err(|source| home::Error::Io { path: path.to_owned(), source })?,
        }
    }
    Ok(removal)
}

/// Refuses a home that also has files of other programs, because it would be removed as a whole.
fn refuse_foreign_files(home: &Home) -> Result<(), Error> {
    let fault = |source| home::Error::Io { path: home.path().to_owned(), source };
    let mut foreign: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(home.path()).map_err(fault)? {
        let name = entry.map_err(fault)?.file_name();
        let shown = name.to_string_lossy();
        if !home::is_own(&shown) && !backup::is_left(&shown) {
            foreign.push(name.into());
        }
    }
    foreign.sort();
    match foreign.first() {
        None => Ok(()),
        Some(first) => Err(Error::Foreign { home: home.path().to_owned(), first: first.clone(), count: foreign.len() }),
    }
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_state::home::Own;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn made() -> (tempfile::TempDir, Home) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::create(&directory.path().join("home")).expect("made");
        fs::write(home.state_db(), "x").expect("written");
        (directory, home)
    }

    #[test]
    fn directory_that_is_no_home_is_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let refused = list(directory.path()).expect_err("nothing shows a home");
        assert!(matches!(refused, Error::Home(home::Error::NotInitialised(_))), "{refused}");
        assert!(remove(directory.path()).is_err() && directory.path().is_dir());
        assert!(list(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn home_with_a_file_of_others_is_refused() {
        let (_directory, home) = made();
        for own in Own::ALL.iter().map(|own| own.name()).chain(["state.db.before-v8", "state-v7"]) {
            let path = home.path().join(own);
            if !path.exists() {
                fs::write(path, "x").expect("written");
            }
        }
        list(home.path()).expect("only own files");
        let of_backups = [".state.db.backup", ".restoring.0123456789abcdef", "before-restore-1"];
        of_backups.iter().for_each(|name| fs::write(home.path().join(name), "x").expect("written"));
        list(home.path()).expect("only own files");
        fs::write(home.path().join("thesis.tex"), "x").expect("written");
        let refused = remove(home.path()).expect_err("refused");
        assert!(
            matches!(&refused, Error::Foreign { first, count: 1, .. } if first == Path::new("thesis.tex")),
            "{refused}"
        );
        assert!(home.state_db().exists());
    }

    #[test]
    fn removal_takes_read_only_directories_and_no_target_of_a_link() {
        let (directory, home) = made();
        let outside = directory.path().join("outside");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("kept"), "x").expect("written");
        symlink(&outside, home.path().join("sessions/link")).expect("linked");
        let layer = home.path().join("agents/agt_1/layers/ab/usr");
        fs::create_dir_all(&layer).expect("made");
        fs::write(layer.join("file"), "x").expect("written");
        for path in [&layer, &home.path().join("agents/agt_1/layers/ab")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o500)).expect("set");
        }
        let removal = remove(home.path()).expect("removed");
        assert_eq!(removal.remove.last().expect("the home").path, home.path().display().to_string());
        assert!(!home.path().exists() && outside.join("kept").exists());
    }

    #[test]
    fn home_before_a_restore_is_named_and_kept() {
        let (directory, home) = made();
        for name in ["home.before-restore-2", "home.before-restore-x", "other.before-restore-1"] {
            fs::create_dir(directory.path().join(name)).expect("made");
        }
        let former = directory.path().join("home.before-restore-2");
        let kept: Vec<PathBuf> =
            remove(home.path()).expect("removed").keep.iter().map(|kept| PathBuf::from(&kept.path)).collect();
        assert_eq!(kept, [former.as_path()]);
        assert!(former.is_dir() && !home.path().exists());
    }

    #[test]
    fn running_host_refuses_the_removal() {
        let (_directory, home) = made();
        let held = home.hold().expect("free");
        let refused = remove(home.path()).expect_err("refused");
        assert!(matches!(refused, Error::Home(home::Error::Running(_))), "{refused}");
        assert!(home.state_db().exists());
        drop(held);
        remove(home.path()).expect("removed");
    }
}
