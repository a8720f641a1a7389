//! `ironctl skill lint` and `ironctl skill pack`.

use super::failure;
use crate::at::At;
use crate::failure::Error;
use crate::new_file::NewFile;
use ironclaw_skill::author::{self, Finding, Level};
use ironclaw_skill::{Package, Version};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The mode of a file that others may read.
const PUBLIC_MODE: u32 = 0o644;

/// Prints the findings. Fails if one of them is an error.
pub fn lint(at: &At, directory: &Path) -> Result<(), Error> {
    let findings = author::lint(directory).map_err(|cause| failure::about(directory, cause))?;
    at.out.json(&json!({ "findings": findings.iter().map(as_json).collect::<Vec<_>>() }))?;
    if findings.is_empty() {
        at.out.line("no findings")?;
    }
    findings.iter().try_for_each(|finding| at.out.line(finding.to_string()))?;
    refuse_errors(directory, &findings)
}

/// Returns a finding for a script.
pub fn as_json(finding: &Finding) -> Value {
    json!({ "level": finding.level.to_string(), "file": finding.file, "line": finding.line, "what": finding.what })
}

/// Fails if one of the findings is an error.
pub fn refuse_errors(directory: &Path, findings: &[Finding]) -> Result<(), Error> {
    match findings.iter().filter(|finding| finding.level == Level::Error).count() {
        0 => Ok(()),
        errors => {
            let message = format!("{}: {errors} of {} findings are errors", directory.display(), findings.len());
            Err(Error::failed("skill_findings", message).hinting("correct them, then try again"))
        }
    }
}

/// Packs a directory without errors into a file.
pub fn run(at: &At, directory: &Path, out: &Path, force: bool) -> Result<(), Error> {
    let findings = author::lint(directory).map_err(|cause| failure::about(directory, cause))?;
    findings.iter().try_for_each(|finding| at.out.remark(finding.to_string()))?;
    refuse_errors(directory, &findings)?;
    let packed = author::pack(directory).map_err(|cause| failure::about(directory, cause))?;
    let manifest = author::pack::manifest(directory).map_err(|cause| failure::about(directory, cause))?;
    refuse_other_name(out, manifest.name.as_ref(), &manifest.version)?;
    write(out, &packed, force).map_err(|error| error.hinting("--force replaces the file"))?;
    let package = Package::read_from(packed.as_slice()).map_err(|cause| failure::about(out, cause))?;
    at.out.json(&json!({
        "file": out,
        "name": package.manifest.name,
        "version": package.manifest.version,
        "bytes": package.bytes,
        "digest": package.digest,
        "files": package.manifest.files.len(),
    }))?;
    at.out.line(format!(
        "packed {} {} (files: {}): {}",
        package.manifest.name,
        package.manifest.version,
        package.manifest.files.len(),
        out.display()
    ))
}

/// Refuses a file whose name says another version or another skill: a source names packages `NAME-VERSION.skill`.
pub fn refuse_other_name(out: &Path, name: &str, version: &Version) -> Result<(), Error> {
    let own = out.file_name().map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(stem) = own.strip_suffix(".skill") else { return Ok(()) };
    let said = stem.match_indices('-').find_map(|(at, _)| Some((&stem[..at], stem[at + 1..].parse::<Version>().ok()?)));
    match said {
        Some((said, other)) if said != name || other != *version => {
            let message =
                format!("{own} is the name of version {other} of {said}, and this is version {version} of {name}");
            let hint = format!("name it {name}-{version}.skill, or give the skill another version");
            Err(Error::usage(message, hint))
        }
        _ => Ok(()),
    }
}

/// Writes a new file that its owner alone can read.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = NewFile::create(path, false)?;
    file.write(bytes)?;
    file.keep()
}

/// Writes a file that others may read.
pub fn write(path: &Path, bytes: &[u8], replaces: bool) -> Result<(), Error> {
    let mut file = NewFile::create(path, replaces)?;
    file.write(bytes)?;
    file.keep()?;
    fs::set_permissions(path, Permissions::from_mode(PUBLIC_MODE)).map_err(|cause| {
        Error::failed("skill_file", format!("cannot open {} for others", path.display())).because(cause)
    })
}
