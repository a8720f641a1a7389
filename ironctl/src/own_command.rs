//! The command line that names this program and a home, so that a printed command can be typed unchanged.
//!
//! Never prints and never runs a command. See `commands::quickstart` and `commands::service`.

use crate::home::Home;
use ironclaw_text::shell::quoted;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the name of this program, with `--home` unless the home is the default one.
pub fn own_command(home: &Home) -> String {
    let program = program(env::args_os().next().map(PathBuf::from), env::var_os("PATH").unwrap_or_default().as_ref());
    // The variable with the home may be set for this command alone, so it does not count.
    match Home::resolve(None) {
        Ok(usual) if usual.path() == home.path() => program,
        _ => format!("{program} --home {}", quoted(&home.path().to_string_lossy())),
    }
}

/// Returns the word for this program: its name if `PATH` finds it by its name, else its absolute path.
fn program(called: Option<PathBuf>, search: &Path) -> String {
    let Some(called) = called.filter(|called| called.file_name().is_some()) else { return "ironctl".to_owned() };
    let name = called.file_name().expect("checked above");
    // A name without a directory was found on PATH.
    let is_found = called.as_os_str() == name
        || on_path(search.as_os_str(), Path::new(name)).is_some_and(|found| is_same_file(&found, &called));
    let word = if is_found { PathBuf::from(name) } else { std::path::absolute(&called).unwrap_or(called) };
    quoted(&word.to_string_lossy()).into_owned()
}

/// Returns the first file of this name in the directories of a search path.
fn on_path(search: &std::ffi::OsStr, name: &Path) -> Option<PathBuf> {
    env::split_paths(search)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|found| identity(other) == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn program_is_a_path_unless_path_finds_it() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (inside, outside) = (directory.path().join("bin"), directory.path().join("target"));
        for place in [&inside, &outside] {
            fs::create_dir(place).expect("made");
            fs::write(place.join("ironctl"), "").expect("written");
        }
        let search = inside.clone();
        let word = |called: &Path| program(Some(called.to_owned()), &search);
        assert_eq!(word(Path::new("ironctl")), "ironctl", "the shell found it");
        assert_eq!(word(&inside.join("ironctl")), "ironctl");
        assert_eq!(word(&outside.join("ironctl")), outside.join("ironctl").display().to_string());
        let linked = directory.path().join("ironctl");
        symlink(inside.join("ironctl"), &linked).expect("linked");
        assert_eq!(word(&linked), "ironctl", "PATH has the same file");
        assert_eq!(program(None, &search), "ironctl");
    }
}
