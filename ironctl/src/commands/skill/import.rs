//! `ironctl skill import`: takes over a skill of others, or the bundled one, as the operator's own.
//!
//! Shows each script and each reference to the outside first. Never runs a script.

use super::{failure, key, pack, verify};
use crate::at::At;
use crate::failure::Error;
use crate::local_file;
use ironclaw_skill::Package;
use ironclaw_skill::author::{self, bundled, foreign, lint};
use serde_json::json;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Bytes of a script that is shown.
const SCRIPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines of a script that are shown.
const SCRIPT_LINES_MAX: usize = 200;

/// The arguments of `ironctl skill import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl skill import downloads/pdf-forms\n  ironctl skill import --bundled --key work.key"
)]
pub struct Args {
    /// Directory or tar archive of the skill
    #[arg(value_name = "DIR|ARCHIVE", required_unless_present = "bundled")]
    from: Option<PathBuf>,
    /// Take the skill that comes with ironctl
    #[arg(long, conflicts_with = "from")]
    bundled: bool,
    /// The package to write [default: NAME-VERSION.skill]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    key: key::Secret,
}

/// A directory for the copy of a skill, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("ironctl-skill-{}", std::process::id()));
        let failed = |cause| Error::failed("skill_file", format!("cannot make {}", path.display())).because(cause);
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The system removes the rest of its temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    // Before the pages of scripts, so that a missing key is not below them.
    let key = args.key.read()?;
    let scratch = Scratch::new()?;
    let copy = scratch.0.join("skill");
    let from = args.from.as_deref().unwrap_or(Path::new("the bundled skill"));
    let own = scratch.0.join("bundled");
    let source = match args.bundled {
        true => bundled::write(&own).map(|()| own.as_path()).map_err(|cause| failure::about(from, cause))?,
        false => from,
    };
    let imported = author::import(source, &copy).map_err(|cause| failure::about(from, cause))?;
    let findings = author::lint(&copy).map_err(|cause| failure::about(from, cause))?;
    let references = lint::outward_references(&copy).map_err(|cause| failure::about(from, cause))?;
    let scripts = scripts(&copy)?;
    show(at, &imported, &scripts, &references)?;
    findings.iter().try_for_each(|finding| at.out.remark(finding.to_string()))?;
    pack::refuse_errors(from, &findings)?;
    let packed = author::pack(&copy).map_err(|cause| failure::about(from, cause))?;
    let name = format!("{}-{}.skill", imported.name, imported.version);
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(name));
    pack::write(&out, &packed, false).map_err(|error| error.hinting("remove it, or name another file with --out"))?;
    let package = Package::read_from(packed.as_slice()).map_err(|cause| failure::about(&out, cause))?;
    let (signature, signer) = verify::sign_with(&out, &package, &key, false)?;
    at.out.json(&json!({
        "file": out,
        "signature": signature,
        "signer": signer,
        "name": imported.name,
        "version": imported.version,
        "grants": package.manifest.grants,
        "scripts": scripts.iter().map(|(file, text)| json!({ "file": file, "text": text })).collect::<Vec<_>>(),
        "references": references
            .iter()
            .map(|found| json!({ "file": found.file, "line": found.line, "target": found.target }))
            .collect::<Vec<_>>(),
        "moved": imported.moved,
        "left_out": imported.left_out,
        "findings": findings.iter().map(pack::as_json).collect::<Vec<_>>(),
    }))?;
    at.out.line(verify::grants(&package))?;
    at.out.line(format!("packed and signed by key {signer}: {}", out.display()))
}

/// Returns the scripts with their texts; those that are no text have none.
fn scripts(copy: &Path) -> Result<Vec<(String, Option<String>)>, Error> {
    let manifest = author::lint::files(copy).map_err(|cause| failure::about(copy, cause))?;
    let scripts = manifest.into_iter().filter(|path| path.starts_with("scripts/"));
    scripts
        .map(|path| {
            let text = String::from_utf8(local_file::read_regular(&copy.join(&path), SCRIPT_BYTES_MAX)?).ok();
            Ok((path, text))
        })
        .collect()
}

fn show(
    at: &At,
    imported: &foreign::Imported,
    scripts: &[(String, Option<String>)],
    references: &[lint::Reference],
) -> Result<(), Error> {
    at.out.line(format!("{} {}", imported.name, imported.version))?;
    for (from, to) in &imported.moved {
        at.out.line(format!("moved: {from} to {to}"))?;
    }
    for path in &imported.left_out {
        at.out.line(format!("left out: {path}"))?;
    }
    for (file, text) in scripts {
        at.out.line(format!("script: {file}"))?;
        let Some(text) = text else {
            at.out.line("  | (no text)")?;
            continue;
        };
        for line in text.lines().take(SCRIPT_LINES_MAX) {
            at.out.line(format!("  | {line}"))?;
        }
        let more = text.lines().count().saturating_sub(SCRIPT_LINES_MAX);
        if more > 0 {
            at.out.line(format!("  ({more} more lines)"))?;
        }
    }
    for found in references {
        at.out.line(format!("reference to the outside: {}:{}: {}", found.file, found.line, found.target))?;
    }
    Ok(())
}
