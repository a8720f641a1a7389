//! The start of an attempt: a delivery is taken up with everything that its send needs, or settled if it can never be sent.
//!
//! An answer to another agent is recorded as a message of the session that asked, and never leaves the host. See [`super::Dispatcher`].

use super::Dispatch;
use crate::channels::agent_messages::{AGENT, Keys, answer};
use crate::channels::inbound::channel::Receiver;
use crate::channels::inbound::channel::outgoing::File;
use crate::channels::notifications;
use crate::channels::outbound::attempts::Outcome;
use crate::channels::outbound::delivery::{self, sent_files};
use crate::channels::outbound::journal;
use crate::registry;
use crate::registry::channels::{self, Channel};
use crate::registry::destinations::{self, Destination, State};
use crate::registry::places::place_of;
use crate::sessions::store::{self, Origin, Session};
use crate::turns::items;
use ironclaw_contract::ids::{DeliveryId, MessageId};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::deliveries::{self, Delivery, DeliveryState, Payload, SentItem, Told};
use ironclaw_store::tables::messages;

/// The reason for a failed answer to an agent.
pub(super) const ASKING_REMOVED: &str = "the session that asked was removed";

/// A delivery that was taken up, with everything that its send needs.
pub(super) struct Outgoing {
    pub(super) delivery: Delivery,
    pub(super) attempt: u32,
    pub(super) to: Receiver,
    pub(super) idempotent: bool,
    pub(super) content: Content,
}

pub(super) struct Content {
    /// As in [`Body`](crate::channels::inbound::channel::outgoing::Body).
    pub(super) kind: &'static str,
    pub(super) message_ids: Vec<String>,
    pub(super) text: String,
    pub(super) files: Vec<File>,
}

/// The reason against a send.
enum Unsent {
    /// The delivery can never be sent, and has this outcome.
    Never(Outcome),
    /// An error of the host.
    Failed(Error),
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ironclaw_state::Error> for Unsent {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::Failed(error.into())
    }
}

fn never(why: &str) -> Unsent {
    Unsent::Never(Outcome::Failed(why.to_owned()))
}

impl Dispatch {
    /// Takes a delivery up. Returns `None` if it no longer waits, if it needs no send, or if it can never be sent and is settled.
    pub(super) fn take_up(&self, tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<Outgoing>, Error> {
        let waits = |found: &Delivery| found.state == DeliveryState::Intent;
        let Some(delivery) = journal::find(tx, id)?.filter(waits) else { return Ok(None) };
        let outgoing = match &delivery.payload {
            Payload::Item(sent) => self.take_up_item(tx, &delivery, sent),
            Payload::Notification(told) => self.take_up_notification(tx, &delivery, told),
        };
        match outgoing {
            Ok(outgoing) => Ok(outgoing),
            Err(Unsent::Never(outcome)) => self.settle(tx, &delivery, &outcome).map(|()| None),
            Err(Unsent::Failed(error)) => Err(error),
        }
    }

    fn take_up_item(
        &self,
        tx: &mut WriteTx<'_>,
        delivery: &Delivery,
        sent: &SentItem,
    ) -> Result<Option<Outgoing>, Unsent> {
        let gone = || never("its session no longer exists");
        let session = store::find(tx, sent.session)?.ok_or_else(gone)?;
        let item = items::find(tx, sent.item)?.ok_or_else(|| never("its text is no longer kept"))?;
        let key = session.content_key(&self.record.wrapping).map_err(|_| never("cannot open the session's key"))?;
        let text = match delivery::text_to_send(tx, sent, &item, &key) {
            // A later attempt cannot read it either.
            Err(error) if error.is_damage() => {
                return Err(never("cannot read its text"));
            }
            text => text?,
        };
        let is_notice = item.tuple.kind == ItemKind::Notice;
        if delivery.channel == AGENT {
            let gone = || never("its agent is no longer there");
            let agent = registry::agent_by_id(tx, session.agent)?.ok_or_else(gone)?;
            return match answer::route(tx, delivery.id, sent, &agent, &text, is_notice, self.keys())? {
                true => Ok(None),
                false => Err(never(ASKING_REMOVED)),
            };
        }
        if !is_destination_held(tx, delivery, sent, &session)? {
            let why = "the destination was removed, or its address is no longer linked to the same person";
            return Err(never(why));
        }
        let copied = sent.call.map(|call| sent_files::read(tx, call, &key)).transpose()?.flatten();
        let answered = sent.turn.map(|turn| messages::asking_of_turn(tx, turn)).transpose()?.unwrap_or_default();
        let content = Content {
            kind: match (sent.call, is_notice) {
                (Some(_), _) => "message",
                (None, true) => "notice",
                (None, false) => "reply",
            },
            message_ids: answered.iter().map(MessageId::to_string).collect(),
            text,
            files: copied.map(|(file, content)| File::new(file, &content)).into_iter().collect(),
        };
        self.take_up_with(tx, delivery.clone(), content)
    }

    /// Takes a notification up, at the place where its person is told now.
    fn take_up_notification(
        &self,
        tx: &mut WriteTx<'_>,
        delivery: &Delivery,
        told: &Told,
    ) -> Result<Option<Outgoing>, Unsent> {
        let unplaced = || Unsent::Never(Outcome::Unplaced("the person has no place".to_owned()));
        let place = place_of(tx, told.person)?.ok_or_else(unplaced)?;
        let is_there = (&place.identity.channel, &place.identity.sender, Some(place.generation))
            == (&delivery.channel, &delivery.recipient, delivery.generation);
        let moved = match is_there {
            true => Some(delivery.clone()),
            // The earlier place may have it.
            false if delivery.attempts > 0 => return Err(never("the person has another place now")),
            false => deliveries::move_to(tx, delivery.id, &place)?,
        };
        let Some(delivery) = moved else { return Ok(None) };
        let text = notifications::line(told.about, &told.subject);
        let content = Content { kind: "notification", message_ids: Vec::new(), text, files: Vec::new() };
        self.take_up_with(tx, delivery, content)
    }

    fn take_up_with(
        &self,
        tx: &mut WriteTx<'_>,
        delivery: Delivery,
        content: Content,
    ) -> Result<Option<Outgoing>, Unsent> {
        let channel = channel_of(tx, &delivery)?.ok_or_else(|| never("the channel was removed"))?;
        let unusable = |_| never("cannot open the channel's secret, or its address is invalid");
        let to = Receiver::new(&channel, &self.record.wrapping).map_err(unusable)?;
        let attempt = journal::take_up(tx, &delivery)?;
        Ok(attempt.map(|attempt| Outgoing { delivery, attempt, to, idempotent: channel.idempotent, content }))
    }

    pub(super) fn keys(&self) -> Keys<'_> {
        Keys { wrapping: &self.record.wrapping, sealer: &self.record.sealer }
    }
}

/// Returns whether the agent still has the destination of a message. Other deliveries have none.
fn is_destination_held(
    tx: &ReadTx<'_>,
    delivery: &Delivery,
    sent: &SentItem,
    session: &Session,
) -> Result<bool, ironclaw_state::Error> {
    let Origin { channel, platform_id, thread_id, .. } = &session.origin;
    let is_of_origin = (channel, platform_id, thread_id) == (&delivery.channel, &delivery.recipient, &delivery.thread);
    if sent.call.is_none() || is_of_origin {
        return Ok(true);
    }
    let is_same = |held: &Destination| {
        held.channel == delivery.channel && held.address == delivery.recipient && held.state == State::Active
    };
    Ok(destinations::list_for_agent(tx, session.agent)?.iter().any(is_same))
}

/// Finds the channel of a delivery. A channel that was made later under the same name is a different one.
pub(super) fn channel_of(tx: &ReadTx<'_>, delivery: &Delivery) -> Result<Option<Channel>, ironclaw_state::Error> {
    Ok(channels::find(tx, &delivery.channel)?.filter(|channel| delivery.generation == Some(channel.generation)))
}
