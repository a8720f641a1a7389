//! `ironctl backup`: makes, verifies and restores backups of a home.
//!
//! Never decrypts a backup: the host makes it, and `ironclaw-host` verifies and restores it. See [`crate::new_file`].

use super::At;
use crate::failure::Error;
use crate::host_binary::{self, Offline};
use crate::new_file::NewFile;
use clap::Subcommand;
use ironclaw_contract::operator::Backup;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The verbs of `ironctl backup`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Write an encrypted backup of the home to a file, also while the host runs; needs an owner
    #[command(after_help = "Example:\n  ironctl backup create /media/disk/monday.backup")]
    Create {
        /// The new file
        file: PathBuf,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
    },
    /// Restore a backup to a temporary directory, and check its record and its ledger
    #[command(
        after_help = "Example:\n  ironctl backup verify monday.backup\n  ironctl backup verify monday.backup --key-file /media/safe/master.key"
    )]
    Verify {
        /// The backup
        file: PathBuf,
        /// The master key of the backup [default: that of the home]
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// Restore a backup to an empty home, or in the place of a home whose host does not run
    #[command(
        after_help = "Example:\n  ironctl --home /srv/ironclaw backup restore monday.backup --key-file /media/safe/master.key\n  ironctl backup restore monday.backup --replace"
    )]
    Restore {
        /// The backup
        file: PathBuf,
        /// The master key of the backup [default: that of the home]
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
        /// Replace a home that is not empty; its content is kept beside it
        #[arg(long)]
        replace: bool,
        /// Replace it without a confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// The output of `backup create --json`.
#[derive(Serialize)]
struct Created<'a> {
    file: &'a Path,
    #[serde(flatten)]
    backup: &'a Backup,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Create { file, force } => create(at, &file, force).await,
        Action::Verify { file, key_file } => offline(at, "verify", &file, key_file)?.pass(),
        Action::Restore { file, key_file, replace, yes } => {
            let mut offline = offline(at, "restore", &file, key_file)?;
            if replace {
                let question = format!("replace {} by {}", at.home.path().display(), file.display());
                at.out.confirm(&question, yes)?;
                offline = offline.arg("--replace");
            }
            offline.pass()
        }
    }
}

fn offline(at: &At, verb: &str, file: &Path, key_file: Option<PathBuf>) -> Result<Offline, Error> {
    let mut offline = Offline::host(&["backup", verb])?.at(&at.home).json(at.out.is_json());
    if let Some(key_file) = key_file {
        offline = offline.arg("--key-file").arg(key_file);
    }
    // A name may begin with a hyphen.
    Ok(offline.arg("--").arg(file))
}

async fn create(at: &At, path: &Path, force: bool) -> Result<(), Error> {
    let mut file = NewFile::create(path, force)?;
    let asked = match at.client() {
        Ok(client) => client.back_up(&mut file).await,
        Err(error) => Err(error),
    };
    let backup = match asked {
        Err(Error::Unreachable { .. }) => {
            let words = Offline::host(&["backup", "create"])?.at(&at.home).json(at.out.is_json());
            let (status, said) = words.write_to(file.handle()?)?;
            if !status.success() {
                // The program has printed its reason to a pipe.
                at.out.stderr(&said)?;
                host_binary::pass_on(status)?;
            }
            let last = said.lines().last().unwrap_or_default();
            serde_json::from_str(last).map_err(|cause| {
                Error::failed("answer_unclear", "the output of ironclaw-host has an unexpected shape").because(cause)
            })?
        }
        asked => asked?,
    };
    file.keep()?;
    show(at, path, &backup)
}

fn show(at: &At, path: &Path, backup: &Backup) -> Result<(), Error> {
    at.out.json(&Created { file: path, backup })?;
    let Backup { id, key, entries, files, bytes, changed, skipped, .. } = backup;
    at.out.line(format!(
        "backup {id} is in {}: {files} files, {bytes} bytes, {entries} ledger entries",
        path.display()
    ))?;
    if *changed > 0 {
        at.out.line(format!("{changed} files of workspaces changed while they were read"))?;
    }
    if *skipped > 0 {
        at.out.line(format!(
            "{skipped} files of workspaces are not in it: special files, unreadable files, or files over the quota"
        ))?;
    }
    let own = at.home.path().join("master.key");
    let of = if own.exists() { format!(" ({})", own.display()) } else { String::new() };
    at.out.line(format!(
        "It opens only with the master key {key}{of}, which is not in it: keep a copy of the key in another place"
    ))
}
