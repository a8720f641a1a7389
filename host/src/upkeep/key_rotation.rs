//! Rotation of the master key: encrypts the record under a fresh key while no host runs, which makes the old key worthless.
//!
//! At every moment one of the two keys opens the record, and each start finds out which one. Never prints a key, and never writes one to
//! the operator's own key storage; it tells the operator how instead. See [`ironclaw_state::rekey`].

use crate::gateway::approval;
use crate::registry::secrets;
use crate::registry::{channels, mcp::login};
use crate::sessions::store;
use ironclaw_ledger::{Entry, head};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::failpoint;
use ironclaw_state::home::{self, Home};
use ironclaw_state::keys::{self, MasterKey, Source};
use ironclaw_state::rekey::Copy;
use ironclaw_state::{View, snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Number of replaced keys whose fingerprints are remembered.
const REPLACED_MAX: usize = 16;

/// The reason that the master key was not replaced, or does not open the record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The home, or a host that runs on it.
    #[error(transparent)]
    Home(#[from] home::Error),
    #[error(transparent)]
    Key(#[from] keys::Error),
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    #[error(transparent)]
    Row(#[from] ironclaw_store::error::Error),
    /// The key that signs heads.
    #[error(transparent)]
    Head(#[from] head::Error),
    /// A secret of the operator's.
    #[error(transparent)]
    Secret(#[from] secrets::Error),
    /// The ledger of the copy.
    #[error("the ledger under the fresh key is not whole: {0}")]
    Ledger(#[from] ironclaw_ledger::chain::Error),
    /// The key is a replaced one.
    #[error(
        "the master key {path} (fingerprint {found}) was replaced at {at}: the record is under the key with the fingerprint {current}"
    )]
    Replaced {
        path: PathBuf,
        found: String,
        /// The time of the replacement, RFC 3339.
        at: String,
        /// The fingerprint of the current key.
        current: String,
    },
    /// The operator keeps the key elsewhere.
    #[error(
        "the master key is kept in {kept}, which only you can replace: name a file for the fresh one with --to FILE"
    )]
    Elsewhere {
        /// The place, in words.
        kept: String,
    },
    /// The home keeps the key itself.
    #[error("the master key is the home's own {0}, and the fresh one takes its place: leave out --to")]
    Here(PathBuf),
    #[error("{0} exists already: name another file, or remove it")]
    Taken(PathBuf),
    /// The same file for both keys.
    #[error("{0} cannot take the fresh key and the copy of the old one: name another file with --keep-old")]
    Same(PathBuf),
    #[error("cannot put the record under the fresh key in place: {0}")]
    TakeOver(std::io::Error),
}

/// The result of a rotation, with the steps that are left to the operator.
#[derive(Debug, Serialize)]
pub struct Rotated {
    /// Fingerprint of the fresh key.
    pub fingerprint: String,
    /// Fingerprint of the replaced key.
    pub replaced: String,
    /// The file with the fresh key.
    pub key_file: PathBuf,
    /// A copy of the old key, if one was wanted.
    pub old_key_file: Option<PathBuf>,
    /// Removed snapshots from before an upgrade, which no key opens now.
    pub removed: Vec<PathBuf>,
    /// Snapshots from before an upgrade that only the kept copy of the old key opens.
    pub under_old: Vec<PathBuf>,
    /// Steps for the operator before the next start; often empty.
    pub todo: Vec<String>,
}

/// Replaces the master key of the home at `path`. `to` receives the fresh key if the home does not keep it itself, `keep_old` a copy of the
/// old one.
///
/// # Errors
/// Returns an error while a host runs, if the old key does not open the record, or if a file exists already. The home is unchanged then.
pub fn rotate(
    path: &Path,
    config: &keys::Config,
    to: Option<PathBuf>,
    keep_old: Option<PathBuf>,
) -> Result<Rotated, Error> {
    let home = Home::open(path)?;
    let _lock = home.hold()?;
    resume_or_undo(&home, config)?;
    let source = Source::choose(&home, config);
    let key_file = fresh_file(&home, &source, to)?;
    if let Some(keep) = keep_old.as_deref().filter(|keep| resolved(keep) == resolved(&key_file)) {
        return Err(Error::Same(keep.to_owned()));
    }
    let old = MasterKey::load(&home, config)?;
    for file in keep_old.iter().chain([&key_file]) {
        if file.symlink_metadata().is_ok() {
            return Err(Error::Taken(file.clone()));
        }
    }
    // The record first: a key that does not open it needs no copy.
    drop(View::open(&home.state_db(), &old.state_key()).map_err(|error| explain(&home, &source, &old, error))?);
    if let Some(keep) = &keep_old {
        old.write_to(keep)?;
    }
    MasterKey::fresh()?.write_to(&key_file)?;
    failpoint::reach("key_written");
    let fresh = match under_fresh(&home, &old, &key_file) {
        Ok(fresh) => fresh,
        Err(error) => {
            take_back(&home, &old, &key_file)?;
            return Err(error);
        }
    };
    failpoint::reach("key_switched");
    let (key_file, mut todo) = adopt(&source, key_file)?;
    failpoint::reach("key_adopted");
    // Snapshots remain under the old key; only a kept copy of it opens them.
    let snapshots = snapshots(&home);
    let (removed, under_old) = match &keep_old {
        Some(_) => (Vec::new(), snapshots),
        None => (remove_snapshots(&home, snapshots, &mut todo), Vec::new()),
    };
    Ok(Rotated {
        fingerprint: fresh.fingerprint(),
        replaced: old.fingerprint(),
        key_file,
        old_key_file: keep_old,
        removed,
        under_old,
        todo,
    })
}

/// Returns the file for the fresh key.
fn fresh_file(home: &Home, source: &Source, to: Option<PathBuf>) -> Result<PathBuf, Error> {
    match (source, to) {
        (Source::Home(_), None) => Ok(home.master_key_next()),
        (Source::Home(own), Some(_)) => Err(Error::Here(own.clone())),
        (Source::File(_) | Source::Credential(_), Some(to)) => Ok(to),
        (Source::File(_) | Source::Credential(_), None) => Err(Error::Elsewhere { kept: source.to_string() }),
    }
}

/// Removes the fresh key and the copy under it, if the old key still opens the record.
fn take_back(home: &Home, old: &MasterKey, key_file: &Path) -> Result<(), Error> {
    if matches!(opens(home, old), Ok(true)) {
        discard(home)?;
        home::remove(key_file)?;
    } else {
        // It may be the only key that opens the record, so it remains; the next start finds out.
        tracing::error!("the record may be under the fresh key: keep {}", key_file.display());
    }
    Ok(())
}

/// Replaces the home's own key by the fresh one; for a key elsewhere, returns the steps for the operator.
fn adopt(source: &Source, key_file: PathBuf) -> Result<(PathBuf, Vec<String>), Error> {
    let fresh = key_file.display();
    let todo = match source {
        Source::Home(own) => {
            home::replace(&key_file, own)?;
            return Ok((own.clone(), Vec::new()));
        }
        Source::File(named) => vec![
            format!("replace the old key by the fresh one: mv {fresh} {}", named.display()),
            format!("or name it in config.toml: keys.master_key_file = \"{fresh}\""),
        ],
        Source::Credential(_) => {
            let name = keys::CREDENTIAL;
            vec![
                format!("name the fresh key in the unit: LoadCredential={name}:{fresh}"),
                format!(
                    "or encrypt it first: systemd-creds encrypt --name={name} {fresh} FILE, \
                     LoadCredentialEncrypted={name}:FILE, and remove {fresh}"
                ),
                "then: systemctl daemon-reload, and start the unit".to_owned(),
            ]
        }
    };
    Ok((key_file, todo))
}

fn snapshots(home: &Home) -> Vec<PathBuf> {
    snapshot::all(&home.state_db()).into_iter().map(|found| found.path).collect()
}

/// Removes the snapshots under the old key. Returns those of `before` that are gone, and adds to `todo` those that the operator has to
/// remove.
fn remove_snapshots(home: &Home, before: Vec<PathBuf>, todo: &mut Vec<String>) -> Vec<PathBuf> {
    // A failure does not undo the rotation; the operator removes the rest.
    if let Err(error) = snapshot::remove_all(&home.state_db()) {
        todo.push(format!("remove the snapshots that no key opens: {error}"));
    }
    let stay = snapshots(home);
    for aside in snapshot::aside(&home.state_db()) {
        todo.push(format!("remove {}, which is under the old key", aside.display()));
    }
    before.into_iter().filter(|file| !stay.contains(file)).collect()
}

/// Returns the canonical path of a file that does not exist yet.
fn resolved(file: &Path) -> PathBuf {
    match (home::directory_of(file).canonicalize(), file.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => file.to_owned(),
    }
}

/// Makes the record under the key in `key_file`, verifies it, and puts it in place.
fn under_fresh(home: &Home, old: &MasterKey, key_file: &Path) -> Result<MasterKey, Error> {
    // The content of the file counts from now on, so it is read back.
    let fresh = MasterKey::read(key_file)?;
    discard(home)?;
    let mut copy = Copy::create(&home.state_db(), &old.state_key(), &home.state_db_next())?;
    let (from, to) = (old.wrapping_key(), fresh.wrapping_key());
    copy.change(|tx| {
        let sessions = store::rewrap(tx, &from, &to)?;
        head::rewrap(tx, &from, &to)?;
        secrets::rewrap(tx, &from, &to)?;
        login::rewrap(tx, &from, &to)?;
        channels::rewrap(tx, &from, &to)?;
        approval::rewrap(tx, &old.approval_root(), &fresh.approval_root())?;
        Entry::new(LedgerEvent::KeyRotated)
            .with("key", "master")
            .with("fingerprint", fresh.fingerprint())
            .with("replaces", old.fingerprint())
            .with("sessions", sessions)
            .append(tx)?;
        Ok::<_, Error>(())
    })?;
    let ready = copy.rekey(&fresh.state_key())?;
    // Older chains are in archives, which are not encrypted.
    let copy = View::open(&home.state_db_next(), &fresh.state_key())?;
    ironclaw_ledger::chain::check(&copy.tx(), None, &BTreeSet::new())?;
    drop(copy);
    failpoint::reach("key_copied");
    KeyHistory::remember(home, &fresh, old)?;
    ready.take_over().map_err(Error::TakeOver)?;
    Ok(fresh)
}

/// Removes a copy that was not put in place.
fn discard(home: &Home) -> Result<(), home::Error> {
    let copy = home.state_db_next();
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut name = copy.clone().into_os_string();
        name.push(end);
        home::remove(Path::new(&name))?;
    }
    Ok(())
}

/// Finishes or undoes a rotation that a crash interrupted. The caller holds the home.
///
/// # Errors
/// Returns an error, and changes nothing, if neither key opens the record.
pub fn resume_or_undo(home: &Home, config: &keys::Config) -> Result<(), Error> {
    let (source, next) = (Source::choose(home, config), home.master_key_next());
    let Source::Home(own) = &source else {
        return Ok(discard(home)?);
    };
    if !next.exists() {
        return Ok(discard(home)?);
    }
    let fresh = MasterKey::read(&next);
    let is_adopted = match &fresh {
        Ok(fresh) => opens(home, fresh)?,
        Err(_) => false,
    };
    if is_adopted {
        tracing::warn!("finished an interrupted rotation of the master key");
        for old in snapshot::all(&home.state_db()) {
            tracing::warn!("{} may be under the old key: remove it if that key was not kept", old.path.display());
        }
        home::replace(&next, own)?;
        return Ok(discard(home)?);
    }
    let old = MasterKey::load(home, config)?;
    if let Err(error) = View::open(&home.state_db(), &old.state_key()) {
        // It may be the only key that opens the record, so its error comes first.
        fresh?;
        return Err(explain(home, &source, &old, error));
    }
    tracing::warn!("undid an interrupted rotation of the master key: the old key remains");
    discard(home)?;
    Ok(home::remove(&next)?)
}

/// Returns the key that opens the record, for readers: that of the settings, or the fresh one of an interrupted rotation.
///
/// # Errors
/// Returns an error if there is no key to read.
pub fn key(home: &Home, config: &keys::Config) -> Result<MasterKey, Error> {
    let next = home.master_key_next();
    if matches!(Source::choose(home, config), Source::Home(_)) && next.exists() {
        let fresh = MasterKey::read(&next)?;
        if opens(home, &fresh)? {
            return Ok(fresh);
        }
    }
    Ok(MasterKey::load(home, config)?)
}

fn opens(home: &Home, key: &MasterKey) -> Result<bool, Error> {
    match View::open(&home.state_db(), &key.state_key()) {
        Ok(_) => Ok(true),
        Err(ironclaw_state::Error::WrongKey(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Explains that this key does not open the record because it was replaced, if that is so.
pub fn explain(home: &Home, source: &Source, key: &MasterKey, error: ironclaw_state::Error) -> Error {
    let history = KeyHistory::read(home);
    let found = key.fingerprint();
    match (error, history.replaced.iter().find(|replaced| replaced.fingerprint == found)) {
        (ironclaw_state::Error::WrongKey(_), Some(replaced)) => {
            Error::Replaced { path: source.path().to_owned(), found, at: replaced.at.clone(), current: history.current }
        }
        (error, _) => error.into(),
    }
}

/// The keys that the record was under. Only for clear messages; no decision depends on it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KeyHistory {
    current: String,
    replaced: Vec<ReplacedKey>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ReplacedKey {
    fingerprint: String,
    at: String,
}

impl KeyHistory {
    fn read(home: &Home) -> Self {
        let text = home::read_small(&home.keys_file()).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn remember(home: &Home, fresh: &MasterKey, old: &MasterKey) -> Result<(), Error> {
        let mut history = Self::read(home);
        history.current = fresh.fingerprint();
        let at = format!("{:.0}", jiff::Timestamp::now());
        history.replaced.push(ReplacedKey { fingerprint: old.fingerprint(), at });
        let over = history.replaced.len().saturating_sub(REPLACED_MAX);
        history.replaced.drain(..over);
        let text = serde_json::to_vec(&history).expect("plain data");
        Ok(home::write_private(&home.keys_file(), &text)?)
    }
}
