//! The launch of a session: directories, queue, sockets, jail, handshake, kernel check, key, first bell, drain.
//!
//! Never gives out a key before the kernel reports that the walls are in place; a missing wall is a refusal, never a downgrade. See
//! [`ironclaw_jail::inspect`].

mod jails;

pub use jails::{Config, Jails};

use crate::calls::model_socket::{ModelServers, Server};
use crate::reach::packages;
use crate::runtime::link::{self, Link};
use crate::runtime::pipeline::Queue;
use crate::runtime::projection;
use crate::sessions::store::{FailureReason, Session};
use crate::turns::items;
use ironclaw_contract::seam::crypt::{self, SessionKey};
use ironclaw_contract::seam::inbound::InboundWriter;
use ironclaw_contract::seam::link::path;
use ironclaw_jail::launcher::{self, Jailed};
use ironclaw_jail::reader::{self, Reader};
use ironclaw_jail::shortage::Shortage;
use ironclaw_jail::{Spec, inspect};
use ironclaw_ledger::Entry;
use ironclaw_operator::{JailReport, LedgerEvent};
use ironclaw_state::WriteTx;
use ironclaw_state::home;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error as PipelineError;
use ironclaw_store::record::Record;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The end of a launcher is reported within this time of the end of its jails.
pub(crate) const LAUNCHER_END_TIME: Duration = Duration::from_millis(50);

/// The first words of the reason of a session that was parked because of a damaged skill.
pub(crate) const SKILL_DAMAGED: &str = "a skill of the agent is damaged";

/// A session with a running sandbox and reader.
pub struct Awake {
    pub sandbox: Jailed,
    pub reader_process: Jailed,
    /// The host's end of the reader.
    pub reader: Reader,
    /// `true` if a reader died since the last row was taken.
    pub reader_died: bool,
    /// `true` if there is no reader and none is started.
    pub reader_gone: bool,
    /// The host's end of the link.
    pub link: Link,
    /// The host's end of the inbound queue; `None` during a write.
    pub inbound: Option<InboundWriter>,
    /// Opens the bodies of items.
    pub key: Arc<ContentKey>,
    /// Opens the queues; kept for a second reader.
    pub queue: SessionKey,
    /// Notifies the model server that a call has its result.
    pub results: watch::Sender<u64>,
    /// Receives violations of the sandbox from the model server.
    pub violations: mpsc::Receiver<&'static str>,
    /// The session's row at the launch.
    pub session: Arc<Session>,
    /// The number of the last taken outbound row.
    pub cursor: u64,
    /// The number of refused outbound rows in this launch.
    pub refused_rows: u32,
    _server: ServerTask,
    socket: PathBuf,
}

/// The task that serves a session's model socket. Dropping this value ends it.
struct ServerTask(JoinHandle<()>);

impl Drop for ServerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Awake {
    /// Returns its outbound queue, for [`crate::runtime::pipeline`].
    pub const fn outbound(&mut self) -> Queue<'_> {
        Queue { session: &self.session, key: &self.key, cursor: &mut self.cursor }
    }

    /// Closes the link: the sandbox notices it and exits.
    pub fn hang_up(&mut self) {
        self.link.close();
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.sandbox.kill();
        self.reader_process.kill();
        let _ = std::fs::remove_file(&self.socket);
        let _ = self.socket.parent().map(std::fs::remove_dir);
    }
}

/// The reason that a session did not wake.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the keys of {0}: {1}")]
    Keys(ironclaw_contract::ids::SessionId, ironclaw_state::keys::Error),
    #[error(transparent)]
    Home(#[from] home::Error),
    #[error(transparent)]
    Inbound(crypt::Error),
    #[error("cannot make the sockets of {session}: {source}")]
    Socket { session: ironclaw_contract::ids::SessionId, source: std::io::Error },
    #[error(transparent)]
    Launch(#[from] launcher::Error),
    /// The kernel reports a jail that differs from the specification.
    #[error("the jail of {session} is not what it must be: {what}")]
    Walls { session: ironclaw_contract::ids::SessionId, what: String },
    #[error(transparent)]
    Link(#[from] link::Error),
    #[error(transparent)]
    Reader(#[from] reader::Error),
    /// The range of uids is exhausted.
    #[error("{session} is number {offset} and jail.uid_count is {count}: widen the range")]
    Uids {
        session: ironclaw_contract::ids::SessionId,
        /// Its number.
        offset: u32,
        count: u32,
    },
    /// A granted directory may not be mounted under the current settings.
    #[error(
        "{directory} may no longer be mounted at {target}: it is not below a directory of `[mounts] allow` in config.toml, or it contains files \
         of the host; allow it again, or take it from the agent with a change of kind mounts"
    )]
    Mount {
        directory: PathBuf,
        /// Its path in the jail.
        target: String,
    },
    /// The table of mounts is unreadable, so the check of a granted directory is not possible.
    #[error("cannot read the table of mounts: {0}")]
    Mounts(#[source] std::io::Error),
    /// A file of a skill is missing or differs from the verified package.
    #[error("{damaged}: {0}; `ironctl skill show NAME --version VERSION` fetches it again", damaged = SKILL_DAMAGED)]
    Skill(#[from] ironclaw_skill::Error),
    /// The agent of a command may no longer run commands.
    #[error("the agent of {0} may not run commands")]
    NoPrograms(ironclaw_contract::ids::SessionId),
    /// The agent's software differs from the fetched layer.
    #[error(transparent)]
    Layer(#[from] packages::Error),
    #[error(transparent)]
    Pipeline(#[from] Box<PipelineError>),
}

impl Error {
    /// Returns the reason in the host's own words, with a stranger's words apart.
    pub fn why(&self) -> FailureReason {
        match self {
            Self::Link(link::Error::Fatal { reason, .. }) => {
                FailureReason { words: "its process failed".to_owned(), detail: reason.clone() }
            }
            Self::Reader(reader::Error::Violation(what)) => {
                FailureReason { words: reader::VIOLATION.to_owned(), detail: what.clone() }
            }
            // The reader of this reason can request the packages again.
            Self::Layer(packages::Error::Refused(refusal)) if !refusal.hint.is_empty() => {
                FailureReason::new(format!("{}; {}", refusal.message, refusal.hint))
            }
            other => FailureReason::new(other.to_string()),
        }
    }

    /// Returns the shortage that the error reports, if any.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Launch(error) | Self::Layer(packages::Error::Launch(error)) => error.shortage(),
            Self::Reader(reader::Error::Dead(error)) => Shortage::find_in(error),
            other => Shortage::find_in(other),
        }
    }

    /// Returns whether the sandbox caused the error, so that a person must check before it runs again.
    pub fn is_violation(&self) -> bool {
        match self {
            Self::Link(link::Error::Violation { .. }) | Self::Reader(reader::Error::Violation(_)) => true,
            // The sandbox opens its own file; only the sandbox or an operator can have changed it.
            Self::Link(link::Error::Fatal { reason, .. }) => {
                let found = ["wrong key or damaged file", "not a regular file", "its schema is not the contract's"];
                reason.starts_with("cannot open outbound queue") && found.iter().any(|found| reason.contains(found))
            }
            Self::Link(link::Error::Silent { .. } | link::Error::Drift { .. } | link::Error::Cut { .. })
            | Self::Keys(..)
            | Self::Home(_)
            | Self::Inbound(_)
            | Self::Socket { .. }
            | Self::Launch(_)
            | Self::Walls { .. }
            | Self::Reader(_)
            | Self::Uids { .. }
            | Self::NoPrograms(_)
            | Self::Skill(_)
            | Self::Layer(_)
            | Self::Mount { .. }
            | Self::Mounts(_)
            | Self::Pipeline(_) => false,
        }
    }
}

/// Starts a reader in its jail and gives it the key.
pub async fn start_reader(jails: &Jails, session: &Session, queue: &SessionKey) -> Result<(Jailed, Reader), Error> {
    let (ours, theirs) = link_pair(session)?;
    let spec = jails.reader_spec(session)?;
    let process = jails.launcher.launch(spec.clone(), theirs).await?;
    check_walls(session, &process, &spec)?;
    let reader = Reader::start(ours, queue).await?;
    Ok((process, reader))
}

/// Records a lost workspace, if the session has already worked: its agent finds an empty one.
async fn record_lost_workspace(record: &Record, session: &Session) -> Result<(), Error> {
    let id = session.id;
    // Old turns and items are deleted, but the cursor stays. A turn without a row may still have had an output.
    let has_worked = session.cursor > 0
        || record.state.read(move |tx| Ok::<_, PipelineError>(items::has_turn(tx, id)?)).await.map_err(Box::new)?;
    if !has_worked {
        return Ok(());
    }
    let note = move |tx: &mut WriteTx<'_>| {
        Entry::new(LedgerEvent::SessionWorkspaceLost).session(id).append(tx)?;
        Ok::<_, PipelineError>(())
    };
    record.state.write(note).await.map_err(Box::new)?;
    tracing::error!(session = %id, "the workspace of this session was missing; an empty one was made: restore its backup");
    Ok(())
}

/// Makes the missing directories of a session; returns its uid, if the host was started as root.
pub(crate) async fn prepare_directories(jails: &Jails, session: &Session) -> Result<Option<u32>, Error> {
    let uid = jails.uid_of(session)?;
    if jails.home.session(session.id).prepare(uid)? {
        record_lost_workspace(&jails.record, session).await?;
    }
    Ok(uid)
}

pub async fn launch(jails: &Jails, models: &Arc<ModelServers>, session: &Session) -> Result<Awake, Error> {
    let record = &*jails.record;
    // First a permit: at a start of the daemon, every session with work wakes at the same time.
    let _permit = jails.at_once.acquire().await;
    let (recorded, spec) = tokio::join!(record_launch(record, session), jails.sandbox_spec(session));
    let ((), spec) = (recorded?, spec?);
    let keys = session.keys(&record.wrapping).map_err(|error| Error::Keys(session.id, error))?;
    let uid = prepare_directories(jails, session).await?;
    let (queue, key) = (keys.queue, Arc::new(keys.content));
    let (results, changed) = watch::channel(0);
    let (report_violation, violations) = mpsc::channel(1);
    let (sandbox_pid, known) = watch::channel(None);
    // Before a jail of the session exists: its sandbox could hold a lock on the queue.
    let inbound = open_inbound(jails, session, &queue, uid).await?;
    let (listener, socket) = listen(jails, session, uid)?;
    let server = Arc::new(Server::new(Arc::clone(models), session.id, Arc::clone(&key), changed, report_violation));
    let server = ServerTask(tokio::spawn(server.run(listener, known)));
    let jailed = async {
        let (ours, theirs) = link_pair(session)?;
        let sandbox = jails.launcher.launch(spec.clone(), theirs).await?;
        sandbox_pid.send_replace(Some(sandbox.pid));
        #[cfg(feature = "relay")]
        let ours =
            crate::runtime::relay::put_between(ours).map_err(|source| Error::Socket { session: session.id, source })?;
        let mut link = Link::new(session.id, ours);
        // The sandbox starts during this look, so it takes no time of its own.
        let report = sandbox.report();
        link.hello().await?;
        check_report(session, report, &spec)?;
        Ok::<_, Error>((sandbox, link))
    };
    let welcomed = async {
        let (sandbox, mut link) = jailed.await?;
        link.welcome(&queue, models.turns.config().limits()).await?;
        link.ready().await.map(|()| (sandbox, link)).map_err(Error::from)
    };
    // The error of the sandbox counts first: it may be a violation.
    let (welcomed, reader) = tokio::join!(welcomed, start_reader(jails, session, &queue));
    let ((sandbox, link), (reader_process, reader)) = (welcomed?, reader?);
    Ok(Awake {
        sandbox,
        reader_process,
        reader,
        reader_died: false,
        reader_gone: false,
        link,
        inbound: Some(inbound),
        key,
        queue,
        results,
        violations,
        session: Arc::new(session.clone()),
        cursor: session.cursor,
        refused_rows: 0,
        _server: server,
        socket,
    })
}

/// Records the launch before its first step.
async fn record_launch(record: &Record, session: &Session) -> Result<(), Error> {
    let id = session.id;
    let launch = record.state.write(move |tx| {
        Entry::new(LedgerEvent::SessionLaunching).session(id).append(tx)?;
        Ok::<_, PipelineError>(())
    });
    Ok(launch.await.map_err(Box::new)?)
}

async fn open_inbound(
    jails: &Jails,
    session: &Session,
    queue: &SessionKey,
    uid: Option<u32>,
) -> Result<InboundWriter, Error> {
    let path = jails.home.session(session.id).inbound_db();
    let key = SessionKey::new(*queue.as_bytes());
    let opened = tokio::task::spawn_blocking(move || projection::open(&path, &key, uid)).await;
    let (inbound, damage) = opened.expect("opening a queue does not panic").map_err(Error::Inbound)?;
    if let Some(damage) = damage {
        tracing::warn!(session = %session.id, %damage, "the inbound queue was rebuilt");
        let id = session.id;
        let note = jails.record.state.write(move |tx| {
            Entry::new(LedgerEvent::InboundRebuilt)
                .session(id)
                .reason(&format!("cannot open inbound queue of {id}: wrong key or damaged file"))
                .append(tx)?;
            Ok::<_, PipelineError>(())
        });
        note.await.map_err(Box::new)?;
    }
    Ok(inbound)
}

/// Makes the directory of a session's sockets, which the session's uid may enter.
pub(crate) fn make_run_directory(jails: &Jails, session: &Session, uid: Option<u32>) -> Result<PathBuf, Error> {
    use std::os::unix::fs::{PermissionsExt, lchown};
    let directory = jails.run_directory(session);
    home::make_private(&directory)?;
    if let Some(uid) = uid {
        lchown(&directory, None, Some(uid))
            .and_then(|()| std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o750)))
            .map_err(|source| Error::Socket { session: session.id, source })?;
    }
    Ok(directory)
}

fn listen(jails: &Jails, session: &Session, uid: Option<u32>) -> Result<(UnixListener, PathBuf), Error> {
    use std::os::unix::fs::{PermissionsExt, lchown};
    let directory = make_run_directory(jails, session, uid)?;
    let socket = directory.join(path::MODEL_SOCK);
    let listen = || -> std::io::Result<UnixListener> {
        home::discard(&socket)?;
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        if let Some(uid) = uid {
            lchown(&socket, Some(uid), Some(uid))?;
        }
        Ok(listener)
    };
    let listener = listen().map_err(|source| Error::Socket { session: session.id, source })?;
    Ok((listener, socket))
}

pub(crate) fn link_pair(session: &Session) -> Result<(UnixStream, OwnedFd), Error> {
    let make = || -> std::io::Result<(UnixStream, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
        let ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true)?;
        Ok((UnixStream::from_std(ours)?, theirs))
    };
    make().map_err(|source| Error::Socket { session: session.id, source })
}

fn check_walls(session: &Session, process: &Jailed, spec: &Spec) -> Result<(), Error> {
    check_report(session, process.report(), spec)
}

fn check_report(session: &Session, report: std::io::Result<JailReport>, spec: &Spec) -> Result<(), Error> {
    let walls = |what: String| Error::Walls { session: session.id, what };
    let report = report.map_err(|error| walls(format!("the kernel does not show it ({error})")))?;
    inspect::verify(&report, spec).map_err(|faults| walls(faults.join("; ")))
}
