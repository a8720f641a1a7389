//! The running actors: one for each session that is awake, waits for a slot, or has a command; none for a session that sleeps.
//!
//! Commands are sent and actors leave under one lock, so no wake is lost between the two. See [`crate::runtime::actor`].

use crate::runtime::command::{ActorView, Command};
use crate::runtime::shortages::Looks;
use ironclaw_contract::ids::SessionId;
use ironclaw_jail::shortage::Shortage;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// Commands in the mailbox of one actor; a sender waits while it is full.
const MAILBOX_MAX: usize = 64;

/// The other end of an actor.
struct Handle {
    commands: mpsc::Sender<Command>,
    shown: Arc<Mutex<ActorView>>,
}

/// The parts that a new actor starts with.
pub struct Start {
    /// The mailbox, with a command in it.
    pub mailbox: mpsc::Receiver<Command>,
    /// The view of its state, which it updates.
    pub shown: Arc<Mutex<ActorView>>,
}

#[derive(Default)]
pub struct Actors {
    inner: Mutex<Inner>,
    shortages: watch::Sender<()>,
    /// The looks of the actors that wait for storage.
    pub(super) looks: Looks,
}

#[derive(Default)]
struct Inner {
    running: HashMap<SessionId, Handle>,
    stopping: bool,
}

/// The reason that a command did not reach an actor.
pub enum Unsent {
    /// Its mailbox is full; the sender waits for room and tries again.
    Full(Command, mpsc::Sender<Command>),
    Stopping,
}

impl Actors {
    /// Sends a command to a session's actor. Starts the actor with `begin` if there is none.
    pub fn send(&self, session: SessionId, command: Command, begin: impl FnOnce(Start)) -> Result<(), Unsent> {
        let mut inner = self.lock();
        if inner.stopping {
            return Err(Unsent::Stopping);
        }
        let command = match inner.running.get(&session) {
            None => command,
            Some(handle) => match handle.commands.try_send(command) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(command)) => return Err(Unsent::Full(command, handle.commands.clone())),
                // The actor panicked; its completed steps are in the record.
                Err(TrySendError::Closed(command)) => command,
            },
        };
        let (commands, mailbox) = mpsc::channel(MAILBOX_MAX);
        commands.try_send(command).map_err(|_| Unsent::Stopping)?;
        let shown = Arc::default();
        inner.running.insert(session, Handle { commands, shown: Arc::clone(&shown) });
        begin(Start { mailbox, shown });
        Ok(())
    }

    /// Wakes the actor of a session, if there is one. An actor with a full mailbox wakes anyway.
    pub fn nudge(&self, session: SessionId) {
        if let Some(handle) = self.lock().running.get(&session) {
            let _ = handle.commands.try_send(Command::Wake);
        }
    }

    /// Removes an actor if its mailbox is empty. Returns `true` if the actor may exit; its mailbox can get no further command. Returns
    /// `false` if it must first take a command.
    pub fn leave(&self, session: SessionId, mailbox: &mpsc::Receiver<Command>) -> bool {
        let mut inner = self.lock();
        if !mailbox.is_empty() {
            return false;
        }
        inner.running.remove(&session);
        true
    }

    /// Returns the view of a session that has an actor.
    pub fn shown(&self, session: SessionId) -> Option<ActorView> {
        let inner = self.lock();
        let handle = inner.running.get(&session)?;
        Some(handle.shown.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Returns the shortage that some session waits for.
    pub fn shortage(&self) -> Option<Shortage> {
        let inner = self.lock();
        let short = |handle: &Handle| handle.shown.lock().unwrap_or_else(PoisonError::into_inner).shortage;
        inner.running.values().find_map(short)
    }

    /// Watches for sessions that start or stop waiting for a shortage to end.
    pub fn shortages(&self) -> watch::Receiver<()> {
        self.shortages.subscribe()
    }

    /// Sets the shortage that a session waits for.
    pub fn record_shortage(&self, shown: &Mutex<ActorView>, shortage: Option<Shortage>) {
        let before = std::mem::replace(&mut shown.lock().unwrap_or_else(PoisonError::into_inner).shortage, shortage);
        if before != shortage {
            self.shortages.send_replace(());
        }
    }

    /// Prevents new actors, and returns the mailboxes of the running ones.
    pub fn stop(&self) -> Vec<mpsc::Sender<Command>> {
        let mut inner = self.lock();
        inner.stopping = true;
        inner.running.values().map(|handle| handle.commands.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// An actor without a session: it takes all work, then leaves when it may.
    async fn brief(
        actors: Arc<Actors>,
        session: SessionId,
        mut mailbox: mpsc::Receiver<Command>,
        work: Arc<AtomicU64>,
    ) {
        loop {
            while mailbox.try_recv().is_ok() {}
            work.store(0, Ordering::SeqCst);
            if actors.leave(session, &mailbox) {
                return;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_up_is_lost_between_one_actor_and_the_next() {
        let (actors, work) = (Arc::new(Actors::default()), Arc::new(AtomicU64::new(0)));
        let begun = Arc::new(AtomicU64::new(0));
        let session = SessionId::new();
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let (actors, work, begun) = (Arc::clone(&actors), Arc::clone(&work), Arc::clone(&begun));
                tokio::spawn(async move {
                    for n in 0..20_000u32 {
                        // The record first, then the wake, as for a message.
                        work.fetch_add(1, Ordering::SeqCst);
                        let begin = |start: Start| {
                            begun.fetch_add(1, Ordering::SeqCst);
                            tokio::spawn(brief(Arc::clone(&actors), session, start.mailbox, Arc::clone(&work)));
                        };
                        match actors.send(session, Command::Wake, begin) {
                            // A full mailbox already wakes the actor.
                            Ok(()) | Err(Unsent::Full(..)) => {}
                            Err(Unsent::Stopping) => panic!("the actors are not stopped"),
                        }
                        if n % 7 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await.expect("a sender does not panic");
        }
        while actors.shown(session).is_some() {
            tokio::task::yield_now().await;
        }
        assert_eq!(work.load(Ordering::SeqCst), 0, "work is left without an actor");
        assert!(begun.load(Ordering::SeqCst) > 1, "actors started more than once");
        assert!(actors.lock().running.is_empty(), "no handle is left");
    }

    #[test]
    fn no_actor_begins_after_the_stop() {
        let actors = Actors::default();
        assert!(actors.stop().is_empty());
        let sent = actors.send(SessionId::new(), Command::Wake, |_| panic!("no actor starts"));
        assert!(matches!(sent, Err(Unsent::Stopping)));
    }
}
