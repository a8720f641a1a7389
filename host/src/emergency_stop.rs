//! Stops everything at once, and lets it go on.
//!
//! Kills first and writes then; whoever dies between the two starts stopped. Never loses a message: a turn that was open
//! waits again, with no attempt used. Next: `latch` for what lasts, `runtime::actor` for who hears of it.

use crate::changes::Changes;
use crate::error::Error;
use crate::latch::{self, Latch, Stopped};
use crate::record::Record;
use crate::registry::Person;
use crate::runtime::launch::Jails;
use crate::runtime::sessions::Sessions;
use crate::turns::turn::{self, Close};
use ironclaw_contract::operator::PANIC_FILE;
use ironclaw_jail::sys;
use ironclaw_state::failpoint;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent};
use std::sync::Arc;
use std::time::Duration;

/// The processes of all sessions are gone within this time; they are killed, so it is the kernel that takes it.
const GONE_TIME_MAX: Duration = Duration::from_secs(6);

/// What a stop of everything came to.
#[derive(Debug, Clone)]
pub struct Panicked {
    /// The stop that lasts now.
    pub stopped: Stopped,
    /// Sessions that were awake or about to be.
    pub sessions: usize,
    /// Whether the processes of all of them were seen to be gone.
    pub gone: bool,
}

/// Stops everything, and lets it go on.
#[derive(Clone)]
pub struct EmergencyStop {
    /// The record, which keeps the stop over a restart.
    pub record: Arc<Record>,
    /// Has the home with the panic file, and the launcher that kills every jail.
    pub jails: Arc<Jails>,
    /// Keeps everything from beginning.
    pub latch: Arc<Latch>,
    /// Changes that wait while everything is stopped.
    pub changes: Arc<Changes>,
    /// Sessions that wait while everything is stopped.
    pub sessions: Sessions,
}

impl EmergencyStop {
    /// Returns whether everything is stopped.
    pub fn is_on(&self) -> bool {
        self.latch.is_shut()
    }

    /// Ends every agent's processes, closes every open turn so that its messages wait, and lets nothing begin until
    /// [`Self::lift`]: no launch, no request to a model, no delivery.
    pub async fn panic(&self, by: &Person) -> Result<Panicked, Error> {
        self.stop_everything(Some(by.clone())).await
    }

    /// Heeds the file in the home that asks for a stop. For a host that has just said where it can be reached: whoever did not
    /// find it before has left the file.
    pub async fn heed_the_file(&self) -> Result<(), Error> {
        if latch::file(&self.jails.home).symlink_metadata().is_ok() {
            self.stop_everything(None).await?;
        }
        Ok(())
    }

    /// Heeds the file as soon as it appears, also without a request; for as long as the host runs. Where the system gives no
    /// watch, the file is heeded at the next start.
    pub async fn watch_for_the_file(self) {
        let ended = match self.watch().await {
            Ok(()) => return,
            Err(error) => error,
        };
        tracing::warn!(error = %ended, "the panic file is heeded at the next start only");
    }

    async fn watch(&self) -> std::io::Result<()> {
        let watch = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        watch.add_watch(self.jails.home.path(), AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO)?;
        let readable = sys::watched(sys::duplicate(&watch)?)?;
        // It may have come since the host looked.
        self.heed_quietly().await;
        loop {
            let mut ready = readable.readable().await?;
            let events = match watch.read_events() {
                Err(Errno::EAGAIN) => {
                    ready.clear_ready();
                    continue;
                }
                events => events?,
            };
            // An event without a name: some were lost.
            let may_be_ours = |event: &InotifyEvent| event.name.as_ref().is_none_or(|name| name == PANIC_FILE);
            // While everything is stopped it is this host that makes and removes the file; `lift` looks once more.
            if events.iter().any(may_be_ours) && !self.latch.is_shut() {
                self.heed_quietly().await;
            }
        }
    }

    async fn heed_quietly(&self) {
        if let Err(error) = self.heed_the_file().await {
            tracing::error!(%error, "everything is stopped, and the record does not have it");
        }
    }

    async fn stop_everything(&self, by: Option<Person>) -> Result<Panicked, Error> {
        // In memory first: it takes no disk and no lock that an agent could hold.
        let stopped = Stopped::new(self.record.state.now(), by.as_ref());
        let name = stopped.by.clone();
        self.latch.shut_for(stopped.clone());
        let sessions = self.sessions.room().awake;
        self.jails.launcher.kill_all();
        tracing::error!(by = name, sessions, "panic: everything is stopped");
        // A host that dies before the record has it finds the file at its next start.
        self.ask_for_a_stop().await;
        failpoint::reach("panic");
        let _writing = self.latch.writing.lock().await;
        let recorded = self.record.state.write(move |tx| {
            let stopped = latch::begin(tx, by.as_ref())?;
            for open in turn::every_open(tx)? {
                let messages = turn::close(tx, &open, Close::Requeued, "everything was stopped")?;
                turn::refund_attempt(tx, &messages)?;
            }
            Ok::<_, Error>(stopped)
        });
        let recorded = recorded.await;
        // Somebody may have let everything go on in between.
        match &recorded {
            Ok(_) => self.latch.set(true),
            // It lasts in memory, and the file makes it last over a restart.
            Err(_) => self.latch.shut_for(stopped),
        }
        self.jails.launcher.kill_all();
        if recorded.is_ok() {
            self.forget_the_file();
        }
        let gone = tokio::time::timeout(GONE_TIME_MAX, self.sessions.asleep()).await.is_ok();
        Ok(Panicked { stopped: recorded?, sessions, gone })
    }

    /// Lets everything go on: what waits is worked on, what is intended is delivered. False when nothing was stopped, neither in
    /// the record nor, after a panic that could not be recorded, in memory alone.
    pub async fn lift(&self, by: &Person) -> Result<bool, Error> {
        let latch = &self.latch;
        let writing = latch.writing.lock().await;
        let was_shut = latch.is_shut();
        // Before the record: the other way round, a crash between them would stop everything again.
        latch::take_back(&self.jails.home)?;
        let by = by.clone();
        let lifted = self.record.state.write(move |tx| Ok::<_, Error>(latch::end(tx, &by, was_shut)?)).await;
        if lifted.is_err() && was_shut {
            // What could not be lifted stays stopped, over a restart too.
            self.ask_for_a_stop().await;
        }
        let lifted = lifted?;
        latch.set(false);
        if lifted {
            tracing::warn!("resumed");
            // Whoever saw the latch shut left its work in the record, where this finds it.
            self.changes.ring();
            self.sessions.wake_all().await?;
        }
        // The stop that the file may ask for locks it as well.
        drop(writing);
        // One that came while everything was stopped asks for the next stop.
        self.heed_the_file().await?;
        Ok(lifted)
    }

    /// The stop that lasts, if one does: that of the record, or one that it could not take.
    pub async fn stopped(&self) -> Result<Option<Stopped>, Error> {
        let recorded: Option<Stopped> = self.record.state.read(|tx| Ok::<_, Error>(latch::find(tx)?)).await?;
        Ok(recorded.or_else(|| self.latch.unrecorded()))
    }

    /// Takes up at a start the stop that lasts or that was asked for. Returns whether there is one.
    pub async fn start_stopped(&self) -> Result<bool, Error> {
        let asked = latch::file(&self.jails.home).symlink_metadata().is_ok();
        let stopped = self.record.state.write(move |tx| Ok::<_, Error>(latch::at_start(tx, asked)?)).await?;
        self.latch.set(stopped);
        if asked {
            self.forget_the_file();
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
            tracing::error!("the panic file could not be written; the record has to do");
        }
    }

    fn forget_the_file(&self) {
        if let Err(error) = latch::take_back(&self.jails.home) {
            tracing::error!(%error, "the panic file remains: the next start will be stopped");
        }
    }
}
