//! The emergency stop and its end.
//!
//! It kills first and writes then; a host that dies between the two starts stopped. No message is lost: the messages of an open turn
//! wait again, with no attempt used. See [`crate::registry::latch`] for the state that lasts, and [`crate::runtime::actor`] for the reaction of a
//! session.

use crate::gateway::requests;
use crate::gateway::waiting::Gateway;
use crate::registry::Signer;
use crate::registry::latch::{self, Latch, Stopped};
use crate::runtime::launch::Jails;
use crate::runtime::sessions::Sessions;
use crate::turns::turn::TurnEnd;
use crate::turns::turn::{self, Close};
use ironclaw_jail::sys;
use ironclaw_operator::PANIC_FILE;
use ironclaw_state::failpoint;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent};
use std::sync::Arc;
use std::time::Duration;

/// The bound on the wait for the end of all processes of sessions. They are killed, so only the kernel needs this time.
const GONE_TIME_MAX: Duration = Duration::from_secs(6);

/// The result of an emergency stop.
#[derive(Debug, Clone)]
pub struct Panicked {
    pub stopped: Stopped,
    /// The number of sessions that were awake or about to be.
    pub sessions: usize,
    /// True if the host saw the end of all their processes.
    pub gone: bool,
}

/// The control of the emergency stop.
#[derive(Clone)]
pub struct EmergencyStop {
    /// The record, which keeps the stop over a restart.
    pub record: Arc<Record>,
    /// Has the home with the panic file, and the launcher that kills every jail.
    pub jails: Arc<Jails>,
    /// Keeps all work from beginning.
    pub latch: Arc<Latch>,
    /// Changes that wait while everything is stopped.
    pub gateway: Arc<Gateway>,
    /// Sessions that wait while everything is stopped.
    pub sessions: Sessions,
}

impl EmergencyStop {
    /// Returns whether everything is stopped.
    pub fn is_on(&self) -> bool {
        self.latch.is_shut()
    }

    /// Kills the processes of every agent, and closes every open turn so that its messages wait. Until [`Self::resume`] no launch, no
    /// request to a model and no delivery begins.
    pub async fn panic(&self, by: &Signer) -> Result<Panicked, Error> {
        self.stop_everything(Some(by.clone())).await
    }

    /// Stops everything if the panic file is in the home. A host calls this after it has published its address: a client that did not
    /// find the host before has left the file.
    pub async fn apply_panic_file(&self) -> Result<(), Error> {
        if latch::file(&self.jails.home).symlink_metadata().is_ok() {
            self.stop_everything(None).await?;
        }
        Ok(())
    }

    /// Watches for the panic file as long as the host runs, and stops everything as soon as it appears. If the system gives no watch,
    /// the file has its effect at the next start.
    pub async fn watch_for_panic_file(self) {
        let ended = match self.watch().await {
            Ok(()) => return,
            Err(error) => error,
        };
        tracing::warn!(error = %ended, "cannot watch for the panic file; it has its effect at the next start");
    }

    async fn watch(&self) -> std::io::Result<()> {
        let watch = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        watch.add_watch(self.jails.home.path(), AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO)?;
        let readable = sys::watched(sys::duplicate(&watch)?)?;
        // The file may have appeared since the last check.
        self.apply_panic_file_or_log().await;
        loop {
            let mut ready = readable.readable().await?;
            let events = match watch.read_events() {
                Err(Errno::EAGAIN) => {
                    ready.clear_ready();
                    continue;
                }
                events => events?,
            };
            // An event without a name means that some events were lost.
            let may_be_ours = |event: &InotifyEvent| event.name.as_ref().is_none_or(|name| name == PANIC_FILE);
            // During a stop this host itself makes and removes the file; `lift` checks for it once more.
            if events.iter().any(may_be_ours) && !self.latch.is_shut() {
                self.apply_panic_file_or_log().await;
            }
        }
    }

    async fn apply_panic_file_or_log(&self) {
        if let Err(error) = self.apply_panic_file().await {
            tracing::error!(%error, "everything is stopped, but the stop could not be recorded");
        }
    }

    async fn stop_everything(&self, by: Option<Signer>) -> Result<Panicked, Error> {
        // In memory first: this needs no disk and no lock that an agent could hold.
        let stopped = Stopped::new(self.record.state.now(), by.as_ref().map(|by| &by.person));
        let name = stopped.by.clone();
        self.latch.shut_for(stopped.clone());
        let sessions = self.sessions.occupancy().awake;
        self.jails.launcher.kill_all();
        tracing::error!(by = name, sessions, "panic: everything is stopped");
        // A host that dies before it records the stop finds the file at its next start.
        self.ask_for_a_stop().await;
        failpoint::reach("panic");
        let _writing = self.latch.writing.lock().await;
        let gateway = Arc::clone(&self.gateway);
        let recorded = self.record.state.write(move |tx| {
            let stopped = latch::begin(tx, by.as_ref())?;
            requests::end_all(tx, &gateway, "everything was stopped")?;
            for open in turn::every_open(tx)? {
                let messages = turn::close(tx, &open, Close::Requeued, TurnEnd::Stopped)?;
                turn::refund_attempt(tx, &messages)?;
            }
            Ok::<_, Error>(stopped)
        });
        let recorded = recorded.await;
        // A person may have resumed in the meantime, so the latch is shut again.
        match &recorded {
            Ok(_) => self.latch.set(true),
            // The stop lasts in memory, and over a restart by the file.
            Err(_) => self.latch.shut_for(stopped),
        }
        self.jails.launcher.kill_all();
        if recorded.is_ok() {
            self.remove_panic_file();
        }
        self.gateway.announce_end();
        let gone = tokio::time::timeout(GONE_TIME_MAX, self.sessions.asleep()).await.is_ok();
        Ok(Panicked { stopped: recorded?, sessions, gone })
    }

    /// Ends the emergency stop: waiting messages get turns, and recorded deliveries are sent. Returns false if there was no stop, neither
    /// in the record nor, after a stop that could not be recorded, in memory.
    pub async fn resume(&self, by: &Signer) -> Result<bool, Error> {
        let latch = &self.latch;
        let writing = latch.writing.lock().await;
        let was_shut = latch.is_shut();
        // Before the record: in the other order, a crash between the two would stop everything again.
        latch::take_back(&self.jails.home)?;
        let by = by.clone();
        let lifted = self.record.state.write(move |tx| Ok::<_, Error>(latch::end(tx, &by, was_shut)?)).await;
        if lifted.is_err() && was_shut {
            // A stop that could not be ended in the record lasts, also over a restart.
            self.ask_for_a_stop().await;
        }
        let lifted = lifted?;
        latch.set(false);
        if lifted {
            tracing::warn!("resumed");
            // Workers that saw the latch shut left their work in the record. These calls start it.
            self.gateway.announce();
            self.sessions.wake_all().await?;
        }
        // A stop that the file requests takes this lock as well.
        drop(writing);
        // A file that appeared during the stop requests the next one.
        self.apply_panic_file().await?;
        Ok(lifted)
    }

    /// Returns the present stop, if there is one: that of the record, or one that could not be recorded.
    pub async fn stopped(&self) -> Result<Option<Stopped>, Error> {
        let recorded: Option<Stopped> = self.record.state.read(|tx| Ok::<_, Error>(latch::find(tx)?)).await?;
        Ok(recorded.or_else(|| self.latch.unrecorded()))
    }

    /// Restores, at a start, a recorded or requested stop. Returns whether there is one.
    pub async fn restore(&self) -> Result<bool, Error> {
        let asked = latch::file(&self.jails.home).symlink_metadata().is_ok();
        let gateway = Arc::clone(&self.gateway);
        let restore = self.record.state.write(move |tx| {
            if asked {
                // The stop begins with this start, and withdraws what waits as any other.
                requests::end_all(tx, &gateway, "everything was stopped")?;
            }
            Ok::<_, Error>(latch::at_start(tx, asked)?)
        });
        let stopped = restore.await?;
        self.latch.set(stopped);
        if asked {
            self.remove_panic_file();
        }
        if stopped {
            tracing::warn!("everything is stopped until `ironctl resume`");
        }
        Ok(stopped)
    }

    async fn ask_for_a_stop(&self) {
        let home = self.jails.home.clone();
        let asked = tokio::task::spawn_blocking(move || latch::ask(&home)).await;
        if !matches!(asked, Ok(Ok(()))) {
            tracing::error!("could not write the panic file; only the record keeps the stop over a restart");
        }
    }

    fn remove_panic_file(&self) {
        if let Err(error) = latch::take_back(&self.jails.home) {
            tracing::error!(%error, "could not remove the panic file; the next start is stopped again");
        }
    }
}
