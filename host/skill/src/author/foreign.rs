//! Takes over a skill of the public format from a directory or a tar archive.
//!
//! Never runs a script of it, and never gives it a grant but `run_command` for its scripts. Files beside `SKILL.md` move to
//! `references/`, because a package has no other place for them.

use crate::author::pack::bounded;
use crate::path::{DIRECTORY_OF_SCRIPTS, Paths, refused};
use crate::{
    Error, FrontMatter, Grants, INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX, MANIFEST, Manifest, Name, Needs,
    PACKAGE_BYTES_MAX, Version, archive, package, tree,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The tool that runs scripts.
const RUN_COMMAND: &str = "run_command";
/// Files of version control and of desktops, which are left out.
const LEFT_OUT: [&str; 5] = [".git", ".gitignore", ".gitattributes", ".DS_Store", "__pycache__"];
const GZIP: &[u8] = b"\x1f\x8b";

/// A skill that was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub name: Name,
    pub version: Version,
    /// Paths that moved, from and to.
    pub moved: Vec<(String, String)>,
    /// Paths that were left out.
    pub left_out: Vec<String>,
    /// True if `skill.toml` is new.
    pub is_new_manifest: bool,
}

/// The files by path: true for a program, and the bytes.
type Files = BTreeMap<String, (bool, Vec<u8>)>;

/// Copies a foreign skill into a new directory and writes its `skill.toml` if it has none.
///
/// # Errors
/// As [`Package::read`](crate::Package::read) for the files, and for an archive that is compressed.
pub fn import(from: &Path, into: &Path) -> Result<Imported, Error> {
    let mut left_out = Vec::new();
    let files = if from.is_dir() { from_directory(from, &mut left_out)? } else { from_archive(from, &mut left_out)? };
    let mut moved = Vec::new();
    let mut files = at_their_places(files, &mut moved)?;
    let text = files.get(INSTRUCTIONS).ok_or_else(|| Error::file(INSTRUCTIONS, "it is missing"))?.1.clone();
    if text.len() as u64 > INSTRUCTIONS_BYTES_MAX {
        return Err(Error::TooLarge(format!("{INSTRUCTIONS} has more than {INSTRUCTIONS_BYTES_MAX} bytes")));
    }
    let text = package::as_text(INSTRUCTIONS, text)?;
    let (matter, _) = FrontMatter::parse(&text)?;
    let is_new_manifest = !files.contains_key(MANIFEST);
    if is_new_manifest {
        files.insert(MANIFEST.to_owned(), (false, least_manifest(&matter, &files).to_toml().into_bytes()));
    }
    let manifest = package::as_text(MANIFEST, files[MANIFEST].1.clone()).and_then(|text| Manifest::parse(&text))?;
    package::same_name(&manifest, &matter)?;
    write(into, &files)?;
    Ok(Imported { name: manifest.name, version: manifest.version, moved, left_out, is_new_manifest })
}

/// Returns a manifest with the least grants.
fn least_manifest(matter: &FrontMatter, files: &Files) -> Manifest {
    let has_scripts = files.keys().any(|path| path.starts_with(DIRECTORY_OF_SCRIPTS));
    let tools = if has_scripts { vec![RUN_COMMAND.to_owned()] } else { Vec::new() };
    let version = matter.metadata.get("version").and_then(|text| text.parse().ok());
    let version = version.filter(|version: &Version| version.build.is_empty()).unwrap_or(Version::new(0, 1, 0));
    Manifest {
        name: matter.name.clone(),
        version,
        grants: Grants { tools, ..Grants::default() },
        needs: Needs::default(),
        files: BTreeMap::new(),
    }
}

fn is_left_out(path: &str) -> bool {
    path.split('/').any(|part| LEFT_OUT.contains(&part)) || path.ends_with(".pyc")
}

fn from_directory(root: &Path, left_out: &mut Vec<String>) -> Result<Files, Error> {
    let mut files = Files::new();
    let mut total = 0;
    let mut open = vec![String::new()];
    while let Some(prefix) = open.pop() {
        let directory = root.join(&prefix);
        for entry in fs::read_dir(&directory).map_err(|error| Error::io(&directory, error))? {
            let entry = entry.map_err(|error| Error::io(&directory, error))?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| refused(&name.to_string_lossy(), "the path is not UTF-8"))?;
            let path = format!("{prefix}{name}");
            let metadata = entry.metadata().map_err(|error| Error::io(&entry.path(), error))?;
            if is_left_out(&path) {
                left_out.push(path);
            } else if metadata.is_dir() {
                check_depth(&path)?;
                open.push(format!("{path}/"));
            } else if metadata.is_file() {
                let bytes = bounded(&entry.path(), PACKAGE_BYTES_MAX)?;
                add(&mut files, &mut total, path, metadata.permissions().mode() & 0o111 != 0, bytes)?;
            } else {
                return Err(refused(&path, "it is a link, a device, a pipe or a socket"));
            }
        }
    }
    Ok(files)
}

fn check_depth(path: &str) -> Result<(), Error> {
    match path.split('/').count() > crate::path::PARTS_MAX {
        true => Err(refused(path, "the path has more than 8 parts")),
        false => Ok(()),
    }
}

fn add(files: &mut Files, total: &mut u64, path: String, is_program: bool, bytes: Vec<u8>) -> Result<(), Error> {
    *total += bytes.len() as u64;
    if *total > PACKAGE_BYTES_MAX {
        return Err(archive::too_large());
    }
    if files.len() >= crate::FILES_MAX {
        return Err(Error::TooLarge(format!("it has more than {} files", crate::FILES_MAX)));
    }
    match files.insert(path.clone(), (is_program, bytes)) {
        Some(_) => Err(refused(&path, "the path is there twice")),
        None => Ok(()),
    }
}

fn from_archive(path: &Path, left_out: &mut Vec<String>) -> Result<Files, Error> {
    let mut file = archive::open(path)?;
    let mut magic = [0; 2];
    let got = file.read(&mut magic).map_err(|error| Error::io(path, error))?;
    if magic[..got] == *GZIP || path.extension().is_some_and(|end| end == "zip" || end == "gz" || end == "xz") {
        return Err(Error::Unsigned(format!(
            "{} is compressed: unpack it first, and import its directory",
            path.display()
        )));
    }
    let again = archive::open(path)?.take(PACKAGE_BYTES_MAX);
    read_archive(again, left_out).map_err(|error| match error {
        Error::Io { source, .. } => Error::io(path, source),
        other => other,
    })
}

fn read_archive(reader: impl Read, left_out: &mut Vec<String>) -> Result<Files, Error> {
    let failed = |source| Error::Io { path: String::new(), source };
    let mut archive = tar::Archive::new(reader);
    let mut files = Files::new();
    let mut total = 0;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let raw = entry.path_bytes().into_owned();
        let path = String::from_utf8(raw)
            .map_err(|error| refused(&String::from_utf8_lossy(error.as_bytes()), "its path is not UTF-8"))?;
        let path = path.strip_prefix("./").unwrap_or(&path).trim_end_matches('/').to_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        if !kind.is_file() {
            return Err(refused(&path, "it is a link, a device, a pipe or a sparse file"));
        }
        if path.starts_with('/') || path.split('/').any(|part| matches!(part, ".." | "." | "")) {
            return Err(refused(&path, "the path leaves the package, or has an empty part"));
        }
        check_depth(&path)?;
        if is_left_out(&path) {
            left_out.push(path);
            continue;
        }
        if entry.size() > PACKAGE_BYTES_MAX - total {
            return Err(archive::too_large());
        }
        let is_program = entry.header().mode().map_err(failed)? & 0o111 != 0;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(failed)?;
        add(&mut files, &mut total, path, is_program, bytes)?;
    }
    Ok(without_top(files))
}

/// Leaves out the one directory in which most archives have all files.
fn without_top(files: Files) -> Files {
    if files.contains_key(INSTRUCTIONS) {
        return files;
    }
    let top = files.keys().next().and_then(|path| path.split_once('/')).map(|(top, _)| format!("{top}/"));
    match top {
        Some(top) if files.keys().all(|path| path.starts_with(&top)) => {
            files.into_iter().map(|(path, file)| (path[top.len()..].to_owned(), file)).collect()
        }
        _ => files,
    }
}

/// Moves each file that is beside `SKILL.md`, or in a directory that no package has, to `references/`.
fn at_their_places(files: Files, moved: &mut Vec<(String, String)>) -> Result<Files, Error> {
    let mut placed = Files::new();
    for (path, file) in files {
        let is_placed = crate::path::check(&path).is_ok();
        let to = if is_placed { path.clone() } else { format!("references/{path}") };
        if !is_placed {
            moved.push((path, to.clone()));
        }
        if placed.insert(to.clone(), file).is_some() {
            return Err(refused(&to, "the path is there twice"));
        }
    }
    let mut paths = Paths::default();
    placed.keys().try_for_each(|path| paths.add(path))?;
    Ok(placed)
}

fn write(into: &Path, files: &Files) -> Result<(), Error> {
    fs::create_dir(into).map_err(|error| Error::io(into, error))?;
    for (path, (is_program, bytes)) in files {
        let full = into.join(path);
        let directory = full.parent().expect("a file of the directory has a parent");
        fs::create_dir_all(directory).map_err(|error| Error::io(directory, error))?;
        fs::write(&full, bytes).map_err(|error| Error::io(&full, error))?;
        let mode = if *is_program { 0o755 } else { 0o644 };
        fs::set_permissions(&full, fs::Permissions::from_mode(mode)).map_err(|error| Error::io(&full, error))?;
    }
    tree::files(into).map(drop)
}
