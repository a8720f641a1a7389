//! What happens to a message on its way: this module drives the stages that the modules below decide.
//!
//! Holds no rule of its own: each stage's type admits only what the stage before made. Next: `pipeline::actor`.

mod accept;
mod actor;
mod actors;
pub(crate) mod at_once;
mod cancel;
pub mod changes;
mod command;
mod deadlines;
mod dispatch;
mod drafts;
mod endpoints;
mod launch;
mod model_budget;
mod model_requests;
mod model_socket;
mod panic;
mod places;
mod prove;
mod receipts;
mod recovery;
mod reports;
mod retain;
mod retry;
mod rows;
mod runtime;
mod sessions;
mod shortages;
mod standing;
mod stops;
mod turns;
mod work;
mod workspace;

pub use changes::{ChangeWorker, Changes, Proposals};
pub use command::{Cancelled, Command, Phase, Shown};
pub use deadlines::Deadlines;
pub use dispatch::{Dispatch, Dispatcher};
pub use drafts::Drafts;
pub use endpoints::Models;
pub use launch::{Config as JailConfig, Jails};
pub use model_socket::ModelServers;
pub use panic::{EmergencyStop, Panicked};
pub use places::{Limits, Places, Room};
pub use recovery::recover;
pub use retain::Retention;
pub use runtime::Runtime;
pub use sessions::Sessions;
pub use shortages::{ROOM_BYTES_MIN, ROOM_INODES_MIN, no_room};
pub use stops::{Latch, Stopped, find as stopped, keep_reserve};
pub use turns::Turns;
pub use workspace::Workspaces;

use crate::channel::Received;
use crate::gateway::decide;
use crate::inbox::{self, Recorded, events};
use crate::quota;
use crate::record::Record;
use crate::refusal::{Decide, Denied};
use crate::{identity, routing};
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
    pub async fn receive(&self, received: Received) -> Result<Recorded, Denied<Error>> {
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
        ironclaw_state::failpoint::reach("record");
        self.sessions.wake(recorded.session);
        Ok(recorded)
    }
}
