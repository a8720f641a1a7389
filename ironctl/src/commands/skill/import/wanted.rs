//! The skills that the arguments of an import name: those of a directory or archive, and of archives in a directory.

use crate::failure::Error;
use ironclaw_skill::INSTRUCTIONS;
use ironclaw_skill::author::Source;
use std::fs;
use std::path::{Path, PathBuf};

/// Endings of archives that are looked at in a directory.
const ARCHIVES: [&str; 5] = [".skill", ".zip", ".tar", ".tgz", ".tar.gz"];

/// A directory or archive. Its source is absent if it cannot be read.
pub(super) struct Opened {
    place: PathBuf,
    source: Option<Source>,
}

/// One skill of a source.
pub(super) struct Wanted<'a> {
    /// Absent if the place cannot be read; an import then fails with the reason.
    pub(super) source: Option<&'a Source>,
    /// The directory or archive, and the directory in it.
    pub(super) object: PathBuf,
    pub(super) directory: &'a str,
}

/// Opens a directory or archive, and the archives in a directory without instructions of its own.
pub(super) fn open(from: &Path) -> Result<Vec<Opened>, Error> {
    let mut places = Vec::new();
    let unreadable = |cause| Error::failed("skill_file", format!("cannot read {}", from.display())).because(cause);
    if from.is_dir() && !from.join(INSTRUCTIONS).exists() {
        for entry in fs::read_dir(from).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.to_string_lossy().to_lowercase();
            if path.is_file() && ARCHIVES.iter().any(|ending| name.ends_with(ending)) {
                places.push(path);
            }
        }
        places.sort();
    }
    let opened = |place: PathBuf| Opened { source: Source::open(&place).ok(), place };
    let mut all: Vec<Opened> = places.into_iter().map(opened).collect();
    let whole = opened(from.to_owned());
    // A directory of archives alone is no source itself.
    if all.is_empty() || whole.source.is_some() {
        all.insert(0, whole);
    }
    Ok(all)
}

/// Returns the skills, or those in a directory of this name.
pub(super) fn wanted<'a>(opened: &'a [Opened], name: Option<&str>) -> Result<Vec<Wanted<'a>>, Error> {
    let mut wanted = Vec::new();
    for Opened { place, source } in opened {
        let Some(source) = source else {
            wanted.push(Wanted { source: None, object: place.clone(), directory: "" });
            continue;
        };
        for directory in source.skills() {
            let object = if directory.is_empty() { place.clone() } else { place.join(directory.trim_end_matches('/')) };
            wanted.push(Wanted { source: Some(source), object, directory });
        }
    }
    if let Some(name) = name {
        wanted.retain(|wanted| wanted.object.file_stem().is_some_and(|own| own == name));
        if wanted.is_empty() {
            let message = format!("no skill is in a directory {name}");
            return Err(Error::failed("skill_unknown", message).hinting("--check lists the skills"));
        }
    }
    Ok(wanted)
}
