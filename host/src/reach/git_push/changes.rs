//! The files that a push changes, and those that only its history has.
//!
//! Pure. Compares directories that [`super::objects`] proved, so no setting of the workspace has a say. See [`super::diff`] for the text.

use super::history::Hash;
use super::objects::{Entry, Kind, Objects};
use std::collections::{BTreeMap, BTreeSet};

/// Directories within each other.
const DEPTH_MAX: usize = 128;

/// A file before and after; at least one of the two is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) path: Vec<u8>,
    /// The path before, of a file that was only moved.
    pub(super) moved_from: Option<Vec<u8>>,
    pub(super) before: Option<Entry>,
    pub(super) after: Option<Entry>,
    /// The commit that has it, if the result of the push does not.
    pub(super) only_in: Option<Hash>,
}

/// The commits of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    /// The commit of the branch before; `None` for a new branch.
    pub(super) old: Option<Hash>,
    /// The commits that the server lacks, the newest first.
    pub(super) commits: Vec<Hash>,
}

/// The changes of a push.
#[derive(Debug)]
pub(super) struct Changes {
    /// The commit to which the result is compared; `None` for an empty directory.
    pub(super) base: Option<Hash>,
    /// The changes from this commit to the result.
    pub(super) result: Vec<Changed>,
    /// Files in commits of the push that neither this commit nor the result has.
    pub(super) history: Vec<Changed>,
}

type Files = BTreeMap<Vec<u8>, (Option<Entry>, Option<Entry>)>;

impl Changes {
    /// Finds the changes of a push.
    ///
    /// # Errors
    /// A sentence about an object that is not there.
    pub(super) fn find(objects: &Objects, range: &Range) -> Result<Self, String> {
        let new = range.commits.first().ok_or("the push has no commit")?;
        let base = match &range.old {
            Some(old) => Some(old.clone()),
            None => base_of_new(objects, range, new)?,
        };
        let before = base.as_ref().map(|base| Ok::<_, String>(&objects.commit(base)?.tree)).transpose()?;
        let result = compare(objects, before, Some(&objects.commit(new)?.tree))?;
        let history = history(objects, range, &result, before)?;
        Ok(Self { base, result: with_moves(result), history })
    }
}

/// Returns the newest commit on the line of first parents that the server has.
fn base_of_new(objects: &Objects, range: &Range, new: &Hash) -> Result<Option<Hash>, String> {
    let mut at = new.clone();
    while range.commits.contains(&at) {
        match objects.commit(&at)?.parents.first() {
            Some(parent) => at = parent.clone(),
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Returns the files that differ between two directories.
fn compare(objects: &Objects, before: Option<&Hash>, after: Option<&Hash>) -> Result<Files, String> {
    let mut files = Files::new();
    descend(objects, (before, after), &mut Vec::new(), 0, &mut files)?;
    Ok(files)
}

fn descend(
    objects: &Objects,
    sides: (Option<&Hash>, Option<&Hash>),
    path: &mut Vec<u8>,
    depth: usize,
    files: &mut Files,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("it has more than {DEPTH_MAX} directories within each other"));
    }
    if sides.0 == sides.1 {
        return Ok(());
    }
    let none = BTreeMap::new();
    let before = sides.0.map_or(Ok(&none), |hash| objects.directory(hash))?;
    let after = sides.1.map_or(Ok(&none), |hash| objects.directory(hash))?;
    let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        if old == new {
            continue;
        }
        let length = path.len();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(name);
        descend(objects, (directory(old), directory(new)), path, depth + 1, files)?;
        let (old, new) = (file(old), file(new));
        if old != new {
            files.insert(path.clone(), (old.cloned(), new.cloned()));
        }
        path.truncate(length);
    }
    Ok(())
}

fn directory(entry: Option<&Entry>) -> Option<&Hash> {
    entry.filter(|entry| entry.kind == Kind::Directory).map(|entry| &entry.hash)
}

fn file(entry: Option<&Entry>) -> Option<&Entry> {
    entry.filter(|entry| entry.kind != Kind::Directory)
}

/// Returns the changes in the order of their paths. A removed and a new file with one content are a moved file.
fn with_moves(files: Files) -> Vec<Changed> {
    let mut all: Vec<Changed> = files
        .into_iter()
        .map(|(path, (before, after))| Changed { path, moved_from: None, before, after, only_in: None })
        .collect();
    let mut removed: Vec<usize> = (0..all.len()).filter(|at| all[*at].after.is_none()).collect();
    let mut gone = BTreeSet::new();
    for at in 0..all.len() {
        let Some(new) = all[at].after.clone().filter(|_| all[at].before.is_none()) else { continue };
        let Some(place) = removed.iter().position(|from| all[*from].before.as_ref() == Some(&new)) else { continue };
        let from = removed.remove(place);
        all[at].moved_from = Some(all[from].path.clone());
        all[at].before = Some(new);
        gone.insert(from);
    }
    all.into_iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, changed)| changed).collect()
}

/// Returns the files that commits of the push introduce, and that neither the result nor the commit before it has.
fn history(objects: &Objects, range: &Range, result: &Files, base: Option<&Hash>) -> Result<Vec<Changed>, String> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for hash in &range.commits {
        for (path, (before, after)) in introduced(objects, hash)? {
            let Some(new) = after else { continue };
            let is_in_result = result.get(&path).is_some_and(|(_, after)| after.as_ref() == Some(&new));
            if is_in_result || is_in(objects, base, &path, &new) || !seen.insert((path.clone(), new.hash.clone())) {
                continue;
            }
            let only_in = Some(hash.clone());
            found.push(Changed { path, moved_from: None, before, after: Some(new), only_in });
        }
    }
    Ok(found)
}

/// Returns the files of a commit that differ from those of each commit before it.
fn introduced(objects: &Objects, hash: &Hash) -> Result<Files, String> {
    let commit = objects.commit(hash)?;
    let Some((first, others)) = commit.parents.split_first() else {
        return compare(objects, None, Some(&commit.tree));
    };
    let mut files = compare(objects, Some(&objects.commit(first)?.tree), Some(&commit.tree))?;
    for parent in others {
        let other = compare(objects, Some(&objects.commit(parent)?.tree), Some(&commit.tree))?;
        files.retain(|path, _| other.contains_key(path));
    }
    Ok(files)
}

/// Returns whether a directory has this file. An unread directory has none: the file is then shown once more.
fn is_in(objects: &Objects, directory: Option<&Hash>, path: &[u8], file: &Entry) -> bool {
    let Some(mut at) = directory else { return false };
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let Some(entry) = objects.directory(at).ok().and_then(|entries| entries.get(name)) else { return false };
        if names.peek().is_none() {
            return entry == file;
        }
        at = &entry.hash;
    }
    false
}
