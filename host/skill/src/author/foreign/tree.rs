//! The entries of a source: a directory, a clone or an archive, before anything of them is a skill.
//!
//! Never leaves the source: a link is read only if its target is in it. See [`super::find`].

use super::notes::Notes;
use crate::author::pack::bounded;
use crate::path::refused;
use crate::{Error, FILES_MAX, PACKAGE_BYTES_MAX, archive};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Entries of one source.
const ENTRIES_MAX: usize = 100_000;
/// Directories within directories of one source.
const DEPTH_MAX: usize = 64;
/// Links behind links that are followed.
const HOPS_MAX: usize = 8;
/// Files of version control, of desktops and of caches, which are left out.
const LEFT_OUT: [&str; 20] = [
    ".git",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".gitkeep",
    ".hg",
    ".svn",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    "__MACOSX",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".venv",
    ".idea",
    ".vscode",
    "node_modules",
    ".npmignore",
];

/// The bytes of an entry, or their place.
#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    File(PathBuf),
    /// The target, as it is written.
    Link(String),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) may_run: bool,
    pub(super) content: Content,
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) may_run: bool,
    pub(super) bytes: Vec<u8>,
}

impl File {
    /// Returns its text; `None` for other bytes.
    pub(super) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|text| !text.contains('\0'))
    }
}

pub(super) type Files = BTreeMap<String, File>;

#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) left_out: BTreeSet<String>,
    /// Entries that are neither files nor links to files, with the reason.
    pub(super) odd: BTreeMap<String, &'static str>,
}

impl Tree {
    /// Reads the names below a directory. The bytes of its files are read with [`Tree::skill`].
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::TooLarge`] for too many entries.
    pub(super) fn directory(root: &Path) -> Result<Self, Error> {
        let mut tree = Self::default();
        let mut open = vec![String::new()];
        while let Some(prefix) = open.pop() {
            let directory = root.join(&prefix);
            for entry in fs::read_dir(&directory).map_err(|error| Error::io(&directory, error))? {
                let entry = entry.map_err(|error| Error::io(&directory, error))?;
                let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
                let kind = entry.file_type().map_err(|error| Error::io(&entry.path(), error))?;
                if entry.file_name().to_str().is_none() {
                    tree.odd.insert(path, "its name is not UTF-8");
                } else if kind.is_dir() && !tree.leaves_out(&path) {
                    match path.split('/').count() < DEPTH_MAX {
                        true => open.push(format!("{path}/")),
                        false => drop(tree.odd.insert(path, "it is in too many directories")),
                    }
                } else if kind.is_file() || kind.is_symlink() {
                    let (may_run, content) = match kind.is_file() {
                        true => (runs(&entry.path())?, Content::File(entry.path())),
                        false => (false, target(&entry.path())?),
                    };
                    tree.add(path, Entry { may_run, content })?;
                } else if !kind.is_dir() {
                    tree.odd.insert(path, "it is a device, a pipe or a socket");
                }
            }
        }
        Ok(tree)
    }

    /// Adds an entry, unless it is left out.
    ///
    /// # Errors
    /// Refuses a path that is there, and too many entries.
    pub(super) fn add(&mut self, path: String, entry: Entry) -> Result<(), Error> {
        if self.leaves_out(&path) {
            return Ok(());
        }
        if self.entries.len() >= ENTRIES_MAX {
            return Err(Error::TooLarge(format!(
                "it has more than {ENTRIES_MAX} entries: name the directory of the skill"
            )));
        }
        match self.entries.insert(path.clone(), entry) {
            Some(_) => Err(refused(&path, "the path is there twice")),
            None => Ok(()),
        }
    }

    /// Returns whether a path has a part that no skill needs, and notes the path up to it.
    fn leaves_out(&mut self, path: &str) -> bool {
        let mut end = 0;
        for part in path.split('/') {
            end += part.len();
            let is_temporary = part.ends_with(".pyc") || part.starts_with("._");
            if LEFT_OUT.contains(&part) || is_temporary {
                self.left_out.insert(path[..end].to_owned());
                return true;
            }
            end += 1;
        }
        false
    }

    /// Reads the files of the skill in the directory `root`, which ends in `/` or is empty. `without` are directories of other skills.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more files or bytes than a package may have, and [`Error::Io`].
    pub(super) fn skill(&self, root: &str, without: &[String], notes: &mut Notes) -> Result<Files, Error> {
        let mut files = Files::new();
        let mut left = PACKAGE_BYTES_MAX;
        for (path, entry) in self.below(root) {
            if without.iter().any(|other| path.starts_with(other)) {
                continue;
            }
            let own = path[root.len()..].to_owned();
            if !matches!(entry.content, Content::Link(_)) {
                keep(&mut files, own, entry, &mut left)?;
                continue;
            }
            let found = self.followed(path);
            if found.is_empty() {
                notes.add(&own, None, "left out: it is a link to a place outside of what you import");
            } else {
                notes.add(&own, None, "a link: its target is copied to its place");
            }
            for (rest, target) in found {
                keep(&mut files, format!("{own}{rest}"), target, &mut left)?;
            }
        }
        for (path, why) in self.odd.iter().filter(|(path, _)| path.starts_with(root)) {
            notes.add(&path[root.len()..], None, format!("left out: {why}"));
        }
        Ok(files)
    }

    fn below(&self, prefix: &str) -> Vec<(&String, &Entry)> {
        self.entries.range(prefix.to_owned()..).take_while(|(path, _)| path.starts_with(prefix)).collect()
    }

    /// Returns the files to which a link leads: one without a rest of its path, or those of a directory.
    fn followed(&self, link: &str) -> Vec<(String, &Entry)> {
        let Some(end) = self.end_of_link(link) else { return Vec::new() };
        if let Some(entry) = self.entries.get(&end) {
            return vec![(String::new(), entry)];
        }
        let prefix = if end.is_empty() { end } else { format!("{end}/") };
        // A directory around the link would hold itself.
        if link.starts_with(&prefix) {
            return Vec::new();
        }
        let inside = self.below(&prefix).into_iter();
        let inside = inside.filter(|(_, entry)| !matches!(entry.content, Content::Link(_)));
        inside.map(|(path, entry)| (format!("/{}", &path[prefix.len()..]), entry)).collect()
    }

    /// Returns the path at which a link ends, over other links; `None` if it leaves the source.
    pub(super) fn end_of_link(&self, link: &str) -> Option<String> {
        let mut at = link.to_owned();
        for _ in 0..HOPS_MAX {
            let Some(Entry { content: Content::Link(target), .. }) = self.entries.get(&at) else { return Some(at) };
            let parent = at.rsplit_once('/').map_or("", |(parent, _)| parent);
            at = joined(parent, target).filter(|_| !target.starts_with('/'))?;
        }
        None
    }
}

/// Returns a path below a directory without `.` and `..`; `None` if it leaves the root.
pub(super) fn joined(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn keep(files: &mut Files, path: String, entry: &Entry, left: &mut u64) -> Result<(), Error> {
    let bytes = match &entry.content {
        Content::Bytes(bytes) => bytes.clone(),
        Content::File(place) => match bounded(place, *left) {
            Err(Error::TooLarge(_)) => return Err(archive::too_large()),
            read => read?,
        },
        Content::Link(_) => return Ok(()),
    };
    *left = left.checked_sub(bytes.len() as u64).ok_or_else(archive::too_large)?;
    if files.len() >= FILES_MAX {
        return Err(Error::TooLarge(format!("it has more than {FILES_MAX} files")));
    }
    files.insert(path, File { may_run: entry.may_run, bytes });
    Ok(())
}

fn runs(path: &Path) -> Result<bool, Error> {
    let mode = path.symlink_metadata().map_err(|error| Error::io(path, error))?.permissions().mode();
    Ok(mode & 0o111 != 0)
}

fn target(path: &Path) -> Result<Content, Error> {
    let target = fs::read_link(path).map_err(|error| Error::io(path, error))?;
    Ok(Content::Link(target.to_string_lossy().into_owned()))
}
