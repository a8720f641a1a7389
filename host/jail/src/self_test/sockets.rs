//! Attempts to connect: with every family of sockets, and to every interesting peer.
//!
//! They send no data: an established connection is the breach. See [`crate::self_test::processes`].

use super::line::{Line, Refusals, SECCOMP, Scene, allowed, refused};
use crate::sys::bare;
use crate::{Spec, Wall};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, SockaddrIn6, UnixAddr, connect, sendto, socketpair,
};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

/// One more than the last family that a kernel knows; unknown families are refused like the others.
const FAMILIES: i32 = 64;
/// Types of sockets: stream, datagram, raw, reliable datagram, sequenced packets, DCCP, packet.
const TYPES: [i32; 7] = [1, 2, 3, 4, 5, 6, 10];
/// The socket is refused, or the Landlock domain refuses the connection, or there is no route.
const UNREACHABLE: Refusals =
    &[(Errno::EPERM, Wall::Seccomp), (Errno::EACCES, Wall::Landlock), (Errno::ENETUNREACH, Wall::NetworkNamespace)];

/// The same in a jail with a listener, where the loopback interface is up.
const UNREACHABLE_WITH_LISTENER: Refusals = &[
    (Errno::EPERM, Wall::Seccomp),
    (Errno::EACCES, Wall::Landlock),
    (Errno::ENETUNREACH, Wall::NetworkNamespace),
    (Errno::ECONNREFUSED, Wall::NetworkNamespace),
];

pub(super) fn lines(spec: &Spec) -> Vec<Line> {
    let Some(port) = spec.listener else {
        let reached = reached(UNREACHABLE).into_iter().chain(by_unix_socket());
        let tcp =
            refused("open a TCP socket", SECCOMP, |_| bare::socket(libc::AF_INET, libc::SOCK_STREAM, 0).map(drop));
        let unix =
            allowed("open a unix stream socket", |_| bare::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).map(drop));
        let others = others((libc::AF_UNIX, libc::SOCK_STREAM));
        return forbidden().into_iter().chain([tcp, unix, others]).chain(local()).chain(reached).collect();
    };
    let lines = forbidden().into_iter().chain([others((libc::AF_INET, libc::SOCK_STREAM))]).chain(local());
    lines.chain(reached(UNREACHABLE_WITH_LISTENER)).chain(to_listener(port)).collect()
}

/// Attempts around the one listener of the host in the network namespace of the jail.
fn to_listener(port: u16) -> Vec<Line> {
    vec![
        allowed("reach the gateway of the jail", move |_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(drop)),
        refused("reach another port of the jail", UNREACHABLE_WITH_LISTENER, move |_| {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port + 1)).map(drop)
        }),
        refused("send first bytes without a connection", SECCOMP, move |_| {
            let socket = bare::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            let gateway = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
            Ok(sendto(socket.as_raw_fd(), b"x", &gateway, MsgFlags::from_bits_retain(libc::MSG_FASTOPEN))?)
        }),
        refused("take a TCP port", SECCOMP, move |_| {
            let socket = bare::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            let free = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port + 1));
            Ok(nix::sys::socket::bind(socket.as_raw_fd(), &free)?)
        }),
        refused("listen on a TCP port", SECCOMP, |_| {
            bare::listen(bare::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?.as_fd())
        }),
        refused("open a unix stream socket", SECCOMP, |_| bare::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).map(drop)),
    ]
}

/// Attempts to open a socket of another family or type than unix streams.
fn forbidden() -> Vec<Line> {
    let open = |name: &'static str, family, kind, protocol| {
        refused(name, SECCOMP, move |_| bare::socket(family, kind, protocol).map(drop))
    };
    vec![
        open("open a TCP socket (IPv6)", libc::AF_INET6, libc::SOCK_STREAM, 0),
        open("open a UDP socket", libc::AF_INET, libc::SOCK_DGRAM, 0),
        open("open a UDP socket (IPv6)", libc::AF_INET6, libc::SOCK_DGRAM, 0),
        open("open a raw socket", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        open("open a ping socket", libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
        open("open an MPTCP socket", libc::AF_INET, libc::SOCK_STREAM, 262),
        open("open a netlink socket", libc::AF_NETLINK, libc::SOCK_RAW, 0),
        open("open a packet socket", libc::AF_PACKET, libc::SOCK_RAW, 0),
        open("open a socket to the machine's hypervisor", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        open("open a bluetooth socket", libc::AF_BLUETOOTH, libc::SOCK_RAW, 1),
        open("open a socket to the kernel's ciphers", libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        open("open an XDP socket", libc::AF_XDP, libc::SOCK_RAW, 0),
        open("open a CAN socket", libc::AF_CAN, libc::SOCK_RAW, 1),
        open("open a TIPC socket", libc::AF_TIPC, libc::SOCK_STREAM, 0),
        open("open a unix datagram socket", libc::AF_UNIX, libc::SOCK_DGRAM, 0),
        open("open a unix packet socket", libc::AF_UNIX, libc::SOCK_SEQPACKET, 0),
    ]
}

fn others(allowed: (i32, i32)) -> Line {
    refused("open a socket of any other family or type", SECCOMP, move |_| every_family(allowed))
}

/// Attempts with sockets without a peer outside: pairs, and unix sockets without a name.
fn local() -> Vec<Line> {
    vec![
        refused("make a pair of internet sockets", SECCOMP, |_| {
            Ok(socketpair(AddressFamily::Inet, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?)
        }),
        refused("make a pair of unix datagram sockets", SECCOMP, |_| {
            Ok(socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::SOCK_CLOEXEC)?)
        }),
        refused("make a pair of unix packet sockets", SECCOMP, |_| {
            Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
        }),
        allowed("make a pair of unix sockets", |_| {
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
            Ok(())
        }),
        refused("listen on a unix socket", SECCOMP, |_| {
            bare::listen(bare::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?.as_fd())
        }),
        refused("give a unix socket a name", SECCOMP, |_| {
            let socket = bare::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
            Ok(nix::sys::socket::bind(socket.as_raw_fd(), &UnixAddr::new_abstract(b"ironclaw-probe")?)?)
        }),
    ]
}

/// Attempts to reach a listener of the host, of the machine's cloud, or of the network.
fn reached(unreachable: Refusals) -> Vec<Line> {
    vec![
        refused("reach a listener of the host on 127.0.0.1", unreachable, |scene| {
            connect_v4(Ipv4Addr::LOCALHOST, scene.facts.tcp_port)
        }),
        refused("reach a listener of the host on ::1", unreachable, |scene| {
            connect_v6(Ipv6Addr::LOCALHOST, scene.facts.tcp6_port)
        }),
        refused("reach the metadata address 169.254.169.254", unreachable, |_| {
            connect_v4(Ipv4Addr::new(169, 254, 169, 254), 80)
        }),
        refused("reach the metadata address fd00:ec2::254", unreachable, |_| {
            connect_v6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 80)
        }),
        refused("ask a name server", unreachable, |_| {
            let socket = bare::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
            Ok(connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::new(9, 9, 9, 9), 53)))?)
        }),
    ]
}

/// Attempts to reach a unix socket of the host. A jail with a listener makes no unix socket.
fn by_unix_socket() -> [Line; 2] {
    [
        // The Landlock domain and two namespaces would each stop this; the error is that of the network namespace.
        refused(
            "reach an abstract socket of the host",
            &[(Errno::ECONNREFUSED, Wall::NetworkNamespace)],
            connect_abstract,
        ),
        refused("reach the socket of the host's API", &[(Errno::ENOENT, Wall::Root)], |scene| {
            let socket = bare::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
            Ok(connect(socket.as_raw_fd(), &UnixAddr::new(&scene.facts.host_socket)?)?)
        }),
    ]
}

/// Tries each family with each type except the allowed pair, and returns the first unexpected result.
fn every_family(allowed: (i32, i32)) -> io::Result<()> {
    let all = (0..FAMILIES).flat_map(|family| TYPES.map(|kind| (family, kind)));
    for (family, kind) in all.filter(|pair| *pair != allowed) {
        match bare::socket(family, kind, 0) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
            other => return other.map(drop),
        }
    }
    Err(Errno::EPERM.into())
}

fn connect_v4(address: Ipv4Addr, port: u16) -> io::Result<()> {
    let socket = bare::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    Ok(connect(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address, port)))?)
}

fn connect_v6(address: Ipv6Addr, port: u16) -> io::Result<()> {
    let socket = bare::socket(libc::AF_INET6, libc::SOCK_STREAM, 0)?;
    Ok(connect(socket.as_raw_fd(), &SockaddrIn6::from(SocketAddrV6::new(address, port, 0, 0)))?)
}

fn connect_abstract(scene: &Scene<'_>) -> io::Result<()> {
    let socket = bare::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    Ok(connect(socket.as_raw_fd(), &UnixAddr::new_abstract(scene.facts.abstract_name.as_bytes())?)?)
}
