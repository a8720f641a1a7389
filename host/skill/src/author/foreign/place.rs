//! The places of the files of a foreign skill in a package.
//!
//! Files in `scripts/`, `references/` and `assets/` stay. Programs move to `scripts/` together with all that they name, so that each
//! finds the others where it looks; other files move to `references/`. See [`super::rewrite`] for the texts that name them.

mod coupling;

use super::program::{is_code, is_document};
use super::tree::Files;
use crate::archive::Entry;
use crate::path::{self, DIRECTORY_OF_SCRIPTS, PARTS_MAX, Paths};
use crate::{INSTRUCTIONS, MANIFEST};
use std::collections::BTreeMap;

const REFERENCES: &str = "references/";
/// Characters of a part of a path that is written anew.
const PART_CHARACTERS_MAX: usize = 60;

/// Returns the new path of each file by its old one.
pub(super) fn places(files: &Files) -> BTreeMap<String, String> {
    let coupled = coupling::coupled(files);
    let mut taken = Paths::default();
    let mut places = BTreeMap::new();
    // A file that stays has the first right to its path.
    let stays = |path: &str| path::check(path).is_ok() && !is_moved_along(path, &coupled);
    let (staying, moving): (Vec<&String>, Vec<&String>) = files.keys().partition(|path| stays(path));
    for path in staying {
        places.insert(path.clone(), free(path, path, &mut taken));
    }
    for path in moving {
        let is_program = is_moved_along(path, &coupled) || is_code(path, &files[path]);
        let wanted = format!("{}{path}", if is_program { DIRECTORY_OF_SCRIPTS } else { REFERENCES });
        places.insert(path.clone(), free(&wanted, path, &mut taken));
    }
    places
}

/// Returns the first part of a path.
fn top(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Returns whether a file moves with the programs that need it. Documents move to the place of documents, unless a program names them.
fn is_moved_along(path: &str, coupled: &coupling::Coupled) -> bool {
    let is_own = [INSTRUCTIONS, MANIFEST].contains(&path);
    !is_own && coupled.tops.contains(top(path)) && (!is_document(path) || coupled.is_named(path))
}

/// Returns the wanted path in a form that a package may have, and that no other file has.
fn free(wanted: &str, from: &str, taken: &mut Paths) -> String {
    let plain = if is_possible(wanted) { wanted.to_owned() } else { plain(wanted) };
    for number in 1.. {
        let tried = if number == 1 { vec![plain.clone()] } else { numbered(&plain, number) };
        if let Some(tried) = tried.into_iter().find(|path| taken.try_add(path)) {
            return tried;
        }
        if number > crate::FILES_MAX {
            break;
        }
    }
    // `Package::read` refuses it with its name.
    from.to_owned()
}

fn is_possible(path: &str) -> bool {
    let entry = Entry { path: path.to_owned(), is_program: false, bytes: 0 };
    path::check(path).is_ok() && entry.header().is_some()
}

/// Returns a path of plain characters with few parts.
fn plain(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let part = |part: &str| -> String {
        let own: String = part.trim().chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        let skipped = own.chars().count().saturating_sub(PART_CHARACTERS_MAX);
        let own: String = own.chars().skip(skipped).collect();
        if own.trim_matches('.').is_empty() { format!("{}-", own.replace('.', "-")) } else { own }
    };
    let parts: Vec<String> = path.split(['/', '\\']).map(part).collect();
    let kept = parts.len().min(PARTS_MAX - 1);
    let mut short = parts[..kept].join("/");
    if parts.len() > kept {
        short = format!("{short}/{}", parts[kept..].join("-"));
    }
    let tail: String = short.chars().rev().take(150).collect::<Vec<_>>().into_iter().rev().collect();
    match is_possible(&short) {
        true => short,
        false => format!("{}/{}", top(path), tail.replace('/', "-")),
    }
}

/// Returns a path with a number before its ending, and one with a number behind the directory that another one may differ from by case.
fn numbered(path: &str, number: usize) -> Vec<String> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, ending) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((name, ""));
    let dot = if ending.is_empty() { "" } else { "." };
    let mut paths = vec![format!("{directory}/{stem}-{number}{dot}{ending}")];
    if let [first, second, rest @ ..] = path.split('/').collect::<Vec<_>>().as_slice()
        && !rest.is_empty()
    {
        paths.push(format!("{first}/{second}-{number}/{}", rest.join("/")));
    }
    paths
}
