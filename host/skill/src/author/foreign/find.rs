//! The skills of a source, in any layout: one in its root, some in subdirectories, many in `skills/`.

use super::tree::{Content, Entry, Tree};
use crate::INSTRUCTIONS;

/// The directory of many skills, also within a skill.
const OF_MANY: &str = "skills";

/// Returns the directories of the skills of a source, each empty or ending in `/`.
///
/// A directory below a skill is a part of it, except in `skills/`.
pub(super) fn skills(tree: &Tree) -> Vec<String> {
    let mut directories: Vec<String> =
        tree.entries.keys().filter(|path| is_own(tree, path)).filter_map(|path| directory(path)).collect();
    directories.sort_by_key(|directory| (directory.matches('/').count(), directory.clone()));
    directories.dedup();
    let mut found: Vec<String> = Vec::new();
    for directory in directories {
        let is_part = found.iter().any(|outer| directory.starts_with(outer.as_str()));
        if !is_part || is_one_of_many(&directory) {
            found.push(directory);
        }
    }
    found.sort();
    found
}

/// Returns the directory of a file with instructions.
fn directory(path: &str) -> Option<String> {
    let (directory, name) = path.rsplit_once('/').map_or(("", path), |(directory, name)| (directory, name));
    let directory = if directory.is_empty() { String::new() } else { format!("{directory}/") };
    name.eq_ignore_ascii_case(INSTRUCTIONS).then_some(directory)
}

/// Returns whether instructions are no link to those of another skill, and no link that leads nowhere.
fn is_own(tree: &Tree, path: &str) -> bool {
    let Some(Entry { content: Content::Link(_), .. }) = tree.entries.get(path) else { return true };
    let end = tree.end_of_link(path);
    end.is_some_and(|end| tree.entries.contains_key(&end) && directory(&end).is_none())
}

fn is_one_of_many(directory: &str) -> bool {
    directory.trim_end_matches('/').rsplit('/').nth(1) == Some(OF_MANY)
}

/// Returns the last part of the directory of a skill; `None` for the root of the source.
pub(super) fn name(directory: &str) -> Option<&str> {
    directory.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty())
}
