//! `ironclaw-host backup`: makes, verifies and restores backups without a running host.
//!
//! A verification is a full restore to a temporary directory. A restore puts nothing in place that does not open. See
//! [`crate::backup`].

use super::{Done, say};
use crate::backup::{self, Error, HEADS, Scratch, Staging};
use crate::{audit, config, daemon};
use clap::Subcommand;
use ironclaw_contract::operator::{Backup, BackupRestored, BackupVerified, SignedHead, exit};
use ironclaw_ledger::head::{self, HeadFile};
use ironclaw_ledger::sink::Sink;
use ironclaw_state::View;
use ironclaw_state::home::{self, Held, Home};
use ironclaw_state::keys::{self, MasterKey, Source};
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
        /// Print JSON
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Action {
    /// Returns whether the output is JSON.
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
    let made = daemon::back_up(home, std::io::stdout().lock())?;
    eprintln!("{}", serde_json::to_string(&made)?);
    Ok(ExitCode::from(exit::DONE))
}

/// Returns the named key, else that of the home.
fn key_of(of: &Of) -> Result<MasterKey, Error> {
    if let Some(file) = &of.key_file {
        return Ok(MasterKey::read(file)?);
    }
    let Ok(home) = Home::at(&of.home) else { return Err(Error::NoKey(of.file.clone())) };
    let keys = config::load(&home).map(|(config, _)| config.keys).unwrap_or_default();
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
    let verified = BackupVerified { backup, ledger };
    if of.json {
        return say(&serde_json::to_string(&verified)?);
    }
    let BackupVerified { backup, ledger } = verified;
    say(&format!("ok backup {} of {}", backup.id, backup.created_at))?;
    say(&format!("   {} files, {} bytes", backup.files, backup.bytes))?;
    say(&format!("   ledger {} entries, {} heads", ledger.entries, ledger.heads))?;
    say(&format!("   opens with the master key {}", backup.key))
}

fn restore(of: &Of, replace: bool) -> Done {
    backup::header(&of.file)?;
    // A link to the home stays, and the directory behind it is replaced.
    let place = of.home.canonicalize().unwrap_or_else(|_| of.home.clone());
    let is_empty = backup::is_empty(&place)?;
    if !is_empty && !replace {
        return Err(Error::NotEmpty(place).into());
    }
    let master = key_of(of)?;
    let _held = hold(&place, is_empty)?;
    let staging = Staging::of(&place)?;
    let backup = unpack(of, &master, staging.path())?;
    let heads = take_heads(staging.path())?;
    let ledger = {
        let view = View::open(&staging.path().join("state.db"), &master.state_key())?;
        head::Position::read(&view.tx())?.ledger
    };
    let mut todo = Vec::new();
    give_key(staging.path(), &master, &mut todo)?;
    let former = staging.take_over()?;
    let home = Home::at(&place)?;
    let put = put_heads(&home, &ledger, &heads).unwrap_or_else(|why| {
        todo.push(format!("copy the heads of the ledger to their directory yourself: {why}"));
        0
    });
    let former = former.map(|path| path.display().to_string());
    let restored = BackupRestored { home: place.display().to_string(), backup, former, heads: put, todo };
    print_restored(of, &restored)
}

fn print_restored(of: &Of, restored: &BackupRestored) -> Done {
    if of.json {
        return say(&serde_json::to_string(restored)?);
    }
    let BackupRestored { home, backup, former, heads, todo } = restored;
    say(&format!("restored {home} from the backup {} of {}", backup.id, backup.created_at))?;
    say(&format!(
        "   {} files, {} bytes, {} ledger entries, {heads} new heads",
        backup.files, backup.bytes, backup.entries
    ))?;
    if let Some(former) = former {
        say(&format!("   the former content is in {former}; remove it once you do not need it"))?;
    }
    for step in todo {
        say(&format!("now: {step}"))?;
    }
    say("   earlier approvals are void, and open replies wait for you: see `ironctl inbox` and `ironctl delivery list`")
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

/// Puts the master key into the home, unless the settings of the backup keep it elsewhere.
fn give_key(staging: &Path, master: &MasterKey, todo: &mut Vec<String>) -> Result<(), Error> {
    let home = Home::at(staging)?;
    let keys = match config::load(&home) {
        Ok((config, _)) => config.keys,
        Err(error) => {
            todo.push(format!("correct the settings: {error}"));
            keys::Config::default()
        }
    };
    let source = Source::of(&home, &keys);
    if matches!(source, Source::Home(_)) {
        return Ok(master.write_to(&home.master_key())?);
    }
    let is_there = MasterKey::read(source.path()).is_ok_and(|there| there.fingerprint() == master.fingerprint());
    if !is_there {
        todo.push(format!("put the master key {} into {source}", master.fingerprint()));
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
