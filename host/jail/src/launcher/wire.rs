//! Messages between host, launcher and jail during a launch, and their transport.
//!
//! One message is one packet of JSON with at most one descriptor. A message that is too long or was cut is an error. No jailed
//! program ever has one of these sockets. [`crate::launcher::server`] handles the messages.

use crate::Spec;
use crate::sys;
use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixCredentials, recvmsg,
    sendmsg, setsockopt, socketpair, sockopt,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Longest message, in bytes. A spec with all its mounts at the longest path is shorter.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Messages from the host to the launcher. The link's descriptor is sent beside `Launch`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Launch {
        id: u64,
        spec: Box<Spec>,
        supply: Supply,
    },
    /// Kills a jail, in any stage.
    Kill {
        id: u64,
    },
    /// Ends the jails in stock, and makes none before the next launch.
    EmptyStock,
}

/// The origin of a jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Supply {
    /// From stock if there is one, otherwise made on demand.
    Any,
    /// From stock; if the stock is empty, a jail is put there first. A jail that shares a namespace with the host is never in stock.
    Stock,
    Demand,
}

/// Messages from the launcher to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The jail is closed and its program runs in it. The descriptor of its listener is sent beside, if it has one.
    Started { id: u64, pid: i32, init_pid: i32, landlock: bool, from_stock: bool },
    /// The launch failed, and no process of the jail is left.
    Failed { id: u64, failure: Failure },
    /// The program ended, and with it all other processes of the jail.
    Exited { id: u64, exit: Exit },
}

/// Messages from the jail to the launcher, during its launch and at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Progress {
    /// The Landlock domain is in force. Process 2 sends this itself, so that the kernel identifies the sender.
    Confined {
        landlock: bool,
    },
    /// The listener of the jail; its descriptor is sent beside this message.
    Listening,
    /// The host's root is detached, and process 1 has confined itself.
    Closed,
    Failed(Failure),
    Ended(Exit),
}

/// A step of a launch that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Part of the launch that it belongs to.
    pub part: Part,
    /// Step that failed, e.g. `mount the root of the jail`.
    pub step: String,
    /// The kernel's `errno`; 0 if the kernel did not cause the failure.
    pub errno: i32,
}

/// The parts of a launch; a remedy depends on the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Starting the launcher and exchanging messages with it.
    Launcher,
    Namespaces,
    /// Giving the jail its uid and gid.
    Ids,
    /// A directory of the host that the jail mounts.
    Source,
    /// The listener in the jail's network namespace.
    Network,
    /// The host's programs in the jail.
    System,
    /// The jail's root: its mounts, and the pivot into it.
    Root,
    /// Resource limits, capabilities and `no_new_privs`.
    Privileges,
    Landlock,
    Seccomp,
    /// The program itself: opening it, executing it, its byte at the gate.
    Program,
    /// Communication between the launcher and the jail's processes.
    Launch,
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    /// An end by this signal.
    Signal(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with code {code}"),
            Self::Signal(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(named) => write!(f, "ended by {named}"),
                Err(_) => write!(f, "ended by signal {signal}"),
            },
        }
    }
}

/// Adds the name of the step to the error of a system call.
pub(crate) fn step<T, E: Into<io::Error>>(
    part: Part,
    name: impl Into<String>,
    result: Result<T, E>,
) -> Result<T, Failure> {
    result.map_err(|error| Failure { part, step: name.into(), errno: error.into().raw_os_error().unwrap_or(0) })
}

/// Makes a pair of connected sockets that preserve message boundaries.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Makes the kernel add the sender's process id, as this process sees it, to each message received here.
pub(crate) fn ask_for_senders(socket: &OwnedFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::PassCred, &true)?)
}

/// Sends one message, with a descriptor beside it if there is one.
pub(crate) fn send(socket: &OwnedFd, message: &impl Serialize, descriptor: Option<&OwnedFd>) -> io::Result<()> {
    send_bytes(socket, &encode(message)?, descriptor)
}

/// Encodes a message; an error if it is longer than [`MESSAGE_BYTES_MAX`].
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::other(format!("a message of {} bytes is longer than {MESSAGE_BYTES_MAX}", bytes.len())));
    }
    Ok(bytes)
}

/// Sends the bytes of one message.
pub(crate) fn send_bytes(socket: &OwnedFd, bytes: &[u8], descriptor: Option<&OwnedFd>) -> io::Result<()> {
    let numbers: Vec<RawFd> = descriptor.iter().map(|d| d.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let control = if numbers.is_empty() { &[][..] } else { &rights[..] };
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// A message with its descriptor and its sender.
pub(crate) struct Received<T> {
    pub(crate) message: T,
    /// The descriptor that was sent beside it.
    pub(crate) descriptor: Option<OwnedFd>,
    /// True if the kernel dropped the descriptor because this process has none left.
    pub(crate) is_bare: bool,
    /// The sender, after [`ask_for_senders`].
    pub(crate) sender: Option<UnixCredentials>,
}

/// Receives one message; `None` if the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: &OwnedFd) -> io::Result<Option<Received<T>>> {
    let mut buffer = vec![0u8; MESSAGE_BYTES_MAX];
    let mut space = cmsg_space!(UnixCredentials, [RawFd; 1]);
    let mut slices = [IoSliceMut::new(&mut buffer)];
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    let (mut descriptors, mut sender) = (Vec::new(), None);
    // The kernel drops the descriptor of a message if this process has none left.
    let is_bare = received.flags.contains(MsgFlags::MSG_CTRUNC);
    if !is_bare {
        for control in received.cmsgs()? {
            match control {
                ControlMessageOwned::ScmRights(numbers) => descriptors.extend(numbers.into_iter().map(sys::own)),
                ControlMessageOwned::ScmCredentials(credentials) => sender = Some(credentials),
                _ => {}
            }
        }
    }
    let cut = received.flags.contains(MsgFlags::MSG_TRUNC);
    let length = received.bytes;
    if length == 0 {
        return Ok(None);
    }
    if cut {
        return Err(io::Error::other("a message of the launcher was truncated"));
    }
    Ok(Some(Received {
        message: serde_json::from_slice(&buffer[..length])?,
        descriptor: descriptors.pop(),
        is_bare,
        sender,
    }))
}
