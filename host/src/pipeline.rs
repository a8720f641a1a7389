//! The way of a message through the stages, which the modules below decide.
//!
//! [`Inbound::inbound`] and [`Outbound::outbound`] are the two functions to read first. Holds no rule of its own: each stage's type admits
//! only what the stage before made. Next: `runtime::actor`.

mod retry;

use crate::error::Error;
use crate::gateway::proposals::Proposals;
use crate::inbound::channel::{Received, loopback};
use crate::inbound::inbox::{self, Recorded, events};
use crate::inbound::{identity, routing};
use crate::latch::Latch;
use crate::open_turns::OpenTurns;
use crate::outbound::accept::{Acceptance, Accepted};
use crate::outbound::delivery::{self, Delivery};
use crate::outbound::dispatch::Dispatch;
use crate::outbound::receipts::Unreceipted;
use crate::quota;
use crate::record::Record;
use crate::refusal::{Decide, Denied};
use crate::session::Wake;
use crate::session::store::Session;
use ironclaw_contract::seam::outbound::RawRow;
use ironclaw_contract::seam::untrusted::Untrusted;
use ironclaw_state::failpoint;
use ironclaw_state::keys::ContentKey;
use std::sync::Arc;

/// The way in: from a channel to the session that a message is for.
#[derive(Clone)]
pub struct Inbound {
    /// The record that messages are written to.
    pub record: Arc<Record>,
    /// What one person and one channel may have.
    pub quota: quota::Config,
    /// Sessions that there can be.
    pub sessions_max: u32,
    /// Wakes the sessions that messages are for.
    pub wake: Arc<dyn Wake>,
}

impl Inbound {
    /// Takes one message through identity, routing and recording, and wakes its session.
    ///
    /// # Errors
    /// Refuses it at each stage. The caller records the refusal in the ledger, at a bounded rate: a sender can ask for it at will.
    pub async fn inbound(&self, received: Received) -> Result<Recorded, Denied<Error>> {
        let (record, quota, sessions_max) = (Arc::clone(&self.record), self.quota.clone(), self.sessions_max);
        let recorded = self
            .record
            .state
            .decide(move |tx| {
                inbox::check(&received)?;
                let event = events::Event::of(&received);
                if let Some(event) = &event
                    && let Some(seen) = event.seen(tx)?
                {
                    return Ok(seen);
                }
                let authenticated = identity::authenticate(tx, received)?;
                // Before a conversation is made for it.
                if !inbox::is_known(tx, authenticated.received())? {
                    let (person, received) = (authenticated.person().id, authenticated.received());
                    quota.admit_message(tx, person, &received.channel, inbox::bytes(received) as u64)?;
                }
                let routed = routing::route(tx, authenticated, (&quota, sessions_max), &record.wrapping)?;
                let recorded = inbox::record(tx, &routed, &record.wrapping, &record.sealer)?;
                if let Some(event) = event {
                    event.note(tx, &recorded)?;
                }
                Ok::<_, Denied<Error>>(recorded)
            })
            .await?;
        failpoint::reach("record");
        self.wake.wake(recorded.session);
        Ok(recorded)
    }
}

/// The way out: from a row of a sandbox to the receipt of what it says.
pub struct Outbound {
    /// The turns that rows belong to, with the record.
    pub turns: Arc<OpenTurns>,
    /// Takes the changes that agents ask for.
    pub proposals: Arc<Proposals>,
    /// Keeps answers from being delivered.
    pub latch: Arc<Latch>,
    /// Sends what goes out by a network.
    pub dispatch: Arc<Dispatch>,
}

/// The outbound queue that a row was read from.
pub struct Queue<'a> {
    /// The session that owns it.
    pub session: &'a Arc<Session>,
    /// Opens the contents of the session.
    pub key: &'a Arc<ContentKey>,
    /// The number of the last row that was taken.
    pub cursor: &'a mut u64,
    /// Answers whose receipt the sandbox was not told.
    pub unreceipted: &'a mut Unreceipted,
}

impl Outbound {
    /// Takes one row of a sandbox from its queue to the receipt of what it says: judged and recorded with all its effects in one
    /// transaction, then delivered if it closes the turn.
    ///
    /// # Errors
    /// Those of the host. The refusal of a row is recorded and is no error.
    pub async fn outbound(self: &Arc<Self>, queue: Queue<'_>, row: Untrusted<RawRow>) -> Result<Accepted, Error> {
        let (own, session, key) = (Arc::clone(self), Arc::clone(queue.session), Arc::clone(queue.key));
        let accept = self.turns.record.state.write(move |tx| {
            let (proposals, limits) = (&*own.proposals, &own.turns.config);
            Acceptance { proposals, limits, session: &session, key: &key }.accept(tx, row)
        });
        let (accepted, cursor) = accept.await?;
        *queue.cursor = cursor;
        failpoint::reach("accept");
        if let Accepted::Closed(delivery) = &accepted {
            // The intent is recorded: what a crash leaves undelivered is found there.
            failpoint::reach("intent");
            self.turns.drafts.end(queue.session.id);
            queue.unreceipted.add(delivery);
            self.deliver(delivery.clone()).await?;
        }
        Ok(accepted)
    }

    /// Delivers an answer on the loopback and records its receipt. One that goes out by a network is left to the
    /// [`Dispatcher`](crate::outbound::dispatch::Dispatcher), because no session waits for a network.
    ///
    /// # Errors
    /// Those of the record.
    pub async fn deliver(&self, delivery: Delivery) -> Result<(), Error> {
        if self.latch.is_shut() {
            // The intent is in the record, and is found there when everything goes on.
            return Ok(());
        }
        if delivery.channel != loopback::NAME {
            self.dispatch.wake();
            return Ok(());
        }
        failpoint::reach("send");
        // The ledger entry of the receipt wakes the API's clients that wait for it.
        self.turns.record.state.write(move |tx| Ok::<_, Error>(delivery::receive(tx, &delivery)?)).await?;
        failpoint::reach("receipt");
        Ok(())
    }
}
