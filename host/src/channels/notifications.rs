//! Notifications: one line for a person about an object of this host, at the place where the person is told.
//!
//! A notification has the kind and the id of its object, and never content: its channel may be read by others. It is a row in the
//! transaction of its reason; [`crate::channels::outbound::dispatch`] sends it. See [`crate::registry::places`] for the places.

pub use ironclaw_store::tables::notifications::About;

use crate::channels::outbound::journal;
use crate::registry::places::place_of;
use crate::registry::{self, Role};
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::WaitingId;
use ironclaw_state::WriteTx;
use ironclaw_store::tables::deliveries::{self, DeliveryState, NewDelivery, Payload, Told};
use ironclaw_store::tables::destinations::ReplyAddress;
use ironclaw_store::times::{DAY_MS, HOUR_MS};
use std::fmt::Display;

/// Milliseconds after which a settled notification is deleted.
const KEPT_MS: i64 = 90 * DAY_MS;

/// The bound on settled notifications that one new notification deletes.
const FORGOTTEN_AT_ONCE_MAX: i64 = 64;

/// The longest time before the end of an object at which people are told that it expires.
const LAST_MS_MAX: i64 = HOUR_MS;

/// The reason for a notification, and its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub about: About,
    /// The id of the object, or its name if it has no id.
    pub id: String,
}

impl Notification {
    /// Makes a notification about an object, by its id.
    pub fn new(about: About, object: impl Display) -> Self {
        Self { about, id: object.to_string() }
    }
}

/// Returns the line that a person is sent: the kind of the object, its id, and the command that shows it.
pub fn line(about: About, id: &str) -> String {
    let words = match about {
        About::Waits => format!("{} {id} waits for you: ironctl inbox", noun(id)),
        About::EndsSoon => format!("{} {id} ends soon: ironctl inbox", noun(id)),
        About::ApprovalUnused => format!("request {id} was approved, and its call was not made: ironctl why {id}"),
        About::CallUnknown => format!("the outcome of request {id} is unknown: ironctl why {id}"),
        About::TaskStopped => format!("the task of {id} stopped; say \"continue\" to go on: ironctl why {id}"),
        About::SessionIncident => format!("session {id} is halted: ironctl session show {id}"),
        About::ScheduleReply => format!("schedule {id} answered you: ironctl inbox"),
        About::ScheduleIncident => format!("schedule {id} failed: ironctl schedule history {id}"),
        About::ScheduleRecovery => format!("schedule {id} runs again: ironctl schedule history {id}"),
        About::SchedulesPaused => "schedules are paused after a restore: ironctl schedule list".to_owned(),
        About::LoginEnded => format!("the login at MCP server {id} ended: ironctl mcp login {id}"),
        About::RecordRestored => "the record was restored from an earlier state: ironctl status".to_owned(),
        About::SenderWaits => format!("a sender of channel {id} is linked to no person: ironctl channel list"),
        About::HeadNotKept => "a head of the ledger was not kept outside of the home: ironctl status".to_owned(),
    };
    format!("IronClaw: {words}")
}

/// Returns the noun of what waits, by its id.
fn noun(id: &str) -> &'static str {
    id.parse::<WaitingId>().map_or("request", |id| id.kind().name())
}

/// Records a notification of a person, in the transaction of its reason. It waits, or it ends at once if the person has no place. A
/// person gets no second notification for the same reason about the same object: see [`About`]. A removed person gets none. `now` is in
/// milliseconds since the epoch.
pub fn add(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    notification: Notification,
    now: i64,
) -> Result<(), ironclaw_state::Error> {
    add_for(tx, person, notification, now, None)
}

/// Records a notification as [`add`] does. It is sent after `wait_ms` milliseconds at the earliest, unless it is withdrawn before.
pub fn add_later(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    notification: Notification,
    now: i64,
    wait_ms: i64,
) -> Result<(), ironclaw_state::Error> {
    add_for(tx, person, notification, now, Some(now + wait_ms))
}

fn add_for(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    notification: Notification,
    now: i64,
    not_before: Option<i64>,
) -> Result<(), ironclaw_state::Error> {
    let Notification { about, id: subject } = notification;
    if registry::person_by_id(tx, person)?.is_none() {
        return Ok(());
    }
    let told = Told { person, about, subject };
    let is_open = |state: &DeliveryState| matches!(state, DeliveryState::Intent | DeliveryState::Sending);
    if deliveries::states_for_subject(tx, &told)?.iter().any(|state| about.is_once() || is_open(state)) {
        return Ok(());
    }
    deliveries::forget_settled(tx, now - KEPT_MS, FORGOTTEN_AT_ONCE_MAX)?;
    let place = place_of(tx, person)?.map(|place| place.identity);
    let state = if place.is_some() { DeliveryState::Intent } else { DeliveryState::Unplaced };
    let to = place.map_or_else(ReplyAddress::default, |place| ReplyAddress {
        channel: place.channel,
        sender: place.sender,
        ..ReplyAddress::default()
    });
    let payload = Payload::Notification(told);
    journal::intend(tx, NewDelivery { payload, to: &to, over_network: true, state, not_before }, None).map(drop)
}

/// Records a notification of a person who does not need another one while nothing changed: the newest one for this reason was recorded
/// while the person had a place, or there is still no place. Returns without one then.
pub fn add_unless_told(
    tx: &mut WriteTx<'_>,
    person: PersonId,
    notification: Notification,
    now: i64,
) -> Result<(), ironclaw_state::Error> {
    let told = Told { person, about: notification.about, subject: notification.id.clone() };
    let is_told = match deliveries::states_for_subject(tx, &told)?.last() {
        Some(DeliveryState::Unplaced) => place_of(tx, person)?.is_none(),
        Some(_) => true,
        None => false,
    };
    if is_told { Ok(()) } else { add(tx, person, notification, now) }
}

/// Records a notification of each owner and admin: for an incident that concerns no single person.
pub fn add_for_operators(
    tx: &mut WriteTx<'_>,
    notification: &Notification,
    now: i64,
) -> Result<(), ironclaw_state::Error> {
    add_for_operators_and(tx, None, notification, now)
}

/// Records a notification of each owner and admin, and of this person: for an incident of the person's conversation. Each is told once.
pub fn add_for_operators_and(
    tx: &mut WriteTx<'_>,
    concerned: Option<PersonId>,
    notification: &Notification,
    now: i64,
) -> Result<(), ironclaw_state::Error> {
    for person in registry::people(tx)? {
        if person.role.covers(Role::Admin) || Some(person.id) == concerned {
            add(tx, person.id, notification.clone(), now)?;
        }
    }
    Ok(())
}

/// Records a notification of each owner and admin about a head of the ledger that was not kept outside.
pub fn head_not_kept(tx: &mut WriteTx<'_>) -> Result<(), ironclaw_state::Error> {
    let now = tx.wall();
    add_for_operators(tx, &Notification::new(About::HeadNotKept, "head"), now)
}

/// Withdraws the notifications about an object that wait to be sent, because it was decided or ended. One in flight is sent.
pub fn withdraw(tx: &mut WriteTx<'_>, object: impl Display) -> Result<(), ironclaw_state::Error> {
    journal::withdraw(tx, &object.to_string())
}

/// Returns the time at which people are told that an object expires soon: before the last quarter of its life, and at most an hour before
/// its end. All times are in milliseconds since the epoch.
pub const fn remind_at(created_at: i64, expires_at: i64) -> i64 {
    let quarter = (expires_at - created_at) / 4;
    expires_at - if quarter < LAST_MS_MAX { quarter } else { LAST_MS_MAX }
}

#[cfg(test)]
mod tests;
