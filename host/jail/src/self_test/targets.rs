//! Targets of a probe: real listeners of the host, for the time of a proof.
//!
//! They read no data from a peer. The host connects to them before and after the attempts, because an absent target proves nothing.
//! See [`crate::self_test::sockets`], whose attempts use them.

use crate::Wall;
use ironclaw_operator::Attempt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

pub(super) struct Targets {
    name: String,
    unix: UnixListener,
    tcp: TcpListener,
    /// `None` on a machine without IPv6.
    tcp6: Option<TcpListener>,
}

impl Targets {
    /// Listens on an abstract unix socket and on a free port of each loopback address.
    pub(super) fn open(jail: &str) -> io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        // Only this proof has the port, so the name is unique too.
        let name = format!("ironclaw-{jail}-{}", tcp.local_addr()?.port());
        let unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let tcp6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        unix.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        tcp6.as_ref().map_or(Ok(()), |tcp6| tcp6.set_nonblocking(true))?;
        Ok(Self { name, unix, tcp, tcp6 })
    }

    pub(super) fn abstract_name(&self) -> &str {
        &self.name
    }

    pub(super) fn tcp_port(&self) -> u16 {
        port(&self.tcp)
    }

    pub(super) fn tcp6_port(&self) -> u16 {
        self.tcp6.as_ref().map_or(0, port)
    }

    /// Connects to each of them: the first accepted peer is this process, unless another process connected before.
    pub(super) fn answer(&self) -> io::Result<()> {
        let _ours = UnixStream::connect_addr(&SocketAddr::from_abstract_name(&self.name)?)?;
        self.unix.accept()?;
        for tcp in std::iter::once(&self.tcp).chain(&self.tcp6) {
            let ours = TcpStream::connect(tcp.local_addr()?)?;
            let (_, peer) = tcp.accept()?;
            if peer != ours.local_addr()? {
                return Err(io::Error::other("another process connected first"));
            }
        }
        Ok(())
    }

    /// Returns the line for the listeners: they still answer from outside, and no process of the jail connected.
    pub(super) fn untouched(&self) -> Attempt {
        const EXPECTED: &str = "they answer from outside, and no process connected from inside";
        let came = self.unix.accept().is_ok();
        let observed = match self.answer() {
            Ok(()) if came => "a process connected to the abstract socket".to_owned(),
            Ok(()) => EXPECTED.to_owned(),
            Err(error) => error.to_string(),
        };
        Attempt {
            group: "seen from outside".to_owned(),
            name: "connections to the host's listeners".to_owned(),
            expected: EXPECTED.to_owned(),
            contained: observed == EXPECTED,
            observed,
            wall: Wall::NetworkNamespace.name().to_owned(),
        }
    }
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().map_or(0, |address| address.port())
}
