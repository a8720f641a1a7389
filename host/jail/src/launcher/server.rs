//! The launcher process: one thread that makes every jail, watches it, and reports to the host.
//!
//! It has no key, never parses the output of a jailed program, and ends with the host. See [`crate::native`] for the processes
//! that it clones.

use super::stock::{Due, Mounts, Plan};
use super::wire::{self, Event, Exit, Failure, Part, Progress, Request, Supply, step};
use crate::native::{self, Entries, Filters, InitArgs};
use crate::sys::{self, OneThread, Side};
use crate::{INNER_ID, Identity, Spec, Wall, Walls};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{dup2_stdin, dup2_stdout, getegid, geteuid, getgroups, getppid, setgroups, setsid};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Pause before the launcher polls again after the kernel had no memory for it.
const SHORTAGE_REST: Duration = Duration::from_millis(50);

/// Serves the host until it ends. `host` is its process id.
pub(super) fn serve(thread: OneThread, control: OwnedFd, host: i32, entries: Entries) -> ! {
    // A panic here, or in a process cloned from here, must not unwind into the host's `main`.
    let served = catch_unwind(AssertUnwindSafe(|| {
        let missing = missing_wall()?;
        let control = prepare(&thread, control, host, missing)?;
        let filters = Filters::compile()?;
        let (plan, mounts) = (Plan::default(), Mounts::open()?);
        let (jails, events) = (Vec::new(), Vec::new());
        Server { thread, control, entries, filters, missing, jails, events, plan, mounts }.run()
    }));
    sys::exit(i32::from(!matches!(served, Ok(Ok(())))))
}

/// Returns the wall that a test build leaves out of every jail; always `None` in other builds. An unknown name is an error, because
/// otherwise the test would run with all walls.
fn missing_wall() -> io::Result<Option<Wall>> {
    let unknown = |name| io::Error::other(format!("unknown wall {name}"));
    crate::failpoint::left_out_wall().map(|name| Wall::named(&name).ok_or_else(|| unknown(name))).transpose()
}

/// Drops all state of the host that a jail must not inherit.
fn prepare(thread: &OneThread, control: OwnedFd, host: i32, missing: Option<Wall>) -> io::Result<OwnedFd> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid().as_raw() != host {
        return Err(io::Error::other("the host ended first"));
    }
    let [control] = sys::keep_only([control], missing != Some(Wall::Descriptors))?;
    prctl::set_name(c"ic-launcher")?;
    // Only the host handles a terminal's Ctrl-C; it then ends the jails in order.
    setsid()?;
    if missing != Some(Wall::Environment) {
        sys::wipe_environment(thread);
    }
    std::env::set_current_dir("/")?;
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    // The launcher needs two descriptors for each jail. A jail's own limit is set in the jail.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    for signal in native::LAUNCHER_IGNORES {
        sys::ignore(signal, true)?;
    }
    Ok(control)
}

struct Server {
    thread: OneThread,
    control: OwnedFd,
    entries: Entries,
    filters: Filters,
    missing: Option<Wall>,
    jails: Vec<Jail>,
    /// Events for the host, in order.
    events: Vec<Report>,
    /// Decides about the jails in stock.
    plan: Plan,
    mounts: Mounts,
}

/// An event, with the descriptor that is sent beside it.
type Report = (Event, Option<OwnedFd>);

/// A jail and its stage.
struct Jail {
    id: u64,
    process: OwnedFd,
    init_pid: i32,
    handshake: OwnedFd,
    stage: Stage,
    listener: Option<OwnedFd>,
    from_stock: bool,
    ended: Option<Exit>,
}

/// The id of a jail that the host does not know. The host counts from 1.
const IN_STOCK: u64 = 0;

enum Stage {
    /// Process 1 waits for its spec.
    Stocked,
    /// Killed in stock, and reported to no one.
    Discarded,
    /// Not closed yet; fails at `until`.
    Starting { until: Instant, allowed: Duration, program: Option<(i32, bool)> },
    /// Reported to the host as started.
    Running,
    /// Being killed; the host gets the failure when all its processes have ended.
    Failing(Failure),
}

/// The events that woke the launcher.
struct Woken {
    has_request: bool,
    /// A mount of the host changed; only if a jail is in stock.
    has_other_mounts: bool,
    /// For each jail: it sent a message, it ended.
    jails: Vec<(bool, bool)>,
}

impl Server {
    /// Serves until the host's end of the socket closes.
    fn run(mut self) -> io::Result<()> {
        loop {
            self.tend_stock();
            let woken = self.wait()?;
            if woken.has_other_mounts {
                self.empty_stock();
            }
            let mut left = Vec::with_capacity(self.jails.len());
            for (mut jail, (has_message, ended)) in self.jails.drain(..).zip(woken.jails) {
                if has_message {
                    jail.handle_message(&mut self.events);
                }
                jail.expire();
                if !(ended && jail.reap(&mut self.events)?) {
                    left.push(jail);
                } else if matches!(jail.stage, Stage::Stocked) {
                    // Making another one might fail in the same way; the next launch reports the cause.
                    self.plan.forget();
                }
            }
            self.jails = left;
            if woken.has_request && !self.handle_request()? {
                return Ok(());
            }
            for (event, descriptor) in self.events.drain(..) {
                wire::send(&self.control, &event, descriptor.as_ref())?;
            }
        }
    }

    /// Sleeps until a message arrives, a process ends, or a launch times out.
    fn wait(&self) -> io::Result<Woken> {
        let control = PollFd::new(self.control.as_fd(), PollFlags::POLLIN);
        let mounts = if self.stocked() > 0 { self.mounts.watched() } else { control.clone() };
        let mut watched = vec![control, mounts];
        for jail in &self.jails {
            // The handshake of a running jail is read when it ends; its hang-up would wake the poll every time.
            watched.push(match jail.stage {
                Stage::Starting { .. } => PollFd::new(jail.handshake.as_fd(), PollFlags::POLLIN),
                Stage::Stocked | Stage::Discarded | Stage::Running | Stage::Failing(_) => {
                    PollFd::new(jail.process.as_fd(), PollFlags::empty())
                }
            });
            watched.push(PollFd::new(jail.process.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut watched, self.next_timeout()) {
            Ok(_) | Err(Errno::EINTR) => {}
            // A shortage is temporary, and the end of the launcher would end every jail. EINVAL: the poll has more descriptors than
            // the limit on open files, which is lower than at the start. A poll of one descriptor needs no more than a limit of one.
            Err(Errno::ENOMEM | Errno::EAGAIN | Errno::EINVAL) => {
                std::thread::sleep(SHORTAGE_REST);
                for one in watched.chunks_mut(1) {
                    let _ = poll(one, PollTimeout::ZERO);
                }
            }
            Err(error) => return Err(error.into()),
        }
        let woken = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        Ok(Woken {
            has_request: woken(&watched[0]),
            has_other_mounts: self.stocked() > 0 && woken(&watched[1]),
            jails: watched[2..].chunks(2).map(|pair| (woken(&pair[0]), woken(&pair[1]))).collect(),
        })
    }

    /// Returns the time until the next launch times out, or until the stock needs attention.
    fn next_timeout(&self) -> PollTimeout {
        let now = Instant::now();
        let next = self.jails.iter().filter_map(|jail| match jail.stage {
            Stage::Starting { until, .. } => Some(until.saturating_duration_since(now)),
            Stage::Stocked | Stage::Discarded | Stage::Running | Stage::Failing(_) => None,
        });
        let stock = match self.plan.due(now, self.stocked(), self.is_launching()) {
            Due::At(time) => Some(time.saturating_duration_since(now)),
            Due::Make | Due::Release => Some(Duration::ZERO),
            Due::Never => None,
        };
        // One more millisecond, so that the poll never wakes just before the deadline.
        next.chain(stock).min().map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        })
    }

    /// Reads one request; false when the host is gone.
    fn handle_request(&mut self) -> io::Result<bool> {
        let Some(received) = wire::receive::<Request>(&self.control)? else {
            return Ok(false);
        };
        match (received.message, received.descriptor) {
            (Request::Launch { id, spec, supply }, Some(link)) => {
                if let Err(failure) = self.launch(id, &spec, &link, supply) {
                    self.events.push((Event::Failed { id, failure }, None));
                    // The shortage may be one of processes or namespaces.
                    self.empty_stock();
                }
            }
            (Request::EmptyStock, _) => self.empty_stock(),
            (Request::Launch { id, .. }, None) => {
                let errno = if received.is_bare { libc::EMFILE } else { libc::EBADF };
                let failure = Failure { part: Part::Launch, step: "receive the link".into(), errno };
                self.events.push((Event::Failed { id, failure }, None));
            }
            (Request::Kill { id }, _) => {
                if let Some(jail) = self.jails.iter().find(|jail| jail.id == id) {
                    jail.kill();
                }
            }
        }
        Ok(true)
    }

    /// Gives the spec to a process 1 from stock, or to a new one.
    fn launch(&mut self, id: u64, spec: &Spec, link: &OwnedFd, supply: Supply) -> Result<(), Failure> {
        let walls = Walls::around(&spec.role, self.missing);
        let namespaces = native::namespaces(walls);
        self.plan.note_launch(Instant::now());
        if supply != Supply::Demand && namespaces == self.namespaces_in_stock() {
            if self.stocked() > 0 && self.mounts.have_changed() {
                self.empty_stock();
                self.plan.note_launch(Instant::now());
            }
            if supply == Supply::Stock && self.stocked() == 0 {
                let jail = self.clone_init(namespaces)?;
                self.jails.push(jail);
            }
            for jail in self.jails.iter_mut().filter(|jail| matches!(jail.stage, Stage::Stocked)) {
                jail.from_stock = true;
                match jail.begin(id, spec, link, walls) {
                    Ok(()) => return Ok(()),
                    Err(_) => jail.discard(),
                }
            }
        }
        let mut jail = self.clone_init(namespaces)?;
        if let Err(failure) = jail.begin(id, spec, link, walls) {
            jail.fail(failure);
        }
        self.jails.push(jail);
        Ok(())
    }

    /// Clones a process 1 that waits for its spec.
    fn clone_init(&self, namespaces: libc::c_int) -> Result<Jail, Failure> {
        let (handshake, theirs) = step(Part::Launch, "make a pair of sockets", wire::pair())?;
        step(Part::Launch, "ask for the senders of messages", wire::ask_for_senders(&handshake))?;
        step(Part::Ids, "leave root's groups", leave_groups(Walls::for_every_role(self.missing)))?;
        let cloned = self.thread.clone_into(namespaces);
        let (init_pid, process) = match step(Part::Namespaces, "make new namespaces", cloned)? {
            (Side::Parent(pid), Some(process)) => (pid, process),
            (Side::Parent(_), None) | (Side::Child, _) => native::init(InitArgs {
                launcher: theirs,
                thread: &self.thread,
                entries: self.entries,
                filters: &self.filters,
                missing: self.missing,
            }),
        };
        let (id, stage) = (IN_STOCK, Stage::Stocked);
        Ok(Jail { id, process, init_pid, handshake, stage, listener: None, from_stock: false, ended: None })
    }

    /// Returns the namespaces of a jail in stock: all of them, because a role may lack one only on purpose.
    fn namespaces_in_stock(&self) -> libc::c_int {
        native::namespaces(Walls::for_every_role(self.missing))
    }

    fn stocked(&self) -> usize {
        self.jails.iter().filter(|jail| matches!(jail.stage, Stage::Stocked)).count()
    }

    /// Returns whether this process has memory of a launch: a jail in stock is a copy of it.
    fn is_launching(&self) -> bool {
        self.jails.iter().any(|jail| matches!(jail.stage, Stage::Starting { .. } | Stage::Failing(_)))
    }

    /// Makes one jail for the stock or ends those in it, if it is time.
    fn tend_stock(&mut self) {
        match self.plan.due(Instant::now(), self.stocked(), self.is_launching()) {
            Due::Make => {
                // A change from now on is one that the new jail does not see.
                if self.stocked() == 0 {
                    self.mounts.have_changed();
                }
                match self.clone_init(self.namespaces_in_stock()) {
                    Ok(jail) => self.jails.push(jail),
                    // The next launch reports a failure that lasts.
                    Err(_) => self.empty_stock(),
                }
            }
            Due::Release => self.empty_stock(),
            Due::At(_) | Due::Never => {}
        }
    }

    /// Ends the jails in stock. None is made before the next launch.
    fn empty_stock(&mut self) {
        self.plan.forget();
        for jail in self.jails.iter_mut().filter(|jail| matches!(jail.stage, Stage::Stocked)) {
            jail.discard();
        }
    }
}

impl Jail {
    /// Maps the ids of process 1, and gives it its spec and its link.
    fn begin(&mut self, id: u64, spec: &Spec, link: &OwnedFd, walls: Walls) -> Result<(), Failure> {
        let allowed = Duration::from_millis(spec.limits.launch_ms);
        self.id = id;
        self.stage = Stage::Starting { until: Instant::now() + allowed, allowed, program: None };
        map_ids(self.init_pid, spec.identity, walls)?;
        step(Part::Launch, "start process 1", wire::send(&self.handshake, spec, Some(link)))
    }

    /// Ends a jail from stock that no session has used.
    fn discard(&mut self) {
        (self.id, self.stage) = (IN_STOCK, Stage::Discarded);
        self.kill();
    }

    /// Handles one message, if there is one; returns whether there was.
    fn handle_message(&mut self, events: &mut Vec<Report>) -> bool {
        let mut ready = [PollFd::new(self.handshake.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut ready, PollTimeout::ZERO), Ok(1)) {
            return false;
        }
        let Ok(Some(received)) = wire::receive::<Progress>(&self.handshake) else {
            return false;
        };
        match (received.message, &mut self.stage) {
            (Progress::Confined { landlock }, Stage::Starting { program, .. }) => {
                *program = received.sender.map(|sender| (sender.pid(), landlock));
            }
            (Progress::Listening, Stage::Starting { .. }) => self.listener = received.descriptor,
            (Progress::Closed, Stage::Starting { program: Some((pid, landlock)), .. }) => {
                let (pid, landlock) = (*pid, *landlock);
                let started =
                    Event::Started { id: self.id, pid, init_pid: self.init_pid, landlock, from_stock: self.from_stock };
                events.push((started, self.listener.take()));
                self.stage = Stage::Running;
            }
            (Progress::Failed(failure), Stage::Starting { .. }) => self.fail(failure),
            (Progress::Ended(exit), _) => self.ended = Some(exit),
            (Progress::Confined { .. } | Progress::Listening | Progress::Closed | Progress::Failed(_), _) => {}
        }
        true
    }

    /// Fails a launch whose time is over.
    fn expire(&mut self) {
        let Stage::Starting { until, allowed, program } = &self.stage else {
            return;
        };
        if Instant::now() < *until {
            return;
        }
        let (part, late) = match program {
            Some(_) => (Part::Program, "the program did not reach its gate"),
            None => (Part::Launch, "process 1 did not build the jail"),
        };
        let step = format!("{late} within {} ms", allowed.as_millis());
        self.fail(Failure { part, step, errno: 0 });
    }

    fn fail(&mut self, failure: Failure) {
        self.stage = Stage::Failing(failure);
        self.kill();
    }

    /// Kills process 1; the kernel then kills all other processes of the jail.
    fn kill(&self) {
        // It fails only if the process has ended already.
        let _ = sys::signal(self.process.as_fd(), libc::SIGKILL);
    }

    /// Handles the end of process 1; returns whether it has ended.
    fn reap(&mut self, events: &mut Vec<Report>) -> io::Result<bool> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
        let exit = match waitid(Id::PIDFd(self.process.as_fd()), flags)? {
            WaitStatus::Exited(_, code) => Exit::Code(code),
            WaitStatus::Signaled(_, signal, _) => Exit::Signal(signal as i32),
            _ => return Ok(false),
        };
        // Process 1 may have sent messages before its exit.
        while self.handle_message(events) {}
        let exit = self.ended.unwrap_or(exit);
        let id = self.id;
        let event = match &self.stage {
            Stage::Stocked | Stage::Discarded => return Ok(true),
            Stage::Running => Event::Exited { id, exit },
            Stage::Failing(failure) => Event::Failed { id, failure: failure.clone() },
            Stage::Starting { .. } => {
                let step = format!("build the jail: process 1 {exit}");
                Event::Failed { id, failure: Failure { part: Part::Launch, step, errno: 0 } }
            }
        };
        events.push((event, None));
        Ok(true)
    }
}

/// Leaves all groups. Root's groups would give every jail access to their files; an ordinary user cannot leave groups.
fn leave_groups(walls: Walls) -> nix::Result<()> {
    match geteuid().is_root() {
        // Imitates a start by a user who is in a group.
        true if !walls.has(Wall::OwnGroups) => setgroups(&[getegid()]),
        true if !getgroups()?.is_empty() => setgroups(&[]),
        true | false => Ok(()),
    }
}

/// Maps the one uid and gid of process 1. Only its parent can do that.
fn map_ids(pid: i32, identity: Identity, walls: Walls) -> Result<(), Failure> {
    if !walls.has(Wall::UserNamespace) {
        return Ok(());
    }
    let (uid, gid) = match identity {
        Identity::Mapped { .. } if !walls.has(Wall::OwnUid) => (geteuid().as_raw(), getegid().as_raw()),
        Identity::Own => (geteuid().as_raw(), getegid().as_raw()),
        Identity::Mapped { uid, gid } => (uid, gid),
    };
    let write = |file: &str, text: String| {
        step(Part::Ids, format!("write {file} of process 1"), std::fs::write(format!("/proc/{pid}/{file}"), text))
    };
    write("uid_map", format!("{INNER_ID} {uid} 1"))?;
    write("setgroups", "deny".into())?;
    write("gid_map", format!("{INNER_ID} {gid} 1"))
}
