//! `ironctl skill import`: takes over skills of others, or the bundled one, as the operator's own.
//!
//! Writes each package before it prints, so that a reader who closes the pipe has it. Never runs a program of a skill.

mod check;
mod shown;
mod taken;
mod wanted;

use super::{failure, key};
use crate::at::At;
use crate::failure::Error;
use ironclaw_skill::author::{SecretKey, bundled};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use taken::{Scratch, Taken};
use wanted::Wanted;

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

pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    // Before the pages of scripts, so that a missing key is not below them.
    let key = if args.check { None } else { Some(args.key.read()?) };
    let mut scratch = Scratch::new()?;
    let from = match &args.from {
        Some(from) => from.clone(),
        None => {
            let own = scratch.next();
            bundled::write(&own).map_err(|cause| failure::about(Path::new("the bundled skill"), cause))?;
            own
        }
    };
    let opened = wanted::open(&from)?;
    let wanted = wanted::wanted(&opened, args.skill.as_deref())?;
    match (key, wanted.as_slice()) {
        (None, wanted) => check::run(at, wanted, &mut scratch),
        (Some(key), [one]) => import_one(at, one, args, &key, &mut scratch),
        (Some(key), many) => import_many(at, many, args, &key, &mut scratch),
    }
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
