//! The state of the emergency stop: its requester and time, and the latch that keeps work from beginning.
//!
//! The record keeps the stop over a restart. A file in the home requests it when no host answers. No message is lost: a message whose
//! turn was open waits again. See [`crate::runtime::emergency_stop`].

use crate::registry::{Person, Signer};
use ironclaw_ledger::Entry;
use ironclaw_operator::{LedgerEvent, PANIC_FILE, PANIC_RESERVE_FILE};
use ironclaw_state::home::{self, Home};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables::facts::{self, Fact};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use tokio::sync::{Mutex, watch};

/// The recorded requester of a stop that the file in the home asked for.
const THE_FILE: &str = "the panic file in the home";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// When it began, milliseconds since the epoch.
    pub at: i64,
    /// The name of the requester at that time, or the words for the file in the home.
    pub by: String,
}

impl Stopped {
    /// Makes a stop by this person, or by the file in the home.
    pub(crate) fn new(at: i64, by: Option<&Person>) -> Self {
        Self { at, by: by.map_or(THE_FILE, |person| person.name.as_str()).to_owned() }
    }
}

#[derive(Debug)]
enum Position {
    Open,
    /// Shut, with the stop that the record does not have yet.
    Shut(Option<Stopped>),
}

/// The latch of the emergency stop: while it is shut, no work begins.
#[derive(Debug)]
pub struct Latch {
    position: watch::Sender<Position>,
    /// Held by the one task that writes a stop or its end to the record, so that latch and record agree afterwards.
    pub(crate) writing: Mutex<()>,
}

impl Default for Latch {
    /// Makes a latch that is shut until the record says otherwise.
    fn default() -> Self {
        Self { position: watch::Sender::new(Position::Shut(None)), writing: Mutex::default() }
    }
}

impl Latch {
    /// Returns whether it is shut.
    pub fn is_shut(&self) -> bool {
        matches!(*self.position.borrow(), Position::Shut(_))
    }

    /// Returns the stop that the record does not have yet, if it is shut for one.
    pub(crate) fn unrecorded(&self) -> Option<Stopped> {
        match &*self.position.borrow() {
            Position::Shut(stopped) => stopped.clone(),
            Position::Open => None,
        }
    }

    /// Shuts it for a stop that the record does not have yet.
    pub(crate) fn shut_for(&self, stopped: Stopped) {
        self.position.send_replace(Position::Shut(Some(stopped)));
    }

    /// Shuts or opens it, as the record says.
    pub(crate) fn set(&self, shut: bool) {
        self.position.send_replace(if shut { Position::Shut(None) } else { Position::Open });
    }

    /// Waits until it is shut.
    pub async fn shut(&self) {
        // The wait cannot fail, because the sender is in `self`.
        let _ = self.position.subscribe().wait_for(|position| matches!(position, Position::Shut(_))).await;
    }
}

/// Returns the present stop of the record, if there is one.
pub fn find(tx: &ReadTx<'_>) -> Result<Option<Stopped>, ironclaw_state::Error> {
    let text = facts::get(tx, Fact::Stopped)?;
    let stored = |text: String| {
        serde_json::from_str(&text).map_err(|_| ironclaw_state::Error::Stored("meta: stopped".to_owned()))
    };
    text.map(stored).transpose()
}

/// Begins a stop, or returns the present one; `by` is `None` if the file in the home requests it.
pub fn begin(tx: &mut WriteTx<'_>, by: Option<&Signer>) -> Result<Stopped, ironclaw_state::Error> {
    if let Some(stopped) = find(tx)? {
        return Ok(stopped);
    }
    let stopped = Stopped::new(tx.now(), by.map(|by| &by.person));
    let text = serde_json::to_string(&stopped).expect("two plain fields");
    facts::set(tx, Fact::Stopped, text)?;
    let entry = Entry::new(LedgerEvent::HostPanicked);
    match by {
        Some(by) => entry.with("by", by.person.id).with("face", by.face).append(tx)?,
        None => entry.with("by", THE_FILE).append(tx)?,
    };
    Ok(stopped)
}

/// Ends the stop. Returns false if the record has none and `unrecorded` is false.
pub fn end(tx: &mut WriteTx<'_>, by: &Signer, unrecorded: bool) -> Result<bool, ironclaw_state::Error> {
    let ended = facts::remove(tx, Fact::Stopped)? || unrecorded;
    if ended {
        Entry::new(LedgerEvent::HostResumed).with("by", by.person.id).with("face", by.face).append(tx)?;
    }
    Ok(ended)
}

/// Records, at a start, a stop that was requested while no host ran. Returns whether there is a stop.
pub fn at_start(tx: &mut WriteTx<'_>, asked: bool) -> Result<bool, ironclaw_state::Error> {
    if asked {
        begin(tx, None)?;
    }
    Ok(find(tx)?.is_some())
}

/// Returns the path of the panic file, which requests a stop.
pub fn file(home: &Home) -> PathBuf {
    home.path().join(PANIC_FILE)
}

/// Writes the panic file, so that the next start is stopped even if the host dies before it records the stop. If no file can be made,
/// the reserve file is renamed to the panic file.
pub fn ask(home: &Home) -> Result<(), home::Error> {
    if file(home).symlink_metadata().is_ok() {
        return Ok(());
    }
    home::write_private(&file(home), b"").or_else(|error| home::replace(&reserve(home), &file(home)).map_err(|_| error))
}

/// Removes the panic file once the record has the stop. The file becomes the reserve if there is none. A directory of that name is
/// removed if it is empty.
pub fn take_back(home: &Home) -> Result<(), home::Error> {
    let path = file(home);
    let fault = |source| home::Error::Io { path: path.clone(), source };
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(fault)?,
    };
    if found.is_dir() {
        return std::fs::remove_dir(&path).map_err(fault);
    }
    if found.is_file() && reserve(home).symlink_metadata().is_err() {
        return home::replace(&path, &reserve(home));
    }
    home::remove(&path)
}

/// Makes the reserve file if it is missing. Without it a stop still lasts over a restart if the panic file can be made.
pub fn keep_reserve(home: &Home) {
    if reserve(home).symlink_metadata().is_err()
        && let Err(error) = home::write_private(&reserve(home), b"")
    {
        tracing::warn!(%error, "could not make the reserve of the panic file");
    }
}

fn reserve(home: &Home) -> PathBuf {
    home.path().join(PANIC_RESERVE_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_panic_file_and_its_reserve_become_each_other() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::create(&directory.path().join("h")).expect("made");
        let there = |path: PathBuf| path.symlink_metadata().is_ok();
        let found = || (there(file(&home)), there(reserve(&home)));
        keep_reserve(&home);
        ask(&home).expect("a file can be made");
        assert_eq!(found(), (true, true));
        take_back(&home).expect("taken back");
        assert_eq!(found(), (false, true));
        // A reserve that was renamed to request a stop is renamed back.
        fs::rename(reserve(&home), file(&home)).expect("renamed");
        take_back(&home).expect("taken back");
        assert_eq!(found(), (false, true));
        take_back(&home).expect("there is nothing to take back");
        // A directory requests a stop as well. A directory that is not empty is left to its owner.
        fs::create_dir(file(&home)).expect("made");
        ask(&home).expect("the request is already there");
        take_back(&home).expect("it is empty");
        fs::create_dir_all(file(&home).join("full")).expect("made");
        take_back(&home).expect_err("it is not empty");
        assert_eq!(found(), (true, true));
    }
}
