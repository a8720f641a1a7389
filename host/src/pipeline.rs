//! What happens to a message on its way: this module drives the stages that the modules below decide.
//!
//! [`Inbound::inbound`] and `outbound` are the two pages to read first. Holds no rule of its own: each stage's type admits only what
//! the stage before made. Next: `pipeline::runtime::actor`.

pub mod changes;
mod emergency_stop;
mod model_socket;
mod outbound;
mod retention_worker;
mod retry;
mod runtime;
mod turns;

pub use changes::{ChangeWorker, Changes, Proposals};
pub use emergency_stop::latch::{Latch, Stopped, find as stopped, keep_reserve};
pub use emergency_stop::{EmergencyStop, Panicked};
pub use model_socket::ModelServers;
pub use model_socket::endpoints::Models;
pub use outbound::dispatch::{Dispatch, Dispatcher};
pub use retention_worker::Retention;
pub use runtime::Runtime;
pub use runtime::admission::{Limits, Places, Room};
pub use runtime::command::{Cancelled, Command, Phase, Shown};
pub use runtime::launch::{Config as JailConfig, Jails};
pub use runtime::recovery::recover;
pub use runtime::sessions::Sessions;
pub use runtime::shortages::{ROOM_BYTES_MIN, ROOM_INODES_MIN, no_room};
pub use runtime::workspace::Workspaces;
pub use turns::Turns;
pub use turns::deadlines::Deadlines;
pub use turns::streaming::Drafts;

use crate::channel::{Received, loopback};
use crate::delivery::{self, Delivery};
use crate::gateway::decide;
use crate::inbox::{self, Recorded, events};
use crate::quota;
use crate::record::Record;
use crate::refusal::{Decide, Denied};
use crate::{identity, routing};
use ironclaw_contract::seam::outbound::RawRow;
use ironclaw_contract::seam::untrusted::Untrusted;
use ironclaw_state::failpoint;
use outbound::accept::{Acceptance, Accepted};
use runtime::launch::Awake;
use std::sync::Arc;

/// Launches at once, for all sessions: more would only wait for each other.
pub const LAUNCHES_MAX: usize = 8;

/// Why the pipeline could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Recording.
    #[error(transparent)]
    Record(#[from] inbox::Error),
    /// The state.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// A body or its key.
    #[error(transparent)]
    Body(#[from] crate::items::BodyError),
    /// A model endpoint cannot be opened.
    #[error(transparent)]
    Model(#[from] ironclaw_model::Error),
    /// A file of the home.
    #[error(transparent)]
    Home(#[from] ironclaw_state::home::Error),
    /// The session's actor is gone; the daemon is stopping.
    #[error("the host is stopping")]
    Stopping,
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::State(error.into())
    }
}

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Denied> for Denied<Error> {
    fn from(denied: Denied) -> Self {
        denied.widen()
    }
}

impl From<Denied<inbox::Error>> for Denied<Error> {
    fn from(denied: Denied<inbox::Error>) -> Self {
        denied.widen()
    }
}

impl From<Denied<decide::Error>> for Denied<Error> {
    fn from(denied: Denied<decide::Error>) -> Self {
        denied.widen()
    }
}

/// The way in: from a channel to the session that a message is for.
#[derive(Clone)]
pub struct Inbound {
    /// The record that messages are written to.
    pub record: Arc<Record>,
    /// What one person and one channel may have.
    pub quota: quota::Config,
    /// Sessions that there can be.
    pub sessions_max: u32,
    /// Sessions that messages wake.
    pub sessions: Sessions,
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
        self.sessions.wake(recorded.session);
        Ok(recorded)
    }
}

/// Takes one row of a sandbox from its queue to the receipt of what it said: judged and recorded with all its effects in one
/// transaction, then delivered if it closed the turn.
///
/// # Errors
/// Those of the host; a refusal of the row is recorded, and is no error.
async fn outbound(runtime: &Arc<Runtime>, awake: &mut Awake, row: Untrusted<RawRow>) -> Result<Accepted, Error> {
    let (own, session, key) = (Arc::clone(runtime), Arc::clone(&awake.session), Arc::clone(&awake.key));
    let accept = runtime.turns.record.state.write(move |tx| {
        let (proposals, limits) = (&*own.proposals, &own.turns.config);
        Acceptance { proposals, limits, session: &session, key: &key }.accept(tx, row)
    });
    let (accepted, cursor) = accept.await?;
    awake.cursor = cursor;
    failpoint::reach("accept");
    awake.reader_died = false;
    if let Accepted::Closed(delivery) = &accepted {
        // The intent is recorded: what a crash leaves undelivered is found there.
        failpoint::reach("intent");
        runtime.turns.drafts.end(awake.session.id);
        awake.unreceipted.add(delivery);
        deliver(runtime, delivery.clone()).await?;
    }
    Ok(accepted)
}

/// Delivers an answer on the loopback and records its receipt. One that goes out by a network is left to the [`Dispatcher`]: no
/// session waits for a network.
async fn deliver(runtime: &Runtime, delivery: Delivery) -> Result<(), Error> {
    if runtime.latch.is_shut() {
        // The intent stands in the record, and is found there when everything goes on.
        return Ok(());
    }
    if delivery.channel != loopback::NAME {
        runtime.dispatch.wake();
        return Ok(());
    }
    failpoint::reach("send");
    // The ledger entry of the receipt wakes the API's clients that wait for it.
    runtime.turns.record.state.write(move |tx| Ok::<_, Error>(delivery::receive(tx, &delivery)?)).await?;
    failpoint::reach("receipt");
    Ok(())
}
