//! The names of what backups and restores leave in a home and beside it.
//!
//! Opens and removes nothing. See `daemon::offline::removal`.

use super::make::COPY;
use super::staging::INSIDE;
use ironclaw_state::home::directory_of;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns whether a backup or a restore makes a file or directory of this name in a home.
pub fn is_left(name: &str) -> bool {
    name.starts_with(INSIDE) || name.starts_with(COPY) || name.starts_with(".restoring.")
}

/// Returns the directories beside a home that have its content from before a restore.
pub fn former_homes(home: &Path) -> Vec<PathBuf> {
    let name = home.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.{INSIDE}");
    let entries = fs::read_dir(directory_of(home)).into_iter().flatten().flatten();
    let is_former = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        number.is_some_and(|number| number.parse::<u32>().is_ok()) && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let mut found: Vec<PathBuf> = entries.filter(is_former).map(|entry| entry.path()).collect();
    found.sort();
    found
}
