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
mod reports;
mod retain;
mod retry;
mod rows;
mod shortages;
mod standing;
mod stops;
mod turns;
mod work;
mod workspace;

pub use actors::Actors;
pub use changes::{ChangeWorker, Changes, Proposals};
pub use command::{Cancelled, Command, Phase, Shown};
pub use deadlines::Deadlines;
pub use dispatch::{Dispatch, Dispatcher};
pub use drafts::Drafts;
pub use endpoints::Models;
pub use launch::{Config as JailConfig, Jails};
pub use model_socket::ModelServers;
pub use places::{Limits, Places, Room};
pub use shortages::{ROOM_BYTES_MIN, ROOM_INODES_MIN, no_room};
pub use stops::{Latch, Stopped, find as stopped, keep_reserve};
pub use turns::Turns;
pub use workspace::Workspaces;

use crate::channel::{Received, webhook};
use crate::gateway::decide;
use crate::inbox::{self, Recorded, events};
use crate::quota;
use crate::record::Record;
use crate::refusal::{Decide, Denied};
use crate::{identity, memories, routing, session};
use actors::Unsent;
use ironclaw_contract::ids::SessionId;
use ironclaw_jail::shortage::Shortage;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Launches at once, for all sessions: more would only wait for each other.
pub const LAUNCHES_MAX: usize = 8;

/// What an awake session needs of the world, chosen at start.
#[derive(Debug, Clone)]
pub struct Config {
    /// `[session]`
    pub session: session::Config,
    /// `[webhook]`
    pub webhook: webhook::Config,
    /// `[quota]`
    pub quota: quota::Config,
}

/// Everything that the stages share.
pub struct Core {
    /// The record.
    pub record: Arc<Record>,
    /// Settings.
    pub config: Config,
    /// The models, and the turns that ask them.
    pub models: Arc<ModelServers>,
    /// The turns.
    pub turns: Arc<Turns>,
    /// Makes jails.
    pub jails: Arc<Jails>,
    /// Measures workspaces.
    pub workspaces: Arc<Workspaces>,
    /// So many sessions awake at once.
    pub places: Arc<Places>,
    /// Whether everything is stopped.
    pub latch: Arc<Latch>,
    /// The actors that exist.
    pub actors: Arc<Actors>,
    /// Sends what goes out by a network.
    pub dispatch: Arc<Dispatch>,
    /// Changes, asked for and decided.
    pub changes: Arc<Changes>,
}

/// Drives every session.
#[derive(Clone)]
pub struct Pipeline {
    core: Arc<Core>,
}

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

impl Pipeline {
    /// A pipeline over these collaborators; nothing runs yet.
    pub fn new(core: Core) -> Self {
        Self { core: Arc::new(core) }
    }

    /// What the stages share.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The worker that sends.
    pub fn dispatcher(&self) -> Dispatcher {
        let Core { dispatch, latch, actors, config, .. } = &*self.core;
        let (dispatch, latch, actors) = (Arc::clone(dispatch), Arc::clone(latch), Arc::clone(actors));
        Dispatcher { dispatch, latch, actors, config: config.webhook.clone() }
    }

    /// Finishes the removals that a crash cut short, and wakes every session that has work from before, unless everything is
    /// stopped. What sleeps is not even looked at.
    pub async fn resume(&self) -> Result<(), Error> {
        self.finish_removals().await?;
        // After a change of the schema that made the index anew.
        while self.core.record.state.write(memories::index_some).await? {}
        if self.start_stopped().await? {
            return Ok(());
        }
        self.wake_all().await
    }

    /// A removal is a row first: what the row has lost may still lie in the log, and its files in their directory.
    async fn finish_removals(&self) -> Result<(), Error> {
        self.core.record.state.checkpoint().await?;
        for id in self.core.record.state.read(|tx| session::store::removed(tx)).await? {
            let place = self.core.jails.home.session(id).path().to_owned();
            let is_gone = place.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
            if !is_gone {
                self.core.record.forget_snapshots().await?;
                match ironclaw_state::home::remove_tree(&place) {
                    Ok(()) => tracing::warn!(session = %id, "its removal was cut short and is finished now"),
                    Err(error) => {
                        tracing::error!(session = %id, %error, "it is erased, but its directory remains");
                        continue;
                    }
                }
            }
            self.core.record.state.write(move |tx| session::store::give_number_back(tx, id)).await?;
        }
        Ok(())
    }

    /// Takes one message through identity, routing and recording, and wakes its session.
    ///
    /// # Errors
    /// Refuses it at each stage. The caller records the refusal in the ledger, at a bounded rate: a sender can ask for it at will.
    pub async fn receive(&self, received: Received) -> Result<Recorded, Denied<Error>> {
        let core = Arc::clone(&self.core);
        let recorded = self
            .core
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
                let quota = &core.config.quota;
                // Before a conversation is made for it.
                if !inbox::is_known(tx, authenticated.received())? {
                    let (person, received) = (authenticated.person().id, authenticated.received());
                    quota.admit_message(tx, person, &received.channel, inbox::bytes(received) as u64)?;
                }
                let routed = routing::route(
                    tx,
                    authenticated,
                    (quota, core.jails.config.sessions_max()),
                    &core.record.wrapping,
                )?;
                let recorded = inbox::record(tx, &routed, &core.record.wrapping, &core.record.sealer)?;
                if let Some(event) = event {
                    event.note(tx, &recorded)?;
                }
                Ok::<_, Denied<Error>>(recorded)
            })
            .await?;
        ironclaw_state::failpoint::reach("record");
        self.wake(recorded.session);
        Ok(recorded)
    }

    /// Lets a session look at its work, unless everything is stopped: then its work is found when that ends.
    pub fn wake(&self, session: SessionId) {
        if self.core.latch.is_shut() {
            return;
        }
        // A full mailbox has a wake in it already; after the daemon's stop, the next start finds the work.
        let _ = self.send(session, Command::Wake);
    }

    /// Asks a session's actor and waits for its answer.
    pub async fn ask<T>(
        &self,
        session: SessionId,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let mut command = command(reply);
        loop {
            command = match self.send(session, command) {
                Ok(()) => break,
                Err(Unsent::Stopping) => return Err(Error::Stopping),
                Err(Unsent::Full(command, commands)) => {
                    // Only waits for room. Put in under the lock of the register, or it might come after its actor went.
                    drop(commands.reserve().await);
                    command
                }
            };
        }
        answer.await.map_err(|_| Error::Stopping)
    }

    fn send(&self, session: SessionId, command: Command) -> Result<(), Unsent> {
        let core = &self.core;
        core.actors.send(session, command, |start| drop(tokio::spawn(actor::run(Arc::clone(core), session, start))))
    }

    /// What the host is short of now: room in the home, or what a session waits for.
    pub fn shortage(&self) -> Option<Shortage> {
        no_room(&self.core.jails.home).or_else(|| self.core.actors.shortage())
    }

    /// What is shown of a session that has an actor.
    pub fn shown(&self, session: SessionId) -> Option<Shown> {
        self.core.actors.shown(session)
    }

    /// Puts every session to sleep: open turns get a moment to end, then each last row is taken.
    pub async fn stop(&self) {
        let mut stopped = Vec::new();
        for commands in self.core.actors.stop() {
            let (reply, answer) = oneshot::channel();
            if commands.send(Command::Shutdown(reply)).await.is_ok() {
                stopped.push(answer);
            }
        }
        for answer in stopped {
            // Each actor is bounded; one that is not must not hold up the others or the end.
            if tokio::time::timeout(actor::SHUTDOWN_TIME_MAX, answer).await.is_err() {
                tracing::error!("a session did not come to its end in time");
            }
        }
    }
}
