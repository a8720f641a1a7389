//! `ironctl skill import`: takes over skills of others, or the bundled one, as the operator's own.
//!
//! Writes each package before it prints, so that a reader who closes the pipe has it. Never runs a program of a skill.

mod check;
mod shown;
mod taken;

use super::{failure, key};
use crate::at::At;
use crate::failure::Error;
use ironclaw_skill::author::{SecretKey, Source, bundled};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use taken::{Scratch, Taken};

/// Endings of archives that are looked at in a directory.
const ARCHIVES: [&str; 5] = [".skill", ".zip", ".tar", ".tgz", ".tar.gz"];

/// The arguments of `ironctl skill import`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl skill import downloads/pdf-forms\n  ironctl skill import downloads/skills.zip --skill pdf-forms --out ~/skills\n  ironctl skill import --check downloads"
)]
pub struct Args {
    /// Directory, clone, ZIP, tar or tar.gz of one skill or of many, or one text
    #[arg(value_name = "DIR|ARCHIVE", required_unless_present = "bundled")]
    from: Option<PathBuf>,
    /// Take the skill that comes with ironctl
    #[arg(long, conflicts_with = "from")]
    bundled: bool,
    /// Take this one of many skills: the name of its directory
    #[arg(long, value_name = "NAME")]
    skill: Option<String>,
    /// The package to write, or a directory for packages [default: NAME-VERSION.skill]
    #[arg(long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// Count the skills, the remarks and the dead references, and write nothing
    #[arg(long, conflicts_with_all = ["out", "key"])]
    check: bool,
    #[command(flatten)]
    key: key::Secret,
}

/// One skill of a source.
struct Wanted<'a> {
    source: &'a Source,
    /// The directory or archive, and the directory in it.
    object: PathBuf,
    directory: &'a str,
}

pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    if args.check {
        return with_wanted(args, &mut Scratch::new()?, |wanted, scratch| check::run(at, wanted, scratch));
    }
    // Before the pages of scripts, so that a missing key is not below them.
    let key = args.key.read()?;
    with_wanted(args, &mut Scratch::new()?, |wanted, scratch| match wanted {
        [one] => import_one(at, one, args, &key, scratch),
        many => import_many(at, many, args, &key, scratch),
    })
}

/// Looks for the skills that the arguments name, and passes them on.
fn with_wanted(
    args: &Args,
    scratch: &mut Scratch,
    then: impl FnOnce(&[Wanted<'_>], &mut Scratch) -> Result<(), Error>,
) -> Result<(), Error> {
    let from = match &args.from {
        Some(from) => from.clone(),
        None => {
            let own = scratch.next();
            bundled::write(&own).map_err(|cause| failure::about(Path::new("the bundled skill"), cause))?;
            own
        }
    };
    let places = places(&from)?;
    let mut sources = Vec::new();
    for place in &places {
        sources.push(Source::open(place).map_err(|cause| failure::about(place, cause))?);
    }
    let mut wanted = Vec::new();
    for (place, source) in places.iter().zip(&sources) {
        for directory in source.skills() {
            let object = if directory.is_empty() { place.clone() } else { place.join(directory.trim_end_matches('/')) };
            let is_named = |name: &String| object.file_stem().is_some_and(|own| own == name.as_str());
            if args.skill.as_ref().is_none_or(is_named) {
                wanted.push(Wanted { source, object, directory });
            }
        }
    }
    if wanted.is_empty() {
        let name = args.skill.as_deref().unwrap_or_default();
        let message = format!("{} has no skill in a directory {name}", from.display());
        return Err(Error::failed("skill_unknown", message).hinting("without --skill, --check lists its skills"));
    }
    then(&wanted, scratch)
}

/// Returns a directory or archive, and the archives in a directory without instructions of its own.
fn places(from: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut places = Vec::new();
    let unreadable = |cause| Error::failed("skill_file", format!("cannot read {}", from.display())).because(cause);
    if from.is_dir() && !from.join(ironclaw_skill::INSTRUCTIONS).exists() {
        for entry in fs::read_dir(from).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.to_string_lossy().to_lowercase();
            if path.is_file() && ARCHIVES.iter().any(|ending| name.ends_with(ending)) {
                places.push(path);
            }
        }
        places.sort();
    }
    // A directory of archives alone is no source itself.
    if places.is_empty() || Source::open(from).is_ok() {
        places.insert(0, from.to_owned());
    }
    Ok(places)
}

fn import_one(at: &At, wanted: &Wanted<'_>, args: &Args, key: &SecretKey, scratch: &mut Scratch) -> Result<(), Error> {
    let taken = Taken::new(wanted, scratch)?;
    let written = taken.write(args.out.as_deref(), key);
    shown::show(at, &taken)?;
    let written = written?;
    at.out.json(&shown::as_json(&taken, Some(&written)))?;
    shown::show_written(at, &written)
}

fn import_many(
    at: &At,
    wanted: &[Wanted<'_>],
    args: &Args,
    key: &SecretKey,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    if let Some(out) = args.out.as_ref().filter(|out| !out.is_dir()) {
        let message = format!("{} is no directory, and there are {} skills", out.display(), wanted.len());
        return Err(Error::usage(message, "name a directory with --out, or one skill with --skill"));
    }
    let mut skills: Vec<Value> = Vec::new();
    let mut refused = 0;
    let mut outcomes = Vec::new();
    for wanted in wanted {
        let taken = Taken::new(wanted, scratch);
        let written = taken.as_ref().ok().map(|taken| taken.write(args.out.as_deref(), key));
        outcomes.push((taken, written));
    }
    for (wanted, outcome) in wanted.iter().zip(outcomes) {
        let (taken, error) = match outcome {
            (Ok(taken), Some(Ok(written))) => {
                shown::show(at, &taken)?;
                shown::show_written(at, &written)?;
                skills.push(shown::as_json(&taken, Some(&written)));
                continue;
            }
            (Ok(taken), Some(Err(error))) => (Some(taken), error),
            (Ok(_), None) => continue,
            (Err(error), _) => (None, error),
        };
        refused += 1;
        if let Some(taken) = taken {
            shown::show(at, &taken)?;
        }
        let reason = error.reason();
        at.out.line(format!("refused: {}: {reason}", wanted.object.display()))?;
        skills.push(json!({ "directory": wanted.object, "refused": reason }));
    }
    at.out.json(&json!({ "skills": skills }))?;
    match refused {
        0 => Ok(()),
        refused => {
            let message = format!("{refused} of {} skills were refused; the others are written", wanted.len());
            Err(Error::failed("skill_import", message).hinting("the reason is beside each of them"))
        }
    }
}
