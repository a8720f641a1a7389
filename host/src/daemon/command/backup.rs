//! `ironclaw-host backup`: makes, verifies and restores backups without a running host.
//!
//! Each report is JSON; `ironctl backup` prints it for people. A verification is a full restore to a temporary directory. A restore puts
//! nothing in place that does not open. See [`crate::upkeep::backup`].

use super::{Done, say};
use crate::daemon;
use crate::daemon::audit;
use crate::daemon::config;
use crate::upkeep::backup::{self, Error, HEADS, Scratch, Staging};
use clap::Subcommand;
use ironclaw_ledger::head::{self, HeadFile};
use ironclaw_ledger::sink::Sink;
use ironclaw_operator::{Backup, BackupRestored, BackupVerified, SignedHead, exit};
use ironclaw_state::View;
use ironclaw_state::failpoint;
use ironclaw_state::home::{self, Held, Home};
use ironclaw_state::keys::{self, MasterKey, Source};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The verbs of `ironclaw-host backup`.
#[derive(Subcommand)]
pub(super) enum Action {
    /// Write a backup to standard output, and its description to standard error; only without a running host
    Create {
        /// The home
        #[arg(long)]
        home: PathBuf,
        /// Print a failure as JSON
        #[arg(long)]
        json: bool,
    },
    /// Restore a backup to a temporary directory, and check its record and its ledger
    Verify(Of),
    /// Restore a backup to a home
    Restore {
        #[command(flatten)]
        of: Of,
        /// Replace a home that is not empty; its content is kept beside it
        #[arg(long)]
        replace: bool,
    },
}

/// A backup, and the key for it.
#[derive(clap::Args)]
pub(super) struct Of {
    /// The backup
    file: PathBuf,
    /// The home
    #[arg(long)]
    home: PathBuf,
    /// The master key of the backup, unless the home has it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Print a failure as JSON
    #[arg(long)]
    json: bool,
}

impl Action {
    /// Returns whether a failure is printed as JSON. A report always is.
    pub(super) const fn json(&self) -> bool {
        match self {
            Self::Create { json, .. } => *json,
            Self::Verify(of) | Self::Restore { of, .. } => of.json,
        }
    }
}

/// Runs a verb.
pub(super) fn run(action: &Action) -> Done {
    match action {
        Action::Create { home, .. } => create(home),
        Action::Verify(of) => verify(of),
        Action::Restore { of, replace } => restore(of, *replace),
    }
}

fn create(home: &Path) -> Done {
    // Not `Stdout`, which looks for the end of a line in each part.
    let out = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let made = daemon::back_up(home, out)?;
    eprintln!("{}", serde_json::to_string(&made)?);
    Ok(ExitCode::from(exit::DONE))
}

/// Returns the named key, else that of the home.
fn key_of(of: &Of) -> Result<MasterKey, Error> {
    if let Some(file) = &of.key_file {
        return Ok(MasterKey::read(file)?);
    }
    let Ok(home) = Home::at(&of.home) else { return Err(Error::NoKey(of.file.clone())) };
    let keys = config::keys(&home).unwrap_or_default();
    MasterKey::load(&home, &keys).map_err(|error| match error {
        keys::Error::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Error::NoKey(of.file.clone())
        }
        error => error.into(),
    })
}

/// Unpacks a backup and checks its record.
fn unpack(of: &Of, master: &MasterKey, to: &Path) -> Result<Backup, Error> {
    let (header, totals) = backup::unpack(&of.file, &master.backup_key(), to)?;
    ironclaw_state::backup::check(&to.join("state.db"), &master.state_key())?;
    Ok(backup::described(&header, &totals))
}

fn verify(of: &Of) -> Done {
    // Before anything is written: the header names a wrong file, format or key.
    backup::header(&of.file)?;
    let master = key_of(of)?;
    let scratch = Scratch::make(&std::env::temp_dir(), "ironclaw-verify")?;
    let backup = unpack(of, &master, scratch.path())?;
    let ledger = match audit::verify_unpacked(scratch.path(), master, &scratch.path().join(HEADS)) {
        Ok(ledger) => ledger,
        Err(audit::Error::Bad(bad)) => return Err(Error::Ledger { path: of.file.clone(), why: bad.to_string() }.into()),
        Err(error) => return Err(error.into()),
    };
    say(&serde_json::to_string(&BackupVerified { backup, ledger })?)
}

fn restore(of: &Of, replace: bool) -> Done {
    backup::header(&of.file)?;
    daemon::refuse_file_system(&of.home).map_err(daemon::Error::from)?;
    // A link to the home stays, and the directory behind it is replaced.
    let place = of.home.canonicalize().unwrap_or_else(|_| of.home.clone());
    let refused = |is_empty: bool| if is_empty || replace { Ok(()) } else { Err(Error::NotEmpty(place.clone())) };
    let is_empty = backup::is_empty(&place)?;
    refused(is_empty)?;
    let master = key_of(of)?;
    // Another key may be the only copy of it.
    let is_empty = is_empty && !has_other_key(&place, &master);
    refused(is_empty)?;
    let _held = hold(&place, is_empty)?;
    let staging = Staging::create(&place, !is_empty)?;
    let backup = unpack(of, &master, staging.path())?;
    let heads = take_heads(staging.path())?;
    let ledger = {
        let view = View::open(&staging.path().join("state.db"), &master.state_key())?;
        head::Position::read(&view.tx())?.ledger
    };
    let mut todo = Vec::new();
    // An empty home may have the only copy of its key.
    let key_of_home = Some(place.join("master.key")).filter(|key| is_empty && key.exists());
    give_key(staging.path(), &master, key_of_home, &mut todo)?;
    failpoint::reach("restore_staged");
    let former = staging.take_over()?;
    failpoint::reach("restore_placed");
    let home = Home::at(&place)?;
    let put = put_heads(&home, &ledger, &heads).unwrap_or_else(|why| {
        todo.push(format!("copy the heads of the ledger to their directory yourself: {why}"));
        0
    });
    let former = former.map(|path| path.display().to_string());
    let restored = BackupRestored { home: place.display().to_string(), backup, former, heads: put, todo };
    say(&serde_json::to_string(&restored)?)
}

/// Returns whether a home has a master key, and not this one.
fn has_other_key(place: &Path, master: &MasterKey) -> bool {
    let path = place.join("master.key");
    path.symlink_metadata().is_ok()
        && MasterKey::read(&path).map_or(true, |found| found.fingerprint() != master.fingerprint())
}

/// Locks a home that will be replaced. A missing one has no lock.
fn hold(place: &Path, is_empty: bool) -> Result<Option<Held>, Error> {
    if is_empty && !place.exists() {
        return Ok(None);
    }
    Ok(Some(Home::at(place)?.hold()?))
}

/// Reads the heads of a backup, and removes their directory, which is no part of a home.
fn take_heads(staging: &Path) -> Result<Vec<SignedHead>, Error> {
    let directory = staging.join(HEADS);
    let fault = |source| Error::Io { path: directory.clone(), source };
    let found: Vec<HeadFile> = head::all(&directory).map_err(fault)?;
    home::remove_tree(&directory).map_err(fault)?;
    Ok(found.into_iter().filter_map(|file| file.head).collect())
}

/// Puts the master key into the home. If the settings of the backup keep it elsewhere, the home keeps only `key_of_home`.
fn give_key(
    staging: &Path,
    master: &MasterKey,
    key_of_home: Option<PathBuf>,
    todo: &mut Vec<String>,
) -> Result<(), Error> {
    let home = Home::at(staging)?;
    if let Err(error) = config::load(&home) {
        todo.push(format!("correct the settings: {error}"));
    }
    let keys = config::keys(&home).unwrap_or_default();
    let source = Source::choose(&home, &keys);
    if matches!(source, Source::Home(_)) {
        return Ok(master.write_to(&home.master_key())?);
    }
    if MasterKey::read(source.path()).is_ok_and(|there| there.fingerprint() == master.fingerprint()) {
        return Ok(());
    }
    match key_of_home {
        Some(path) => {
            master.write_to(&home.master_key())?;
            todo.push(format!("move the master key from {} to {source}", path.display()));
        }
        None => todo.push(format!("put the master key {} into {source}", master.fingerprint())),
    }
    Ok(())
}

/// Puts missing heads into the directory of the heads. Returns their number.
fn put_heads(home: &Home, ledger: &str, heads: &[SignedHead]) -> Result<u64, String> {
    if heads.is_empty() {
        return Ok(0);
    }
    let (config, _) = config::load(home).map_err(|error| error.to_string())?;
    let sink = Sink::choose(&config.ledger, home)?;
    let directory = sink.ready(ledger, home).map_err(|error| error.to_string())?;
    let mut put = 0;
    for head in heads {
        if !directory.join(head::file_name(head)).exists() {
            head::keep(&directory, head).map_err(|error| format!("{}: {error}", directory.display()))?;
            put += 1;
        }
    }
    Ok(put)
}
