//! The reasons for notifications, and the places where people are told. Tables: `notification_places`. The notifications are in
//! [`super::deliveries`].

use super::people::Identity;
use crate::rows::rows;
use ironclaw_contract::ids::PersonId;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

ironclaw_contract::words! {
    /// The reason for a notification.
    pub enum About {
        /// A call, a question or a change waits for the person.
        Waits = "waits",
        /// What waits for the person ends soon.
        EndsSoon = "ends_soon",
        /// An approved call was not made.
        ApprovalUnused = "approval_unused",
        /// The outcome of an approved call is unknown.
        CallUnknown = "call_unknown",
        /// A task of the person stops at a bound.
        TaskStopped = "task_stopped",
        /// A session is parked or quarantined.
        SessionIncident = "session_incident",
        /// A run of a schedule answered its person on this host, and the person did not read it.
        ScheduleReply = "schedule_reply",
        ScheduleIncident = "schedule_incident",
        /// A schedule that failed runs again.
        ScheduleRecovery = "schedule_recovery",
        /// The schedules are paused, because the record was restored.
        SchedulesPaused = "schedules_paused",
        /// The login at an MCP server ended.
        LoginEnded = "login_ended",
        /// The record was restored from an earlier state.
        RecordRestored = "record_restored",
        /// Senders of a channel wait for a person.
        SenderWaits = "sender_waits",
        /// A head of the ledger could not be kept outside of the home.
        HeadNotKept = "head_not_kept",
    }
}

impl About {
    /// Returns whether a person is told only once about an object for this reason. For the others, a person is not told again while an
    /// earlier notification waits.
    pub const fn is_once(self) -> bool {
        match self {
            Self::Waits | Self::EndsSoon | Self::ApprovalUnused | Self::CallUnknown | Self::TaskStopped => true,
            Self::SessionIncident
            | Self::ScheduleReply
            | Self::ScheduleIncident
            | Self::ScheduleRecovery
            | Self::SchedulesPaused
            | Self::LoginEnded
            | Self::RecordRestored
            | Self::SenderWaits
            | Self::HeadNotKept => false,
        }
    }
}

ironclaw_contract::stored_as_text!(About);

rows! {
    /// The address of a notification: an identity on one generation of a channel.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Place {
        /// The identity of the person.
        pub identity: Identity as row,
        /// The generation of the channel, which tells channels of the same name apart.
        pub generation: i64,
    }
}

pub fn place_of(tx: &ReadTx<'_>, person: PersonId) -> Result<Option<Place>, Error> {
    let sql = "SELECT channel, sender, generation FROM notification_places JOIN channels ON name = channel \
               WHERE person_id = ?1";
    tx.find(sql, [person], Place::read)
}

/// Returns the people who have a place, each with the identity.
pub fn places(tx: &ReadTx<'_>) -> Result<Vec<(PersonId, Identity)>, Error> {
    tx.list("SELECT * FROM notification_places ORDER BY person_id", [], |row| {
        Ok((row.get("person_id")?, Identity::read(row)?))
    })
}

/// Sets the place of a person, and replaces the earlier one.
pub fn set_place(tx: &mut WriteTx<'_>, person: PersonId, place: &Identity) -> Result<(), Error> {
    let sql = "INSERT INTO notification_places (person_id, channel, sender) VALUES (?1,?2,?3) \
               ON CONFLICT (person_id) DO UPDATE SET channel = ?2, sender = ?3";
    tx.execute(sql, params![person, place.channel, place.sender]).map(drop)
}

/// Removes the place of a person, and returns whether there was one.
pub fn remove_place(tx: &mut WriteTx<'_>, person: PersonId) -> Result<bool, Error> {
    Ok(tx.execute("DELETE FROM notification_places WHERE person_id = ?1", [person])? > 0)
}
