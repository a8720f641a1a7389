//! A program for a jail that tries to get out of it, and says what happened.
//!
//! It runs under exactly the mounts and filters of a sandbox, in the launcher's own image, and never
//! outside a jail. A new attempt is one line in [`ATTEMPTS`]. Next: `ironclaw-host doctor --prove`.

use super::{Role, Spec};
use crate::launcher::{self, Launcher};
use crate::sys::{self, Bare};
use ironclaw_contract::operator::Attempt;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::kill;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::{Pid, Uid, chroot, execv, setuid};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Duration;

/// Longest report of a probe, in bytes.
const REPORT_BYTES_MAX: u64 = 64 * 1024;
/// How long the attempts may take together; each is a few system calls.
const PROBE_MS_MAX: u64 = 10_000;

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There was no jail to probe.
    #[error(transparent)]
    Launch(#[from] launcher::Error),
    /// The probe did not report.
    #[error("the probe in the jail of {name} did not report: {why}")]
    Silent {
        /// Name of the jail.
        name: String,
        /// What happened instead.
        why: String,
    },
}

/// Launches the probe in the jail of `spec`, whose role is replaced, and gives every attempt in order.
///
/// The proof holds when each attempt is `contained`.
pub async fn prove(launcher: &Launcher, mut spec: Spec) -> Result<Vec<Attempt>, Error> {
    let name = spec.name.clone();
    let silent = |why: String| Error::Silent { name: name.clone(), why };
    spec.role = Role::Probe { host_pid: std::process::id() };
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(|error| silent(error.to_string()))?;
    let jailed = launcher.launch(spec, theirs.into()).await?;
    // A blocking read elsewhere: the probe writes once, and its end closes the link.
    let read = tokio::task::spawn_blocking(move || -> io::Result<Vec<u8>> {
        ours.set_read_timeout(Some(Duration::from_millis(PROBE_MS_MAX)))?;
        let mut bytes = Vec::new();
        ours.take(REPORT_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = match read.await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Err(silent(error.to_string())),
        Err(error) => return Err(silent(error.to_string())),
    };
    if bytes.is_empty() {
        return Err(silent(format!("it {}", jailed.exited().await)));
    }
    serde_json::from_slice(&bytes).map_err(|error| silent(error.to_string()))
}

/// The probe itself, in the jail: its exit code.
pub(crate) fn run(link: OwnedFd, host_pid: u32) -> i32 {
    let attempts: Vec<Attempt> = ATTEMPTS.iter().map(|planned| planned.make(host_pid)).collect();
    let written = serde_json::to_vec(&attempts)
        .map_err(io::Error::from)
        .and_then(|bytes| std::os::unix::net::UnixStream::from(link).write_all(&bytes));
    i32::from(written.is_err())
}

/// One thing to try.
struct Planned {
    name: &'static str,
    /// The errors by which it may be refused, each with the wall that it tells of; none at all means
    /// that it has to work.
    walls: &'static [(Errno, &'static str)],
    /// Does it; the argument is a process of the host.
    act: fn(u32) -> io::Result<()>,
}

const SECCOMP: &[(Errno, &str)] = &[(Errno::EPERM, "seccomp")];
const LISTING: &[(Errno, &str)] = &[(Errno::EACCES, "landlock"), (Errno::ENOENT, "mount namespace")];
const ABSENT: &[(Errno, &str)] = &[(Errno::ENOENT, "mount namespace"), (Errno::EACCES, "landlock")];
const READ_ONLY: &[(Errno, &str)] = &[(Errno::EROFS, "read-only mount"), (Errno::EACCES, "landlock")];
const ALLOWED: &[(Errno, &str)] = &[];

/// Everything that is tried, in order.
#[rustfmt::skip]
const ATTEMPTS: &[Planned] = &[
    Planned { name: "read the directory /in", walls: ALLOWED, act: |_| list("/in") },
    Planned { name: "write, read and delete a file in /workspace", walls: ALLOWED, act: |_| round_trip() },
    Planned { name: "open a TCP socket", walls: SECCOMP, act: |_| open_socket(AddressFamily::Inet, SockType::Stream) },
    Planned { name: "open a TCP socket (IPv6)", walls: SECCOMP, act: |_| open_socket(AddressFamily::Inet6, SockType::Stream) },
    Planned { name: "open a UDP socket", walls: SECCOMP, act: |_| open_socket(AddressFamily::Inet, SockType::Datagram) },
    Planned { name: "open a netlink socket", walls: SECCOMP, act: |_| open_socket(AddressFamily::Netlink, SockType::Raw) },
    Planned { name: "open a packet socket", walls: SECCOMP, act: |_| open_socket(AddressFamily::Packet, SockType::Raw) },
    Planned { name: "connect to an abstract socket", walls: &[(Errno::ECONNREFUSED, "network namespace"), (Errno::EPERM, "landlock")], act: |_| connect_abstract() },
    Planned { name: "open /etc/passwd", walls: ABSENT, act: |_| std::fs::read("/etc/passwd").map(drop) },
    Planned { name: "open the host's root of a parent directory", walls: ABSENT, act: |_| std::fs::read("../../../../etc/passwd").map(drop) },
    Planned { name: "list the root of the jail", walls: &[(Errno::EACCES, "landlock")], act: |_| list("/") },
    Planned { name: "list /proc", walls: LISTING, act: |_| list("/proc") },
    Planned { name: "write into /in", walls: READ_ONLY, act: |_| std::fs::write("/in/.ironclaw-probe", b"x") },
    Planned { name: "write outside every mount", walls: READ_ONLY, act: |_| std::fs::write("/x", b"x") },
    Planned { name: "make a device", walls: SECCOMP, act: |_| Ok(mknod("/workspace/.ironclaw-null", SFlag::S_IFCHR, Mode::S_IRUSR, nix::sys::stat::makedev(1, 3))?) },
    Planned { name: "make a set-uid file", walls: SECCOMP, act: |_| make_set_uid() },
    Planned { name: "execute a program", walls: SECCOMP, act: |_| Ok(execv(c"/in/program", &[c"program"]).map(drop)?) },
    Planned { name: "listen on a unix socket", walls: SECCOMP, act: |_| UnixListener::bind("/workspace/.ironclaw-socket").map(drop) },
    Planned { name: "mount a tmpfs", walls: SECCOMP, act: |_| Ok(mount(None::<&str>, "/workspace", Some("tmpfs"), MsFlags::empty(), None::<&str>)?) },
    Planned { name: "change the root directory", walls: SECCOMP, act: |_| Ok(chroot("/workspace")?) },
    Planned { name: "make a user namespace", walls: SECCOMP, act: |_| Ok(unshare(CloneFlags::CLONE_NEWUSER)?) },
    Planned { name: "become root", walls: SECCOMP, act: |_| Ok(setuid(Uid::from_raw(0))?) },
    Planned { name: "trace process 1", walls: SECCOMP, act: |_| sys::bare(Bare::PtraceInit) },
    Planned { name: "signal a process of the host", walls: &[(Errno::ESRCH, "pid namespace"), (Errno::EPERM, "landlock")], act: |host| Ok(kill(Pid::from_raw(host as i32), None)?) },
    Planned { name: "load a bpf map", walls: SECCOMP, act: |_| sys::bare(Bare::Bpf) },
    Planned { name: "set up an io_uring", walls: SECCOMP, act: |_| sys::bare(Bare::IoUringSetup) },
    Planned { name: "reach the session keyring", walls: SECCOMP, act: |_| sys::bare(Bare::Keyctl) },
];

impl Planned {
    fn make(&self, host_pid: u32) -> Attempt {
        let result = (self.act)(host_pid);
        let errno = match &result {
            Ok(()) => None,
            Err(error) => Some(error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)),
        };
        let wall = self.walls.iter().find(|(refusal, _)| Some(*refusal) == errno).map(|(_, wall)| *wall);
        let must_work = self.walls.is_empty();
        Attempt {
            name: self.name.to_owned(),
            expected: if must_work { "allowed" } else { "refused" }.to_owned(),
            observed: errno.map_or_else(|| "allowed".to_owned(), |errno| format!("{errno:?}")),
            wall: wall.unwrap_or_default().to_owned(),
            contained: if must_work { errno.is_none() } else { wall.is_some() },
        }
    }
}

fn list(path: &str) -> io::Result<()> {
    std::fs::read_dir(path)?.try_for_each(|entry| entry.map(drop))
}

fn round_trip() -> io::Result<()> {
    const FILE: &str = "/workspace/.ironclaw-probe";
    std::fs::write(FILE, b"probe")?;
    let read = std::fs::read(FILE)?;
    std::fs::remove_file(FILE)?;
    if read == b"probe" { Ok(()) } else { Err(Errno::EIO.into()) }
}

fn make_set_uid() -> io::Result<()> {
    const FILE: &str = "/workspace/.ironclaw-set-uid";
    std::fs::write(FILE, b"probe")?;
    let made = std::fs::set_permissions(FILE, PermissionsExt::from_mode(0o4755));
    std::fs::remove_file(FILE)?;
    made
}

fn open_socket(family: AddressFamily, kind: SockType) -> io::Result<()> {
    Ok(socket(family, kind, SockFlag::SOCK_CLOEXEC, None).map(drop)?)
}

fn connect_abstract() -> io::Result<()> {
    let stream = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    Ok(connect(stream.as_raw_fd(), &UnixAddr::new_abstract(b"ironclaw-probe")?)?)
}
