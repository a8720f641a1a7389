//! The interface to the sessions of this host: wake them, send them commands, watch them, and put them to sleep.
//!
//! Makes the actor of a session on demand. See [`crate::runtime::actor`].

use crate::channels::notifications;
use crate::channels::outbound::delivery;
use crate::runtime::Runtime;
use crate::runtime::actor::{self, SHUTDOWN_TIME_MAX};
use crate::runtime::actors::{Actors, Unsent};
use crate::runtime::admission::Occupancy;
use crate::runtime::command::{ActorView, Command};
use crate::runtime::launch::SKILL_DAMAGED;
use crate::runtime::shortages::storage_shortage;
use crate::sessions::store::SessionState;
use crate::sessions::{Wake, store};
use crate::turns::open_turns::progress::Newest;
use crate::turns::turn;
use ironclaw_contract::ids::{AgentId, PersonId, SessionId, TurnId};
use ironclaw_jail::shortage::Shortage;
use ironclaw_model::streaming::PartialText;
use ironclaw_operator::DenialCode;
use ironclaw_state::State;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// Every session of this host.
#[derive(Clone)]
pub struct Sessions {
    actors: Arc<Actors>,
    pub(super) runtime: Arc<Runtime>,
}

impl Wake for Sessions {
    fn wake(&self, session: SessionId) {
        if self.runtime.latch.is_shut() {
            return;
        }
        // A full mailbox already wakes its actor; after the daemon's stop, the next start finds the work.
        let _ = self.send(session, Command::Wake);
    }

    fn nudge(&self, session: SessionId) {
        self.actors.nudge(session);
    }
}

impl Sessions {
    /// Makes the sessions of a runtime; none is awake.
    pub fn new(runtime: Runtime) -> Self {
        Self { actors: Arc::default(), runtime: Arc::new(runtime) }
    }

    /// Wakes every session that has work: an open turn, a waiting message, an answer on this host without a receipt.
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

    /// Sends a command to a session's actor and waits for its answer.
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
                    // This only waits for room. `send` adds the command under the lock of the actors, so it cannot come after the actor left.
                    drop(commands.reserve().await);
                    command
                }
            };
        }
        answer.await.map_err(|_| Error::Stopping)
    }

    pub(super) fn send(&self, session: SessionId, command: Command) -> Result<(), Unsent> {
        let begin = |start| {
            let actor = actor::run(Arc::clone(&self.runtime), Arc::clone(&self.actors), session, start);
            drop(tokio::spawn(actor));
        };
        self.actors.send(session, command, begin)
    }

    /// Restarts the awake sessions of an agent, each after its open turn: only a new process sees the changed agent.
    pub(crate) async fn respawn(&self, agent: AgentId) -> Result<(), Error> {
        for session in self.state().read(move |tx| store::list_for_agent(tx, agent)).await? {
            let session = session.id;
            while self.actors.shown(session).is_some() {
                match self.send(session, Command::Respawn) {
                    Ok(()) | Err(Unsent::Stopping) => break,
                    // This only waits for room, as in `ask`.
                    Err(Unsent::Full(_, commands)) => drop(commands.reserve().await),
                }
            }
        }
        Ok(())
    }

    /// Releases the sessions of an agent that were parked because of a damaged skill, which is whole again.
    pub(crate) async fn release_mended(&self, agent: AgentId) -> Result<(), Error> {
        let release = self.state().write(move |tx| {
            let mut released = Vec::new();
            for session in store::list_for_agent(tx, agent)? {
                let is_of_skill = session.reason.as_deref().is_some_and(|reason| reason.starts_with(SKILL_DAMAGED));
                if session.standing == SessionState::Parked && is_of_skill {
                    notifications::withdraw(tx, session.id)?;
                    store::set_session_state(tx, session.id, SessionState::Active, None, None)?;
                    tracing::info!(session = %session.id, "released: the damaged skill of its agent is whole again");
                    released.push(session.id);
                }
            }
            Ok::<_, Error>(released)
        });
        for session in release.await? {
            self.wake(session);
        }
        Ok(())
    }

    /// Erases the conversations of an agent that is about to be removed.
    ///
    /// # Errors
    /// Refuses if a conversation cannot be removed.
    pub async fn remove_of(&self, agent: AgentId, by: PersonId) -> Result<(), Denied<Error>> {
        let found = self.state().read(move |tx| store::list_for_agent(tx, agent)).await?;
        self.remove_each(found, by).await
    }

    /// Erases the conversations of a person who is about to be removed, and returns their number.
    ///
    /// # Errors
    /// Refuses if a conversation cannot be removed.
    pub async fn remove_of_person(&self, person: PersonId, by: PersonId) -> Result<u64, Denied<Error>> {
        let found = self.state().read(move |tx| store::list_for_person(tx, person)).await?;
        let count = found.len() as u64;
        self.remove_each(found, by).await?;
        Ok(count)
    }

    async fn remove_each(&self, found: Vec<store::Session>, by: PersonId) -> Result<(), Denied<Error>> {
        for session in found {
            if let Err(message) = self.ask(session.id, |done| Command::Remove(by, done)).await? {
                return Err(Refusal::new(DenialCode::SessionNotRemoved, message).into());
            }
        }
        // Before the notes and the agent or the person are erased: so a crash in between leaves no erased data in a snapshot.
        self.runtime.turns.record.forget_snapshots().await?;
        Ok(())
    }

    /// Returns the view of a session that has an actor.
    pub fn shown(&self, session: SessionId) -> Option<ActorView> {
        self.actors.shown(session)
    }

    /// Returns the current shortage of the host: no room in the home, or the shortage that a session waits for.
    pub fn shortage(&self) -> Option<Shortage> {
        storage_shortage(&self.runtime.jails.home).or_else(|| self.actors.shortage())
    }

    /// Watches for sessions that start or stop waiting for a shortage to end.
    pub fn shortages(&self) -> watch::Receiver<()> {
        self.actors.shortages()
    }

    /// Returns the numbers of awake and of waiting sessions.
    pub fn occupancy(&self) -> Occupancy {
        self.runtime.admission.occupancy()
    }

    /// Returns the position of a waiting session in the queue for slots, from 1.
    pub fn queue_position(&self, session: SessionId) -> Option<usize> {
        self.runtime.admission.queue_position(session)
    }

    /// Watches the partial output of a turn, if it has a running model request.
    pub fn words(&self, session: SessionId, turn: TurnId) -> Option<watch::Receiver<PartialText>> {
        self.runtime.turns.partial_outputs.watch(session, turn)
    }

    /// Watches the progress of running calls.
    pub fn call_progress(&self) -> watch::Receiver<Newest> {
        self.runtime.turns.running_calls.watch()
    }

    /// Waits until no session is awake.
    pub(crate) async fn asleep(&self) {
        self.runtime.admission.empty().await;
    }

    /// Puts every session to sleep: open turns get a moment to end, then their last rows are taken.
    pub async fn stop(&self) {
        let mut stopped = Vec::new();
        for commands in self.actors.stop() {
            let (reply, answer) = oneshot::channel();
            if commands.send(Command::Shutdown(reply)).await.is_ok() {
                stopped.push(answer);
            }
        }
        for answer in stopped {
            // The time of each actor is bounded; an actor that exceeds it must not delay the others or the shutdown.
            if tokio::time::timeout(SHUTDOWN_TIME_MAX, answer).await.is_err() {
                tracing::error!("a session did not end in time");
            }
        }
    }

    pub(super) fn state(&self) -> &State {
        &self.runtime.turns.record.state
    }
}
