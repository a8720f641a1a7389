//! `ironctl backup`: makes, verifies and restores backups of a home.
//!
//! Never decrypts a backup: the host makes it, and `ironclaw-host` verifies and restores it. See [`crate::new_file`].

use crate::at::At;
use crate::failure::Error;
use crate::host_binary::{self, Offline};
use crate::new_file::NewFile;
use crate::own_command::own_command;
use clap::Subcommand;
use ironclaw_operator::{Backup, BackupRestored, BackupVerified, routes};
use ironclaw_text::shell::quoted;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;

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
        Action::Verify { file, key_file } => {
            let key_words = key_file.as_deref().map(|key| format!(" --key-file {}", word(key))).unwrap_or_default();
            let words = format!("{}{key_words}", word(&file));
            let verified = answer(&offline(at, "verify", key_file)?.arg("--").arg(&file).capture_all()?)?;
            show_verified(at, &verified, &words)?;
            record_verified(at, &verified).await
        }
        Action::Restore { file, key_file, replace, yes } => {
            let mut offline = offline(at, "restore", key_file)?;
            if replace {
                let question = format!("replace {} by {}", at.home.path().display(), file.display());
                at.out.confirm(&question, yes)?;
                offline = offline.arg("--replace");
            }
            show_restored(at, &answer(&offline.arg("--").arg(&file).capture_all()?)?)
        }
    }
}

/// Prepares a verb of the host's program. The file follows behind `--`, because its name may begin with a hyphen.
fn offline(at: &At, verb: &str, key_file: Option<PathBuf>) -> Result<Offline, Error> {
    let mut offline = Offline::host(&["backup", verb])?.at(&at.home).json(true);
    if let Some(key_file) = key_file {
        offline = offline.arg("--key-file").arg(key_file);
    }
    Ok(offline)
}

/// Returns the report of the host's program, or its failure.
fn answer<T: DeserializeOwned>(output: &Output) -> Result<T, Error> {
    if !output.status.success() {
        return Err(host_binary::failure_of(output));
    }
    serde_json::from_slice(&output.stdout).map_err(|cause| {
        Error::failed("answer_unclear", "the output of ironclaw-host has an unexpected shape").because(cause)
    })
}

async fn create(at: &At, path: &Path, force: bool) -> Result<(), Error> {
    let mut file = NewFile::create(path, force)?;
    let asked = match at.client() {
        Ok(client) => client.back_up(&mut file).await,
        Err(error) => Err(error),
    };
    // A host that the caller names by its port may have another home.
    let is_of_home = at.access.port()?.is_none();
    let backup = match asked {
        Err(Error::Unreachable { .. }) if is_of_home => {
            let mut output = Offline::host(&["backup", "create"])?.at(&at.home).json(true).write_to(file.handle()?)?;
            // Its stdout was the file, and its report is the last line of its stderr.
            output.stdout =
                output.stderr.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default().to_vec();
            answer(&output)?
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
        "backup {id} is in {}: {files} files, {bytes} bytes; {entries} ledger entries",
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
        "it opens only with the master key {key}{of}, which is not in it: keep a copy of the key in another place"
    ))?;
    at.out.line(format!("to check it: {} backup verify {}", own_command(&at.home), word(path)))
}

/// Notes a verification at the host of the home, for `doctor --audit`. The backup is whole also if no host answers.
async fn record_verified(at: &At, verified: &BackupVerified) -> Result<(), Error> {
    let noted = match at.client() {
        Ok(client) => client.call(routes::NOTE_VERIFIED_BACKUP, [&verified.backup.id]).await,
        Err(error) => Err(error),
    };
    match noted {
        // A member verifies a backup too, and only an owner's word counts.
        Err(Error::Refused(failure)) => {
            let why = &failure.error.message;
            at.out.remark(format!("the host did not note this check for `ironctl doctor --audit`: {why}"))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Prints the result of a verification. `words` name the backup and its key.
fn show_verified(at: &At, verified: &BackupVerified, words: &str) -> Result<(), Error> {
    at.out.json(verified)?;
    let BackupVerified { backup, ledger } = verified;
    at.out.line(format!("ok: the backup {} of {} is whole", backup.id, backup.created_at))?;
    at.out.line(format!(
        "{} files, {} bytes; {} ledger entries, heads: {}",
        backup.files, backup.bytes, ledger.entries, ledger.heads
    ))?;
    at.out.line(format!("it opens with the master key {}", backup.key))?;
    let me = own_command(&at.home);
    let replace = if at.home.is_initialised() { " --replace" } else { "" };
    at.out.line(format!("to restore it: {me} backup restore {words}{replace}"))?;
    if at.home.is_locked() == Some(true) {
        at.out.line(format!("a restore needs a stopped host: {me} down"))?;
    }
    Ok(())
}

fn show_restored(at: &At, restored: &BackupRestored) -> Result<(), Error> {
    at.out.json(restored)?;
    let BackupRestored { home, backup, former, heads, todo } = restored;
    at.out.line(format!("restored {home} from the backup {} of {}", backup.id, backup.created_at))?;
    at.out.line(format!(
        "{} files, {} bytes; {} ledger entries, new heads: {heads}",
        backup.files, backup.bytes, backup.entries
    ))?;
    if let Some(former) = former {
        at.out.line(format!("the former content is in {former}; remove it when you do not need it"))?;
    }
    for step in todo {
        at.out.line(format!("first: {step}"))?;
    }
    let me = own_command(&at.home);
    at.out.line(format!("to start it: {me} up --detach"))?;
    at.out
        .line(format!("earlier approvals are void, and open replies wait for you: {me} inbox, {me} delivery list"))?;
    at.out.line("tokens, people and grants that were removed after the backup are valid again: remove them again")
}

/// Returns a path as a word of a command line.
fn word(path: &Path) -> String {
    let path = match path.as_os_str().as_bytes() {
        [b'-', ..] => Path::new(".").join(path),
        _ => path.to_owned(),
    };
    quoted(&path.to_string_lossy()).into_owned()
}
