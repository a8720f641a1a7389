//! Takes over skills of the public format from a directory, a clone, an archive or a single text.
//!
//! Never runs a program of a skill, and never asks for more than its texts show. What people write in many forms is written anew in
//! the one form that the installer reads; each change is a remark. Begin with [`import`] or [`sources`].

mod audit;
mod clean;
mod find;
mod matter;
mod needs;
mod notes;
mod place;
mod program;
mod reference;
mod rewrite;
mod split;
mod tree;
mod unpack;
mod yaml;

pub use audit::Lost;
pub use notes::Remark;
pub use rewrite::Edit;

use crate::path::Paths;
use crate::{Error, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX, MANIFEST, Manifest, Name, Version, package, tree as written};
use notes::Notes;
use reference::Layout;
use rewrite::{Rewriter, Text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tree::{Content, Entry, File, Files, Tree};

/// A path that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub from: String,
    pub to: String,
}

/// A skill that was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub name: Name,
    pub version: Version,
    pub moved: Vec<Moved>,
    /// Paths that were left out.
    pub left_out: Vec<String>,
    /// True if `skill.toml` is new.
    pub is_new_manifest: bool,
    /// Changes and omissions, besides the moved paths and the edits.
    pub remarks: Vec<Remark>,
    /// Lines with rewritten paths.
    pub edits: Vec<Edit>,
    /// Programs, wherever they are.
    pub programs: Vec<String>,
    /// References that the import broke.
    pub dead: Vec<Lost>,
    /// References that led nowhere before.
    pub absent: Vec<Lost>,
    files: Files,
}

impl Imported {
    /// Writes the skill into a new directory.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory is there or cannot be written.
    pub fn write(&self, into: &Path) -> Result<(), Error> {
        fs::create_dir(into).map_err(|error| Error::io(into, error))?;
        for (path, File { may_run, bytes }) in &self.files {
            let full = into.join(path);
            let directory = full.parent().expect("a file of the directory has a parent");
            fs::create_dir_all(directory).map_err(|error| Error::io(directory, error))?;
            fs::write(&full, bytes).map_err(|error| Error::io(&full, error))?;
            let mode = if *may_run { 0o755 } else { 0o644 };
            fs::set_permissions(&full, fs::Permissions::from_mode(mode)).map_err(|error| Error::io(&full, error))?;
        }
        written::files(into).map(drop)
    }
}

/// The skills of one directory or archive.
#[derive(Debug)]
pub struct Source {
    tree: Tree,
    skills: Vec<String>,
    /// The name of the directory or archive.
    name: String,
}

impl Source {
    /// Looks for the skills of a directory, an archive or a text.
    ///
    /// # Errors
    /// Refuses a source without `SKILL.md`, and an archive that is damaged or leaves its directory.
    pub fn open(from: &Path) -> Result<Self, Error> {
        let absolute = fs::canonicalize(from).map_err(|error| Error::io(from, error))?;
        let name_of =
            |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_text = from.is_file() && program::is_document(&name_of(from));
        if is_text && name_of(from).eq_ignore_ascii_case(INSTRUCTIONS) {
            return Self::open(absolute.parent().unwrap_or(Path::new("/")));
        }
        let tree = if from.is_dir() {
            Tree::directory(from)?
        } else if is_text {
            let mut tree = Tree::default();
            let content = Content::File(from.to_owned());
            tree.add(INSTRUCTIONS.to_owned(), Entry { may_run: false, content })?;
            tree
        } else {
            unpack::archive(from)?
        };
        let skills = find::skills(&tree);
        if skills.is_empty() {
            return Err(Error::file(INSTRUCTIONS, "it is missing: name a directory or an archive with skills"));
        }
        let name = name_of(&absolute);
        let name = if from.is_dir() { name } else { stem(&name).to_owned() };
        Ok(Self { tree, skills, name })
    }

    /// Returns the directories of its skills, each empty or ending in `/`.
    pub fn skills(&self) -> &[String] {
        &self.skills
    }

    /// Takes over one of its skills.
    ///
    /// # Errors
    /// Refuses what no form of writing explains: anchors in the front matter, texts that imitate the host, a skill that is too large.
    pub fn import(&self, directory: &str) -> Result<Imported, Error> {
        let mut notes = Notes::default();
        let inner: Vec<String> =
            self.skills.iter().filter(|other| *other != directory && other.starts_with(directory)).cloned().collect();
        let mut files = self.tree.skill(directory, &inner, &mut notes)?;
        for other in &inner {
            notes.add(&other[directory.len()..], None, "a skill of its own");
        }
        named_instructions(&mut files, &mut notes)?;
        clean::clean(&mut files, &mut notes);
        let called = find::name(directory).unwrap_or(&self.name);
        let taken = Taken::new(files, called, notes)?;
        let left_out = self.tree.left_out.iter().filter_map(|path| path.strip_prefix(directory));
        taken.finish(left_out.map(str::to_owned).collect())
    }
}

/// Copies the only skill of a source into a new directory.
///
/// # Errors
/// As [`Source::open`] and [`Source::import`]; refuses a source with several skills.
pub fn import(from: &Path, into: &Path) -> Result<Imported, Error> {
    let source = Source::open(from)?;
    let [directory] = source.skills() else {
        return Err(Error::file(INSTRUCTIONS, "there are several: name the directory of one skill"));
    };
    let imported = source.import(directory)?;
    imported.write(into)?;
    Ok(imported)
}

/// Returns the name of an archive without its endings.
fn stem(name: &str) -> &str {
    let mut stem = name;
    for ending in [".gz", ".tgz", ".tar", ".zip", ".skill", ".md", ".txt", ".markdown"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    stem
}

/// Gives the instructions their name, whatever its case.
fn named_instructions(files: &mut Files, notes: &mut Notes) -> Result<(), Error> {
    if files.contains_key(INSTRUCTIONS) {
        return Ok(());
    }
    let found = files.keys().find(|path| path.eq_ignore_ascii_case(INSTRUCTIONS)).cloned();
    let found = found.ok_or_else(|| Error::file(INSTRUCTIONS, "it is missing"))?;
    notes.add(&found, None, format!("it is called {INSTRUCTIONS}"));
    let file = files.remove(&found).expect("it was found");
    files.insert(INSTRUCTIONS.to_owned(), file);
    Ok(())
}

/// A skill between its source and its package.
struct Taken {
    files: Files,
    matter: matter::Read,
    manifest: Option<Manifest>,
    called: String,
    notes: Notes,
}

impl Taken {
    fn new(mut files: Files, called: &str, mut notes: Notes) -> Result<Self, Error> {
        let text = files[INSTRUCTIONS].bytes.clone();
        let text = package::as_text(INSTRUCTIONS, text)?;
        let matter = matter::read(&text, called, &mut notes)?;
        files.get_mut(INSTRUCTIONS).expect("it is there").bytes = matter.text.clone().into_bytes();
        let own = files.get(MANIFEST).map(|file| package::as_text(MANIFEST, file.bytes.clone())).transpose()?;
        let manifest = match own {
            Some(text) if is_of_a_package(&text) => Some(Manifest::parse(&text)?),
            Some(_) => {
                let file = files.remove(MANIFEST).expect("it was read");
                files.insert(OTHER_MANIFEST.to_owned(), file);
                notes.add(MANIFEST, None, format!("it is of another program: it is called {OTHER_MANIFEST}"));
                None
            }
            None => None,
        };
        Ok(Self { files, matter, manifest, called: called.to_owned(), notes })
    }

    /// Puts the files at their places, rewrites the paths in the texts, and writes the manifest.
    fn finish(mut self, left_out: Vec<String>) -> Result<Imported, Error> {
        let name = &self.matter.matter.name;
        let places = place::places(&self.files);
        let layout = Layout::new(name.as_ref(), vec![name.to_string(), self.called.clone()], &places);
        let rewriter = Rewriter { layout: &layout, is_foreign: self.manifest.is_none() };
        let mut edits = Vec::new();
        let mut files = Files::new();
        for (from, mut file) in std::mem::take(&mut self.files) {
            let to = places[&from].clone();
            if let Some(text) = file.text().filter(|_| program::is_document(&from)) {
                file.bytes = rewriter.rewrite(&Text { from: &from, to: &to, text }, &mut edits).into_bytes();
            }
            files.insert(to, file);
        }
        let old: BTreeMap<String, String> = places.iter().map(|(from, to)| (to.clone(), from.clone())).collect();
        let found = audit::audit(&files, &old, &layout);
        split::split(&mut files, &mut self.notes);
        let is_new_manifest = self.manifest.is_none();
        let manifest = match self.manifest {
            Some(manifest) => manifest,
            None => {
                let asked = needs::needs(&files, &mut self.notes);
                let manifest = Manifest {
                    name: name.clone(),
                    version: self.matter.version.clone(),
                    grants: asked.grants,
                    needs: asked.needs,
                    files: BTreeMap::new(),
                };
                let bytes = manifest.to_toml().into_bytes();
                files.insert(MANIFEST.to_owned(), File { may_run: false, bytes });
                // The strict reader has the last word.
                Manifest::parse(&manifest.to_toml())?
            }
        };
        check(&files, &manifest)?;
        let moved = places.iter().filter(|(from, to)| from != to);
        Ok(Imported {
            name: manifest.name,
            version: manifest.version,
            moved: moved.map(|(from, to)| Moved { from: from.clone(), to: to.clone() }).collect(),
            left_out,
            is_new_manifest,
            remarks: self.notes.into_remarks(),
            edits,
            programs: files
                .iter()
                .filter(|(path, file)| program::is_program(path, file))
                .map(|(path, _)| path.clone())
                .collect(),
            dead: found.dead,
            absent: found.absent,
            files,
        })
    }
}

/// The place of a `skill.toml` that another program reads.
const OTHER_MANIFEST: &str = "references/skill.toml";

/// Returns whether a `skill.toml` is one of this project: it has a name and a version.
fn is_of_a_package(text: &str) -> bool {
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| ["name", "version"].iter().all(|key| table.contains_key(*key)))
}

/// Checks what every package has to be, before a file is written.
fn check(files: &Files, manifest: &Manifest) -> Result<(), Error> {
    let mut paths = Paths::default();
    files.keys().try_for_each(|path| paths.add(path))?;
    let text = &files[INSTRUCTIONS].bytes;
    if text.len() as u64 > INSTRUCTIONS_BYTES_MAX {
        return Err(Error::TooLarge(format!("{INSTRUCTIONS} has more than {INSTRUCTIONS_BYTES_MAX} bytes")));
    }
    let text = package::as_text(INSTRUCTIONS, text.clone())?;
    let (matter, _) = crate::FrontMatter::parse(&text)?;
    package::same_name(manifest, &matter)
}

#[cfg(test)]
mod tests;
