//! The stages of a message, each implemented by a module below.
//!
//! [`Inbound::inbound`] and [`Outbound::outbound`] are the two functions to read first. This module has no rule of its own: the type of
//! each stage admits only the result of the stage before. See [`crate::runtime::actor`].

mod retry;

use crate::channels::inbound::channel::Received;
use crate::channels::inbound::inbox::{self, Recorded, events};
use crate::channels::inbound::{identity, routing};
use crate::channels::outbound::delivery::{self, Delivery};
use crate::channels::outbound::dispatch::Dispatch;
use crate::gateway::waiting::Gateway;
use crate::registry::latch::Latch;
use crate::registry::live_settings::Live;
use crate::runtime::accept::{self, Acceptance, Accepted};
use crate::sessions::Wake;
use crate::sessions::store::{Session, SessionState};
use crate::turns::open_turns::OpenTurns;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_contract::seam::outbound::RawRow;
use ironclaw_contract::seam::untrusted::Untrusted;
use ironclaw_operator::DenialCode;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::{WriteTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Decide, Denied};
use ironclaw_store::tables::deliveries::DeliveryState;
use std::sync::Arc;

/// The path of a message from a channel to its session.
#[derive(Clone)]
pub struct Inbound {
    /// The record of the messages.
    pub record: Arc<Record>,
    /// Have the quotas of people and channels.
    pub settings: Arc<Live>,
    /// The bound on the number of sessions.
    pub sessions_max: u32,
    /// Wakes the sessions of the messages.
    pub wake: Arc<dyn Wake>,
}

/// The time at which a sender learns that their message is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// As soon as it is recorded.
    AtOnce,
    /// With its answer, or at the end of a wait for it. The message may share the commit of the turn that it opens.
    WithAnswer,
}

/// The place of the files of a message.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The session of the message.
    pub session: SessionId,
    pub person: PersonId,
    /// True if the message asks for an answer. The host keeps no files of any other message.
    pub asks: bool,
}

impl Inbound {
    /// Takes one message through identity, routing and recording, and wakes its session.
    ///
    /// A new message that is confirmed with its answer is not on disk yet: until then it counts as not received.
    ///
    /// # Errors
    /// Refuses the message at each stage. The caller records refusals in the ledger at a bounded rate, because a sender can cause any
    /// number of them.
    pub async fn inbound(&self, received: Received, confirmation: Confirmation) -> Result<Recorded, Denied<Error>> {
        let (record, settings, sessions_max) = (Arc::clone(&self.record), self.settings.now(), self.sessions_max);
        let (channel, sender) = (received.channel.clone(), received.sender.clone());
        let recorded = self
            .record
            .state
            .decide(move |tx| {
                let quota = &settings.quota;
                inbox::check(&received)?;
                let event = events::Event::from_received(&received);
                if let Some(event) = &event
                    && let Some(seen) = event.seen(tx)?
                {
                    return Ok(seen);
                }
                let authenticated = identity::authenticate(tx, received)?;
                // Before a session is made for the message.
                if !inbox::is_known(tx, authenticated.received())? {
                    let (person, received) = (authenticated.sender_id(), authenticated.received());
                    quota.admit_message(tx, person, &received.channel, inbox::bytes(received) as u64)?;
                }
                let routed = routing::route(tx, authenticated, quota, sessions_max, &record.wrapping)?;
                let recorded = inbox::record(tx, &routed, &record.wrapping, &record.sealer)?;
                if let Some(event) = event {
                    event.note(tx, &recorded)?;
                }
                // A halted session opens no turn, so no later commit of it follows.
                let is_active = routed.session().standing == SessionState::Active;
                if confirmation == Confirmation::WithAnswer && is_active && !recorded.again {
                    tx.defer();
                }
                Ok::<_, Denied<Error>>(recorded)
            })
            .await;
        self.record_stranger(recorded.as_ref().err(), channel, sender).await?;
        let recorded = recorded?;
        failpoint::reach("record");
        self.wake.wake(recorded.session);
        Ok(recorded)
    }

    /// Takes a message through identity and routing, and returns its session and its person, so that its files can be put there before
    /// it is recorded. `bytes` is its size with these files.
    ///
    /// # Errors
    /// Refuses the message at each stage, as [`Self::inbound`] does.
    pub async fn place_of(&self, received: Received, bytes: u64) -> Result<Place, Denied<Error>> {
        let (record, settings, sessions_max) = (Arc::clone(&self.record), self.settings.now(), self.sessions_max);
        let (channel, sender) = (received.channel.clone(), received.sender.clone());
        let found = self
            .record
            .state
            .decide(move |tx| {
                inbox::check(&received)?;
                let authenticated = identity::authenticate(tx, received)?;
                let person = authenticated.sender_id();
                if !inbox::is_known(tx, authenticated.received())? {
                    settings.quota.admit_message(tx, person, &authenticated.received().channel, bytes)?;
                }
                let routed = routing::route(tx, authenticated, &settings.quota, sessions_max, &record.wrapping)?;
                Ok::<_, Denied<Error>>(Place { session: routed.session().id, person, asks: routed.asks() })
            })
            .await;
        self.record_stranger(found.as_ref().err(), channel, sender).await?;
        found
    }

    /// Notes a stranger whose message was refused because they wait for a person. A refused message leaves nothing in its own transaction.
    async fn record_stranger(
        &self,
        refused: Option<&Denied<Error>>,
        channel: String,
        sender: String,
    ) -> Result<(), Denied<Error>> {
        match refused {
            Some(Denied::Refused(refusal)) if refusal.code == DenialCode::SenderWaits => {
                let note =
                    move |tx: &mut WriteTx<'_>| Ok::<_, Error>(identity::record_stranger(tx, &channel, &sender)?);
                Ok(self.record.state.write(note).await?)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Takes an origin through identity and routing, and returns the session of its messages. Records no message.
    ///
    /// # Errors
    /// Refuses the origin at each stage, as [`Self::inbound`] does.
    pub async fn session_of(&self, origin: Received) -> Result<SessionId, Denied<Error>> {
        let (record, settings, sessions_max) = (Arc::clone(&self.record), self.settings.now(), self.sessions_max);
        self.record
            .state
            .decide(move |tx| {
                let authenticated = identity::authenticate(tx, origin)?;
                let routed = routing::route(tx, authenticated, &settings.quota, sessions_max, &record.wrapping)?;
                Ok::<_, Denied<Error>>(routed.session().id)
            })
            .await
    }
}

/// The path of a reply from a row of a sandbox to its receipt.
pub struct Outbound {
    /// The open turns, with the record.
    pub turns: Arc<OpenTurns>,
    /// Takes the changes that agents request, and the questions that they ask.
    pub gateway: Arc<Gateway>,
    /// Holds deliveries back during an emergency stop.
    pub latch: Arc<Latch>,
    /// Sends deliveries over the network.
    pub dispatch: Arc<Dispatch>,
}

/// The outbound queue that a row was read from.
pub struct Queue<'a> {
    /// The session that owns it.
    pub session: &'a Arc<Session>,
    /// Opens the contents of the session.
    pub key: &'a Arc<ContentKey>,
    /// The number of the last taken row.
    pub cursor: &'a mut u64,
}

impl Outbound {
    /// Takes one row of a sandbox: judges and records it with all its effects in one transaction, and then delivers the reply if the row
    /// closes the turn. Compares the rows that the reader saw again with their digests before.
    ///
    /// # Errors
    /// Fails on an error of the host. The refusal of a row is recorded and is no error.
    pub async fn outbound(
        self: &Arc<Self>,
        queue: Queue<'_>,
        seen: Vec<(u64, Digest)>,
        row: Untrusted<RawRow>,
    ) -> Result<Accepted, Error> {
        let (own, session, key) = (Arc::clone(self), Arc::clone(queue.session), Arc::clone(queue.key));
        let accept = self.turns.record.state.write(move |tx| {
            let limits = &own.turns.config();
            // An emergency stop leaves the reply as an intent, which the host finds after the stop.
            let receives_here = !own.latch.is_shut();
            let gateway = &*own.gateway;
            let judge = Acceptance { gateway, limits, session: &session, key: &key, receives_here };
            if let Some(what) = accept::check_taken(tx, judge.session, &seen)? {
                return Ok((Accepted::Violation(what), 0, false));
            }
            let (accepted, cursor) = judge.accept(tx, row)?;
            let is_received = match &accepted {
                Accepted::Closed { delivery, .. } => receive_here(tx, delivery, receives_here)?,
                Accepted::Called | Accepted::Refused | Accepted::Violation(_) => false,
            };
            Ok::<_, Error>((accepted, cursor, is_received))
        });
        let (accepted, cursor, is_received) = accept.await?;
        *queue.cursor = cursor;
        if is_received {
            failpoint::reach("receipt");
        } else {
            failpoint::reach("accept");
        }
        match &accepted {
            // The call may have asked for something, which ends in time.
            Accepted::Called => self.gateway.bells.ends.notify_one(),
            Accepted::Closed { delivery, .. } => {
                self.turns.partial_outputs.end(queue.session.id);
                if !is_received {
                    // The intent is recorded, so the host finds the delivery again after a crash.
                    failpoint::reach("intent");
                    self.deliver(delivery.as_ref().clone()).await?;
                }
            }
            Accepted::Refused | Accepted::Violation(_) => {}
        }
        Ok(accepted)
    }

    /// Completes a delivery on this host and records its receipt. Leaves any other delivery to the
    /// [`Dispatcher`](crate::channels::outbound::dispatch::Dispatcher), because no session waits for a network.
    ///
    /// # Errors
    /// Fails if the receipt cannot be recorded.
    pub async fn deliver(&self, delivery: Delivery) -> Result<(), Error> {
        if self.latch.is_shut() {
            // The intent is in the record, and the host finds it there after the emergency stop.
            return Ok(());
        }
        if delivery.over_network {
            self.dispatch.wake();
            return Ok(());
        }
        failpoint::reach("send");
        // The ledger entry of the receipt wakes the API's clients that wait for it.
        self.turns.record.state.write(move |tx| delivery::receive(tx, &delivery)).await?;
        failpoint::reach("receipt");
        Ok(())
    }
}

/// Records the receipt of a delivery that stays on this host, in the transaction of its intent. Returns false for any other delivery, and
/// if this transaction does not record receipts.
fn receive_here(tx: &mut WriteTx<'_>, delivery: &Delivery, receives_here: bool) -> Result<bool, Error> {
    if delivery.over_network || !receives_here {
        return Ok(false);
    }
    // A crash at one of these points leaves no part of the transaction.
    for point in ["accept", "intent", "send"] {
        failpoint::reach(point);
    }
    if delivery.state == DeliveryState::Received {
        delivery::record_receipt(tx, delivery)?;
    } else {
        delivery::receive(tx, delivery)?;
    }
    Ok(true)
}
