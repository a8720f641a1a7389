//! Notifications: deliveries to people, each about an object and without a session.

use super::{Delivery, DeliveryState};
use crate::rows::rows;
use crate::tables::notifications::{About, Place};
use ironclaw_contract::ids::{DeliveryId, PersonId};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;

rows! {
    /// The person and the object of a notification.
    #[derive(Debug, Clone)]
    pub struct Told {
        pub person: PersonId = "person_id",
        pub about: About,
        /// The id or name of the object.
        pub subject: String,
    }
}

/// Returns the states of the notifications of a person for this reason and object, oldest first.
pub fn states_for_subject(tx: &ReadTx<'_>, told: &Told) -> Result<Vec<DeliveryState>, Error> {
    let sql = "SELECT state FROM deliveries WHERE subject = ?1 AND about = ?2 AND person_id = ?3 ORDER BY rowid";
    tx.list(sql, params![told.subject, told.about, told.person], |row| row.get(0))
}

/// Returns the notifications about an object that wait to be sent, oldest first.
pub fn waiting_about(tx: &ReadTx<'_>, subject: &str) -> Result<Vec<Delivery>, Error> {
    let sql =
        "SELECT * FROM deliveries WHERE subject = ?1 AND person_id IS NOT NULL AND state = 'intent' ORDER BY rowid";
    tx.list(sql, [subject], Delivery::read)
}

/// Marks the notifications in flight about an object that ended: they get no further attempt.
pub fn mark_obsolete(tx: &mut WriteTx<'_>, subject: &str) -> Result<(), Error> {
    let sql =
        "UPDATE deliveries SET is_obsolete = 1 WHERE subject = ?1 AND person_id IS NOT NULL AND state = 'sending'";
    tx.execute(sql, [subject]).map(drop)
}

/// Returns whether the object of a delivery ended while it was in flight.
pub fn is_obsolete(tx: &ReadTx<'_>, id: DeliveryId) -> Result<bool, Error> {
    Ok(tx.find("SELECT 1 FROM deliveries WHERE id = ?1 AND is_obsolete = 1", [id], |_| Ok(()))?.is_some())
}

/// Moves a waiting notification to this place, and returns its row.
pub fn move_to(tx: &mut WriteTx<'_>, id: DeliveryId, place: &Place) -> Result<Option<Delivery>, Error> {
    let sql = "UPDATE deliveries SET channel = ?2, platform_id = ?3, generation = ?4 WHERE id = ?1 AND state = 'intent' RETURNING *";
    let values = params![id, place.identity.channel, place.identity.sender, place.generation];
    tx.returning(sql, values, Delivery::read)
}

/// Deletes at most `most` notifications that were settled at `until` or before.
pub fn forget_settled(tx: &mut WriteTx<'_>, until: i64, most: i64) -> Result<usize, Error> {
    let sql = "DELETE FROM deliveries WHERE rowid IN \
               (SELECT rowid FROM deliveries WHERE person_id IS NOT NULL AND settled_at <= ?1 LIMIT ?2)";
    tx.execute(sql, params![until, most])
}
