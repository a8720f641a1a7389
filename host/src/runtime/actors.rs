//! The actors that exist: one for each session that is awake, wants to be, or was asked something; none for one that sleeps.
//!
//! Everything is put into a mailbox, and an actor goes, under one lock: so no wake-up falls between the two. Next: `runtime::actor`.

use crate::runtime::command::{Command, Shown};
use ironclaw_contract::ids::SessionId;
use ironclaw_jail::shortage::Shortage;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// Commands that may wait for one actor before whoever brings the next has to.
const MAILBOX_MAX: usize = 64;

/// How others reach an actor.
struct Handle {
    commands: mpsc::Sender<Command>,
    shown: Arc<Mutex<Shown>>,
}

/// What an actor needs to begin.
pub struct Start {
    /// Its mailbox; something lies in it.
    pub mailbox: mpsc::Receiver<Command>,
    /// Where it shows how it stands.
    pub shown: Arc<Mutex<Shown>>,
}

/// Every actor there is.
#[derive(Default)]
pub struct Actors {
    inner: Mutex<Inner>,
    shortages: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    running: HashMap<SessionId, Handle>,
    stopping: bool,
}

/// Why a command did not reach an actor.
pub enum Unsent {
    /// Its mailbox is full; whoever waits for room tries again then.
    Full(Command, mpsc::Sender<Command>),
    /// The daemon stops.
    Stopping,
}

impl Actors {
    /// Puts a command into the mailbox of a session's actor, which is made with `begin` if there is none.
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
                // It ended on a defect of ours; whatever it did stands in the record.
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

    /// Has the actor of a session look again, if there is one. One whose mailbox is full looks in any case.
    pub fn nudge(&self, session: SessionId) {
        if let Some(handle) = self.lock().running.get(&session) {
            let _ = handle.commands.try_send(Command::Wake);
        }
    }

    /// An actor goes, unless something lies in its mailbox: then it has to look at it first. True when it may go; nothing can
    /// come into that mailbox any more.
    pub fn leave(&self, session: SessionId, mailbox: &mpsc::Receiver<Command>) -> bool {
        let mut inner = self.lock();
        if !mailbox.is_empty() {
            return false;
        }
        inner.running.remove(&session);
        true
    }

    /// What is shown of a session that has an actor.
    pub fn shown(&self, session: SessionId) -> Option<Shown> {
        let inner = self.lock();
        let handle = inner.running.get(&session)?;
        Some(handle.shown.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// What some session waits for that the machine is short of.
    pub fn shortage(&self) -> Option<Shortage> {
        let inner = self.lock();
        let short = |handle: &Handle| handle.shown.lock().unwrap_or_else(PoisonError::into_inner).shortage;
        inner.running.values().find_map(short)
    }

    /// Told each time that a session begins or ends to wait for something that the machine is short of.
    pub fn shortages(&self) -> watch::Receiver<()> {
        self.shortages.subscribe()
    }

    /// Notes what a session waits for.
    pub fn note_shortage(&self, shown: &Mutex<Shown>, shortage: Option<Shortage>) {
        let before = std::mem::replace(&mut shown.lock().unwrap_or_else(PoisonError::into_inner).shortage, shortage);
        if before != shortage {
            self.shortages.send_replace(());
        }
    }

    /// Lets nobody begin any more, and gives the mailboxes of those that are there.
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

    /// An actor without a session: takes what work there is, then goes as soon as it may.
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
                            // A full mailbox has a wake in it already.
                            Ok(()) | Err(Unsent::Full(..)) => {}
                            Err(Unsent::Stopping) => panic!("nobody stops it"),
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
        assert_eq!(work.load(Ordering::SeqCst), 0, "work is left and nobody is there to do it");
        assert!(begun.load(Ordering::SeqCst) > 1, "they came and went");
        assert!(actors.lock().running.is_empty(), "whoever sleeps leaves nothing");
    }

    #[test]
    fn no_actor_begins_after_the_stop() {
        let actors = Actors::default();
        assert!(actors.stop().is_empty());
        let sent = actors.send(SessionId::new(), Command::Wake, |_| panic!("nobody begins"));
        assert!(matches!(sent, Err(Unsent::Stopping)));
    }
}
