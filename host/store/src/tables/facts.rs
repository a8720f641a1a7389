//! Single facts about this host. Tables: `meta`.

use super::deliveries;
use ironclaw_contract::ids::SessionId;
use ironclaw_state::{Error, ReadTx, WriteTx};
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// A fact: one row of `meta`. The crate [`ironclaw_state`] has other rows there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The id of the current run of the host.
    Running,
    /// The active emergency stop, as JSON.
    Stopped,
    /// The time of the last test write to the record.
    Probed,
    /// The heads of another history that an owner accepted, as JSON. The ledger names them too, and the ledger decides.
    AcceptedHistory,
    /// The generation of the record; a restore begins another one.
    Generation,
    /// The heads of other histories that the record has seen, as JSON.
    OtherHistory,
    /// The newest backup that was begun, as JSON.
    BackupMade,
    /// The newest backup that an owner verified, as JSON.
    BackupVerified,
    /// The name of the default model endpoint.
    DefaultModel,
    /// The number of the last delivery that may have been sent before a restore of the record.
    DoubtfulDeliveries,
    /// The time up to which each time of a schedule was dealt with, by a trusted clock.
    SchedulesAttended,
    /// The sessions that a person stopped, each with its time, as JSON.
    StoppedSessions,
    /// The key of the digests in `server_values`.
    ServerValuesKey,
    /// The origin of the console, as JSON.
    ConsoleOrigin,
}

impl Fact {
    /// Returns the key of its row.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Probed => "probed",
            Self::AcceptedHistory => "accepted_history",
            Self::Generation => "generation",
            Self::OtherHistory => "other_history",
            Self::BackupMade => "backup_made",
            Self::BackupVerified => "backup_verified",
            Self::DefaultModel => "default_model",
            Self::DoubtfulDeliveries => "deliveries_doubtful",
            Self::SchedulesAttended => "schedules_attended",
            Self::StoppedSessions => "sessions_stopped",
            Self::ServerValuesKey => "server_values_key",
            Self::ConsoleOrigin => "console_origin",
        }
    }
}

/// Returns the value of a fact.
pub fn get(tx: &ReadTx<'_>, fact: Fact) -> Result<Option<String>, Error> {
    tx.meta(fact.key())
}

/// Sets a fact, and replaces its earlier value.
pub fn set(tx: &mut WriteTx<'_>, fact: Fact, value: impl Display) -> Result<(), Error> {
    tx.set_meta(fact.key(), &value.to_string())
}

/// Removes a fact, and returns whether it was set.
pub fn remove(tx: &mut WriteTx<'_>, fact: Fact) -> Result<bool, Error> {
    tx.remove_meta(fact.key())
}

/// Returns the generation of the record; the first is 0.
pub fn generation(tx: &ReadTx<'_>) -> Result<u64, Error> {
    let found = get(tx, Fact::Generation)?;
    found.map_or(Ok(0), |text| text.parse().map_err(|_| Error::Stored("meta: generation".to_owned())))
}

/// A backup, by its id and a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFact {
    pub id: String,
    /// Milliseconds since the epoch.
    pub at: i64,
}

/// Returns the backup of a fact.
pub fn backup(tx: &ReadTx<'_>, fact: Fact) -> Result<Option<BackupFact>, Error> {
    let found = get(tx, fact)?.map(|text| serde_json::from_str(&text));
    found.transpose().map_err(|_| Error::Stored(format!("meta: {}", fact.key())))
}

/// Sets the backup of a fact, as of now.
pub fn set_backup(tx: &mut WriteTx<'_>, fact: Fact, id: &str) -> Result<(), Error> {
    let made = BackupFact { id: id.to_owned(), at: tx.wall() };
    set(tx, fact, ironclaw_contract::canonical::to_string(&made))
}

/// Stopped sessions that the record keeps, newest first: a start asks for the few that were active a moment ago.
const STOPPED_SESSIONS_MAX: usize = 256;

/// Returns the sessions that a person stopped, newest first, each with the time of the stop in milliseconds since the epoch.
pub fn stopped_sessions(tx: &ReadTx<'_>) -> Result<Vec<(SessionId, i64)>, Error> {
    get(tx, Fact::StoppedSessions)?
        .map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
        .map_err(|_| Error::Stored("meta: sessions_stopped".to_owned()))
}

/// Records that a person stopped a session now.
pub fn add_stopped_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<(), Error> {
    let mut stopped = stopped_sessions(tx)?;
    stopped.retain(|(before, _)| *before != session);
    stopped.insert(0, (session, tx.now()));
    stopped.truncate(STOPPED_SESSIONS_MAX);
    set(tx, Fact::StoppedSessions, ironclaw_contract::canonical::to_string(&stopped))
}

/// Sets the generation of the record.
pub fn set_generation(tx: &mut WriteTx<'_>, generation: u64) -> Result<(), Error> {
    set(tx, Fact::Generation, generation.to_string())
}

/// Returns the heads of other histories that the record has seen.
pub fn other_history(tx: &ReadTx<'_>) -> Result<Vec<String>, Error> {
    get(tx, Fact::OtherHistory)?
        .map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
        .map_err(|_| Error::Stored("meta: other_history".to_owned()))
}

/// Sets the heads of other histories that the record has seen.
pub fn set_other_history(tx: &mut WriteTx<'_>, heads: &[String]) -> Result<(), Error> {
    set(tx, Fact::OtherHistory, ironclaw_contract::canonical::to_string(&heads))
}

/// Records for a restored record the last delivery: open deliveries up to it may have been sent in the other history.
pub fn doubt_deliveries(tx: &mut WriteTx<'_>) -> Result<(), Error> {
    let last = deliveries::last_rowid(tx)?;
    set(tx, Fact::DoubtfulDeliveries, last.to_string())
}

/// Returns whether the record was restored and nothing was sent since.
pub fn is_in_doubt(tx: &ReadTx<'_>) -> Result<bool, Error> {
    Ok(get(tx, Fact::DoubtfulDeliveries)?.is_some())
}

/// Deletes the number up to which open deliveries may have been sent in another history, and returns it.
pub fn take_doubtful_deliveries(tx: &mut WriteTx<'_>) -> Result<Option<i64>, Error> {
    let found = get(tx, Fact::DoubtfulDeliveries)?;
    remove(tx, Fact::DoubtfulDeliveries)?;
    found.map(|text| text.parse().map_err(|_| Error::Stored("meta: deliveries_doubtful".to_owned()))).transpose()
}

/// Returns the time up to which each time of a schedule was dealt with, in milliseconds since the epoch.
pub fn schedules_attended(tx: &ReadTx<'_>) -> Result<Option<i64>, Error> {
    let found = get(tx, Fact::SchedulesAttended)?;
    found.map(|text| text.parse().map_err(|_| Error::Stored("meta: schedules_attended".to_owned()))).transpose()
}
