//! The host's side of the launcher, the process that makes every jail.
//!
//! The launcher is forked before the host has threads or keys, so it never has a key. The host itself never clones a process.
//! See [`crate::launcher::server`] for the process, and [`crate`] for the specification of a jail.

mod error;
mod server;
mod stock;
pub mod trial;
pub(crate) mod wire;

pub use crate::native::{Entries, ProbeProgram};
pub use error::Error;
pub use stock::STOCK;
pub use wire::{Exit, Failure, Part, Supply};

use crate::sys::{self, OneThread, Side};
use crate::{Spec, inspect};
use ironclaw_operator::JailReport;
use nix::unistd::geteuid;
use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use wire::{Event, Request};

/// Extra time in which the launcher can report that a launch took too long.
const LAUNCHER_GRACE: Duration = Duration::from_secs(5);

/// A running launcher that is not yet connected to an async runtime.
#[derive(Debug)]
pub struct Handle {
    pub(crate) control: OwnedFd,
    pid: u32,
}

impl Handle {
    /// Returns the process id of the launcher.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

/// Forks the launcher. `main` calls this first: before the first thread, and before a secret is in memory, because the launcher
/// and its forked roles keep a copy of the memory.
///
/// An error if this process already has more than one thread, or if the kernel refuses the fork.
pub fn fork(entries: Entries) -> io::Result<Handle> {
    let thread = OneThread::prove()?;
    let host = std::process::id() as i32;
    let (control, theirs) = wire::pair()?;
    match thread.fork()? {
        Side::Parent(pid) => Ok(Handle { control, pid: pid as u32 }),
        Side::Child => server::serve(thread, theirs, host, entries),
    }
}

/// A client of the launcher. Clones use the same launcher.
#[derive(Debug, Clone)]
pub struct Launcher {
    shared: Arc<Shared>,
}

/// A queued request: its bytes, and the link beside it.
type Outgoing = (Vec<u8>, Option<OwnedFd>);

#[derive(Debug)]
struct Shared {
    pid: u32,
    next: AtomicU64,
    /// Waiting callers, by the id of the jail; `None` after the launcher died.
    waiting: Mutex<Option<HashMap<u64, Waiting>>>,
    requests: mpsc::UnboundedSender<Outgoing>,
    alive: watch::Receiver<bool>,
}

/// A caller that waits for an event about a jail.
#[derive(Debug)]
enum Waiting {
    Launch(oneshot::Sender<Result<Jailed, Failure>>),
    Exit(watch::Sender<Option<Exit>>),
}

/// A running jail. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Jailed {
    /// Process id of the program, as the host sees it.
    pub pid: u32,
    /// Process id of process 1 of the jail, as the host sees it.
    pub init_pid: u32,
    /// The listener in its network namespace, if its spec has one. Only the host holds it.
    pub listener: Option<TcpListener>,
    /// True if its process 1 was made ahead.
    pub from_stock: bool,
    id: u64,
    landlock: bool,
    exit: watch::Receiver<Option<Exit>>,
    requests: mpsc::UnboundedSender<Outgoing>,
}

/// Makes the link of a client: the end of the host, and the end for the launch.
///
/// # Errors
/// Errors of the system.
pub fn link() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

impl Launcher {
    /// Connects the launcher to the current async runtime.
    pub fn start(handle: Handle) -> io::Result<Self> {
        nix::fcntl::fcntl(&handle.control, nix::fcntl::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
        let control = Arc::new(sys::watched(handle.control)?);
        let (requests, queue) = mpsc::unbounded_channel();
        let (dying, alive) = watch::channel(true);
        let shared = Arc::new(Shared {
            pid: handle.pid,
            next: AtomicU64::new(1),
            waiting: Mutex::new(Some(HashMap::new())),
            requests,
            alive,
        });
        tokio::spawn(write_requests(control.clone(), queue));
        tokio::spawn(read_events(control, shared.clone(), dying));
        Ok(Self { shared })
    }

    /// Returns the process id of the launcher.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// Makes a jail and gives it `link`. Returns when the program runs in it without access to the host's files; otherwise returns the
    /// failed step, at the latest after `spec.limits.launch_ms`.
    ///
    /// Dropping the future cancels the launch.
    pub async fn launch(&self, spec: Spec, link: OwnedFd) -> Result<Jailed, Error> {
        self.launch_from(Supply::Any, spec, link).await
    }

    /// Makes a jail of a chosen origin, as [`Self::launch`] does.
    pub async fn launch_from(&self, supply: Supply, spec: Spec, link: OwnedFd) -> Result<Jailed, Error> {
        let (name, launch_ms) = (spec.name.clone(), spec.limits.launch_ms);
        spec.check(geteuid().as_raw()).map_err(|why| Error::Unfit { name: name.clone(), why })?;
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let request = wire::encode(&Request::Launch { id, spec: Box::new(spec), supply })
            .map_err(|source| Error::Request { name: name.clone(), source })?;
        let (sender, answer) = oneshot::channel();
        let mut attempt = Attempt { id, shared: &self.shared, settled: false };
        if !self.shared.wait_for(id, sender) || self.shared.requests.send((request, Some(link))).is_err() {
            return Err(Error::Gone { pid: self.shared.pid });
        }
        // The launcher has its own timeout. This one is for a launcher that is blocked in the kernel.
        let time_max = Duration::from_millis(launch_ms) + LAUNCHER_GRACE;
        let Ok(answer) = tokio::time::timeout(time_max, answer).await else {
            let step = format!("get an answer from the launcher within {} ms", time_max.as_millis());
            let failure = Failure { part: Part::Launcher, step, errno: 0 };
            return Err(Error::Refused { name, failure });
        };
        attempt.settled = true;
        match answer {
            Ok(Ok(jailed)) => Ok(jailed),
            Ok(Err(failure)) => Err(Error::Refused { name, failure }),
            Err(_) => Err(Error::Gone { pid: self.shared.pid }),
        }
    }

    /// Kills every jail, also one that is being made and those in stock. Returns immediately; [`Jailed::exited`] returns when a jail
    /// has ended.
    pub fn kill_all(&self) {
        let waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for id in waiting.iter().flat_map(HashMap::keys) {
            kill(&self.shared.requests, *id);
        }
        request(&self.shared.requests, &Request::EmptyStock);
    }

    /// Returns when the launcher has died; every jail dies with it.
    pub async fn died(&self) {
        let mut alive = self.shared.alive.clone();
        // An error means that the task that reads from the launcher has ended, which is equivalent.
        let _ = alive.wait_for(|alive| !alive).await;
    }
}

impl Jailed {
    /// Kills all processes of the jail. Returns immediately; [`Jailed::exited`] returns when they have ended.
    pub fn kill(&self) {
        kill(&self.requests, self.id);
    }

    /// Waits for the end of the program and returns it. If the launcher dies, the program is killed too.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Signal(libc::SIGKILL)),
            Err(_) => Exit::Signal(libc::SIGKILL),
        }
    }

    /// Returns the kernel's current report about the program, compared with this process.
    ///
    /// # Errors
    /// The program has ended, or `/proc` does not show it.
    pub fn report(&self) -> io::Result<JailReport> {
        self.process().report()
    }

    /// Returns a handle that can ask the kernel about the program later, without keeping the jail alive.
    pub fn process(&self) -> Process {
        Process { pid: self.pid, landlock: self.landlock }
    }
}

/// A handle that asks the kernel about the program of a jail. It does not keep the jail alive.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// Process id of the program, as the host sees it.
    pub pid: u32,
    landlock: bool,
}

impl Process {
    /// Returns the kernel's current report about it.
    pub fn report(&self) -> io::Result<JailReport> {
        let mut report = inspect::report(self.pid, std::process::id())?;
        report.landlock = self.landlock;
        Ok(report)
    }
}

impl Drop for Jailed {
    fn drop(&mut self) {
        self.kill();
    }
}

fn kill(requests: &mpsc::UnboundedSender<Outgoing>, id: u64) {
    request(requests, &Request::Kill { id });
}

fn request(requests: &mpsc::UnboundedSender<Outgoing>, request: &Request) {
    if let Ok(request) = wire::encode(request) {
        // If the launcher is gone, so is every jail.
        let _ = requests.send((request, None));
    }
}

/// A launch without an answer yet. Dropping it kills the jail.
struct Attempt<'a> {
    id: u64,
    shared: &'a Shared,
    settled: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.shared.forget(self.id);
            kill(&self.shared.requests, self.id);
        }
    }
}

impl Shared {
    /// Registers a caller that waits for the jail `id`; false if the launcher has died.
    fn wait_for(&self, id: u64, sender: oneshot::Sender<Result<Jailed, Failure>>) -> bool {
        match &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(waiting) => waiting.insert(id, Waiting::Launch(sender)).is_none(),
            None => false,
        }
    }

    fn forget(&self, id: u64) -> Option<Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.remove(&id)
    }

    /// Passes an event to the caller that waits for it.
    fn dispatch(&self, event: Event, descriptor: Option<OwnedFd>) {
        match event {
            Event::Started { id, pid, init_pid, landlock, from_stock } => {
                let (sender, exit) = watch::channel(None);
                let requests = self.requests.clone();
                let (pid, init_pid, listener) = (pid as u32, init_pid as u32, descriptor.map(TcpListener::from));
                let jailed = Jailed { pid, init_pid, listener, from_stock, id, landlock, exit, requests };
                let Some(Waiting::Launch(answer)) = self.forget(id) else {
                    return;
                };
                if let Some(waiting) = &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
                    waiting.insert(id, Waiting::Exit(sender));
                }
                // If the caller is gone, the jail is dropped here, which ends it.
                let _ = answer.send(Ok(jailed));
            }
            Event::Failed { id, failure } => {
                if let Some(Waiting::Launch(answer)) = self.forget(id) {
                    let _ = answer.send(Err(failure));
                }
            }
            Event::Exited { id, exit } => {
                if let Some(Waiting::Exit(sender)) = self.forget(id) {
                    sender.send_replace(Some(exit));
                }
            }
        }
    }
}

async fn write_requests(control: Arc<AsyncFd<OwnedFd>>, mut queue: mpsc::UnboundedReceiver<Outgoing>) {
    while let Some((bytes, link)) = queue.recv().await {
        let sent = control.async_io(Interest::WRITABLE, |socket| wire::send_bytes(socket, &bytes, link.as_ref()));
        if let Err(error) = sent.await {
            tracing::error!(%error, "cannot write to the launcher");
            return;
        }
    }
}

async fn read_events(control: Arc<AsyncFd<OwnedFd>>, shared: Arc<Shared>, dying: watch::Sender<bool>) {
    loop {
        match control.async_io(Interest::READABLE, wire::receive::<Event>).await {
            Ok(Some(received)) => shared.dispatch(received.message, received.descriptor),
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, "cannot read from the launcher");
                break;
            }
        }
    }
    // Dropping the senders wakes every waiting caller with an error.
    *shared.waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
    dying.send_replace(false);
}
