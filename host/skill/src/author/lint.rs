//! Findings about a directory: the errors that pack refuses, and warnings for the author and for people who read the skill.
//!
//! Never decides about a skill, and never replaces a person who reads it.

mod text;

use crate::author::pack;
use crate::path::DIRECTORY_OF_SCRIPTS;
use crate::{DIRECTORIES, Error, FrontMatter, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX, MANIFEST, package, tree};
use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub use text::{Reference, outward_references};

/// Lines of `SKILL.md` above which a model reads too much at once.
const INSTRUCTIONS_LINES_MAX: usize = 500;
/// Bytes of a file that is read as text.
const TEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The directory cannot be packed, or a person could not see its whole text.
    Error,
    Warning,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub level: Level,
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The finding and its remedy.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}: {}:{line}: {}", self.level, self.file, self.what),
            None => write!(f, "{}: {}: {}", self.level, self.file, self.what),
        }
    }
}

/// Looks at a directory. Returns the findings, errors first.
///
/// # Errors
/// [`Error::Io`] if a file cannot be read; [`Error::TooLarge`] for too many files.
pub fn lint(directory: &Path) -> Result<Vec<Finding>, Error> {
    let (files, refused) = tree::scan(directory)?;
    let mut findings: Vec<Finding> = refused.iter().map(from_error).collect();
    structure(directory, &files, &mut findings)?;
    for path in &files {
        let Ok(bytes) = pack::bounded(&directory.join(path), TEXT_BYTES_MAX) else { continue };
        let is_script = path.starts_with(DIRECTORY_OF_SCRIPTS);
        if is_script {
            script(directory, path, &bytes, &mut findings)?;
        }
        match std::str::from_utf8(&bytes) {
            _ if opaque(&bytes).is_some() => binary(path, &bytes, &mut findings),
            Ok(text) if !text.contains('\0') => text::look(path, text, is_script, &mut findings),
            _ => binary(path, &bytes, &mut findings),
        }
    }
    for name in DIRECTORIES {
        let is_empty = !files.iter().any(|path| path.starts_with(&format!("{name}/")));
        if is_empty && directory.join(name).is_dir() {
            findings.push(warning(name, None, "it is empty: a package has no empty directory"));
        }
    }
    if findings.iter().all(|finding| finding.level != Level::Error) {
        findings.extend(pack::pack(directory).err().as_ref().map(from_error));
    }
    findings.sort();
    findings.dedup();
    Ok(findings)
}

/// Returns the paths of the files of a directory.
///
/// # Errors
/// The refusal of a path, and [`Error::Io`].
pub fn files(directory: &Path) -> Result<BTreeSet<String>, Error> {
    tree::files(directory)
}

/// Reads both files that every skill has.
fn structure(directory: &Path, files: &BTreeSet<String>, findings: &mut Vec<Finding>) -> Result<(), Error> {
    let mut manifest = None;
    if files.contains(MANIFEST) {
        match pack::manifest(directory) {
            Ok(read) => manifest = Some(read),
            Err(error) => findings.push(from_error(&error)),
        }
    } else {
        findings.push(error(MANIFEST, None, "it is missing: `ironctl skill import` writes one"));
    }
    if !files.contains(INSTRUCTIONS) {
        findings.push(error(INSTRUCTIONS, None, "it is missing"));
        return Ok(());
    }
    let text = match pack::read(directory, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX) {
        Ok(text) => text,
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => {
            findings.push(from_error(&error));
            return Ok(());
        }
    };
    if text.lines().count() > INSTRUCTIONS_LINES_MAX {
        let what = format!("it has more than {INSTRUCTIONS_LINES_MAX} lines: move details to references/");
        findings.push(warning(INSTRUCTIONS, None, &what));
    }
    match FrontMatter::parse(&text) {
        Ok((matter, body)) => {
            let same = manifest.map_or(Ok(()), |manifest| package::same_name(&manifest, &matter));
            findings.extend(same.err().as_ref().map(from_error));
            if body.trim().is_empty() {
                findings.push(warning(INSTRUCTIONS, None, "it has no instructions after its front matter"));
            }
        }
        Err(error) => findings.push(from_error(&error)),
    }
    Ok(())
}

fn script(directory: &Path, path: &str, bytes: &[u8], findings: &mut Vec<Finding>) -> Result<(), Error> {
    let full = directory.join(path);
    let mode = full.symlink_metadata().map_err(|error| Error::io(&full, error))?.permissions().mode();
    match (mode & 0o111 != 0, bytes.starts_with(b"#!")) {
        (false, true) => findings.push(warning(path, None, "it is not executable: chmod +x")),
        (true, false) if std::str::from_utf8(bytes).is_ok() => {
            findings.push(warning(path, None, "its first line names no interpreter, such as #!/bin/sh"));
        }
        _ => {}
    }
    Ok(())
}

/// The beginnings of archives and programs, which no page can show.
const OPAQUE: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "a compiled program"),
];

fn opaque(bytes: &[u8]) -> Option<&'static str> {
    let tar = (bytes.get(257..262) == Some(b"ustar")).then_some("a tar archive");
    OPAQUE.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, what)| *what).or(tar)
}

fn binary(path: &str, bytes: &[u8], findings: &mut Vec<Finding>) {
    if let Some(what) = opaque(bytes) {
        findings.push(warning(path, None, &format!("it is {what}, whose content no page shows")));
    } else if path.ends_with(".md") || path.starts_with(DIRECTORY_OF_SCRIPTS) {
        findings.push(warning(path, None, "it is not a text in UTF-8"));
    }
}

fn from_error(cause: &Error) -> Finding {
    match cause {
        Error::Manifest { file, what } => error(file, None, what),
        Error::Path { path, what } | Error::File { path, what } => error(path, None, what),
        other => error(".", None, &other.to_string()),
    }
}

fn error(file: &str, line: Option<usize>, what: &str) -> Finding {
    Finding { level: Level::Error, file: file.to_owned(), line, what: what.to_owned() }
}

fn warning(file: &str, line: Option<usize>, what: &str) -> Finding {
    Finding { level: Level::Warning, file: file.to_owned(), line, what: what.to_owned() }
}
