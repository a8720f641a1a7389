//! The sessions of this host, as the rest of it reaches them: woken, asked, watched, and put to sleep.
//!
//! Makes the actor of a session when it is needed. See `runtime::actor`.

use crate::error::Error;
use crate::outbound::delivery;
use crate::refusal::{Denied, Refusal};
use crate::runtime::Runtime;
use crate::runtime::actor::{self, SHUTDOWN_TIME_MAX};
use crate::runtime::actors::{Actors, Unsent};
use crate::runtime::admission::Room;
use crate::runtime::command::{Command, Shown};
use crate::runtime::shortages::no_room;
use crate::session::{Wake, store};
use crate::turns::turn;
use ironclaw_contract::ids::{AgentId, PersonId, SessionId, TurnId};
use ironclaw_contract::operator::DenialCode;
use ironclaw_jail::shortage::Shortage;
use ironclaw_model::draft::Words;
use ironclaw_state::State;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// Every session of this host.
#[derive(Clone)]
pub struct Sessions {
    actors: Arc<Actors>,
    runtime: Arc<Runtime>,
}

impl Wake for Sessions {
    fn wake(&self, session: SessionId) {
        if self.runtime.latch.is_shut() {
            return;
        }
        // A full mailbox has a wake in it already; after the daemon's stop, the next start finds the work.
        let _ = self.send(session, Command::Wake);
    }

    fn nudge(&self, session: SessionId) {
        self.actors.nudge(session);
    }
}

impl Sessions {
    /// The sessions of a runtime; none is awake.
    pub fn new(runtime: Runtime) -> Self {
        Self { actors: Arc::default(), runtime: Arc::new(runtime) }
    }

    /// Wakes every session that has work: an open turn, a waiting message, a delivery without a receipt.
    pub async fn wake_all(&self) -> Result<(), Error> {
        let sessions = self.state().read(|tx| {
            let mut sessions: BTreeSet<_> = turn::sessions_with_work(tx)?.into_iter().collect();
            sessions.extend(delivery::sessions_with_open(tx)?);
            Ok::<_, Error>(sessions)
        });
        for session in sessions.await? {
            self.wake(session);
        }
        self.runtime.outbound.dispatch.wake();
        Ok(())
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
        let begin = |start| {
            let actor = actor::run(Arc::clone(&self.runtime), Arc::clone(&self.actors), session, start);
            drop(tokio::spawn(actor));
        };
        self.actors.send(session, command, begin)
    }

    /// Has the awake sessions of an agent begin anew, each once its open turn is over: only then do they see what they have.
    pub(crate) async fn respawn(&self, agent: AgentId) -> Result<(), Error> {
        for session in self.state().read(move |tx| store::of_agent(tx, agent)).await? {
            let session = session.id;
            while self.actors.shown(session).is_some() {
                match self.send(session, Command::Respawn) {
                    Ok(()) | Err(Unsent::Stopping) => break,
                    // Only waits for room, as each that asks an actor for anything.
                    Err(Unsent::Full(_, commands)) => drop(commands.reserve().await),
                }
            }
        }
        Ok(())
    }

    /// Erases the conversations of an agent that is about to be removed.
    ///
    /// # Errors
    /// Refuses where a conversation could not be removed.
    pub async fn remove_of(&self, agent: AgentId, by: PersonId) -> Result<(), Denied<Error>> {
        let found = self.state().read(move |tx| store::of_agent(tx, agent)).await?;
        for session in found {
            if let Err(message) = self.ask(session.id, |done| Command::Remove(by, done)).await? {
                return Err(Refusal::new(DenialCode::SessionNotRemoved, message).into());
            }
        }
        // Before its notes and itself are erased: a crash in between leaves nothing that was erased in a snapshot.
        self.runtime.turns.record.forget_snapshots().await?;
        Ok(())
    }

    /// Returns what is shown of a session that has an actor.
    pub fn shown(&self, session: SessionId) -> Option<Shown> {
        self.actors.shown(session)
    }

    /// Returns what the host is short of now: room in the home, or what a session waits for.
    pub fn shortage(&self) -> Option<Shortage> {
        no_room(&self.runtime.jails.home).or_else(|| self.actors.shortage())
    }

    /// Watches for sessions that begin or end to wait for something that the machine is short of.
    pub fn shortages(&self) -> watch::Receiver<()> {
        self.actors.shortages()
    }

    /// Returns how many sessions are awake, and how many wait.
    pub fn room(&self) -> Room {
        self.runtime.places.room()
    }

    /// Returns the place in the line of a session that waits, from 1.
    pub fn line(&self, session: SessionId) -> Option<usize> {
        self.runtime.places.line(session)
    }

    /// Watches the words of a turn, if it has asked for some.
    pub fn words(&self, session: SessionId, turn: TurnId) -> Option<watch::Receiver<Words>> {
        self.runtime.turns.drafts.watch(session, turn)
    }

    /// Waits until no session is awake.
    pub(crate) async fn asleep(&self) {
        self.runtime.places.empty().await;
    }

    /// Puts every session to sleep: open turns get a moment to end, then each last row is taken.
    pub async fn stop(&self) {
        let mut stopped = Vec::new();
        for commands in self.actors.stop() {
            let (reply, answer) = oneshot::channel();
            if commands.send(Command::Shutdown(reply)).await.is_ok() {
                stopped.push(answer);
            }
        }
        for answer in stopped {
            // Each actor is bounded; one that is not must not hold up the others or the end.
            if tokio::time::timeout(SHUTDOWN_TIME_MAX, answer).await.is_err() {
                tracing::error!("a session did not come to its end in time");
            }
        }
    }

    fn state(&self) -> &State {
        &self.runtime.turns.record.state
    }
}
