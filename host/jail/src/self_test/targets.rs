//! Targets of a probe: listeners of the host that are really there, for as long as a proof takes.
//!
//! Reads nothing from a peer. They are tried from outside before and after, because an absent target proves nothing. See
//! [`crate::self_test::sockets`], whose attempts aim at them.

use crate::Wall;
use ironclaw_contract::operator::Attempt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

pub(super) struct Targets {
    name: String,
    unix: UnixListener,
    tcp: TcpListener,
    /// Not on a machine without IPv6.
    tcp6: Option<TcpListener>,
}

impl Targets {
    /// Listens on an abstract unix socket and on a free port of each loopback address.
    pub(super) fn open(jail: &str) -> io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        // The port is this proof's alone, so the name is too.
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

    /// Connects to each of them from here: the first accepted peer is us, unless another one connected before.
    pub(super) fn answer(&self) -> io::Result<()> {
        let _ours = UnixStream::connect_addr(&SocketAddr::from_abstract_name(&self.name)?)?;
        self.unix.accept()?;
        for tcp in std::iter::once(&self.tcp).chain(&self.tcp6) {
            let ours = TcpStream::connect(tcp.local_addr()?)?;
            let (_, peer) = tcp.accept()?;
            if peer != ours.local_addr()? {
                return Err(io::Error::other("somebody else was there first"));
            }
        }
        Ok(())
    }

    /// Returns whether they still answer from outside, and no peer has come from inside.
    pub(super) fn untouched(&self) -> Attempt {
        const EXPECTED: &str = "they answer from outside, and nobody came from inside";
        let came = self.unix.accept().is_ok();
        let observed = match self.answer() {
            Ok(()) if came => "somebody came to the abstract socket".to_owned(),
            Ok(()) => EXPECTED.to_owned(),
            Err(error) => error.to_string(),
        };
        Attempt {
            group: "seen from outside".to_owned(),
            name: "the host's listeners that were to be reached".to_owned(),
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
