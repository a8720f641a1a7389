//! The loopback ports: one for programs that cannot reach the unix socket, one for webhooks, and one for the console.
//!
//! Closed unless the settings open them; `ironctl console` opens that of the console. Only the console answers on an address that other
//! machines can reach, and there only with a certificate. The bounds on connections are those of the unix socket. See
//! `api::connections`, `api::auth`.

use super::connections::{BoundedListener, Bounds, ConnectionHandle};
use super::tls::{ConsoleListener, Identity};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpListener, UnixListener};

/// Connections to the port of the API, besides the one that is reserved for `/healthz` and `/readyz`.
const API: Bounds = Bounds { connections_max: 63, reserves_one: true };

/// Connections to the port for webhooks, which answers nothing else.
const HOOKS: Bounds = Bounds { connections_max: 64, reserves_one: false };

/// Connections to the port of the console. A browser holds some for each page, and one for its live parts.
const CONSOLE: Bounds = Bounds { connections_max: 256, reserves_one: false };

/// Connections to the unix socket, which also reserves one for `/healthz`.
const UNIX: Bounds = Bounds { connections_max: 4096, reserves_one: true };

/// Parses the setting of this name: empty for no port, else a loopback address with a port.
///
/// # Errors
/// Returns a sentence about the mistake.
pub fn parse(name: &str, setting: &str) -> Result<Option<SocketAddr>, String> {
    if setting.is_empty() {
        return Ok(None);
    }
    let address: SocketAddr = setting
        .parse()
        .map_err(|_| format!("{name} is {setting:?}: expected an address such as 127.0.0.1:8787 or [::1]:8787"))?;
    if !address.ip().is_loopback() {
        return Err(format!(
            "{name} is {setting:?}: only a loopback address is allowed, such as 127.0.0.1:8787; from another machine use ssh -L, or a proxy with TLS"
        ));
    }
    Ok(Some(address))
}

pub type Port = BoundedListener<TcpListener>;

pub type ConsolePort = BoundedListener<ConsoleListener>;

pub type Socket = BoundedListener<UnixListener>;

/// The purpose of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    Api,
    Hooks,
}

/// Opens a port.
///
/// # Errors
/// When the system does not give the address.
pub async fn open(address: SocketAddr, what: For) -> io::Result<Port> {
    let listener = TcpListener::bind(address).await?;
    let port = listener.local_addr()?.port();
    let bounds = match what {
        For::Api => API,
        For::Hooks => HOOKS,
    };
    Ok(BoundedListener::new(listener, port, bounds))
}

/// Opens the port of the console with TLS.
///
/// # Errors
/// When the system does not give the address.
pub async fn open_console(address: SocketAddr, identity: Identity) -> io::Result<ConsolePort> {
    let listener = TcpListener::bind(address).await?;
    let port = listener.local_addr()?.port();
    Ok(BoundedListener::new(ConsoleListener::new(listener, None, Some(identity)), port, CONSOLE))
}

/// Free ports that are tried: another program may have one of them on the other loopback address.
const FREE_PORTS_TRIED: usize = 8;

/// Opens the plain port of the console on both loopback addresses: another user of the machine who had one of them would get the
/// requests of browsers. Port 0 takes one that is free on both.
///
/// # Errors
/// When another program has the port on one of them.
pub async fn open_plain_console(address: SocketAddr) -> io::Result<ConsolePort> {
    let mut opened = open_on_both(address).await;
    for _ in 1..FREE_PORTS_TRIED {
        if opened.is_ok() || address.port() != 0 {
            break;
        }
        opened = open_on_both(address).await;
    }
    opened
}

async fn open_on_both(address: SocketAddr) -> io::Result<ConsolePort> {
    let listener = TcpListener::bind(address).await?;
    let port = listener.local_addr()?.port();
    let other: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv4Addr::LOCALHOST.into(),
    };
    let beside = match TcpListener::bind((other, port)).await {
        Ok(beside) => Some(beside),
        // A machine without IPv6 has no such address for anyone.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT)) => None,
        Err(error) => return Err(error),
    };
    Ok(BoundedListener::new(ConsoleListener::new(listener, beside, None), port, CONSOLE))
}

/// Returns the unix socket with its bounds.
pub fn unix(listener: UnixListener) -> Socket {
    BoundedListener::new(listener, 0, UNIX)
}

impl Port {
    pub fn address(&self) -> Option<SocketAddr> {
        self.local_addr().ok()
    }
}

impl Connected<IncomingStream<'_, Port>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, Port>) -> Self {
        stream.io().handle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn console_has_both_loopback_addresses_or_none() {
        let port = open_plain_console(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
        let number = port.local_addr().expect("an address").port();
        let taken = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, number));
        assert!(taken.is_err(), "the console has it, or the machine has none");
        drop(port);
        let Ok(squatter) = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
        let number = squatter.local_addr().expect("an address").port();
        assert!(open_plain_console(SocketAddr::from(([127, 0, 0, 1], number))).await.is_err());
    }

    #[test]
    fn only_a_loopback_address_with_a_port_is_taken() {
        let parse = |setting| parse("api.listen", setting);
        assert_eq!(parse(""), Ok(None));
        assert!(parse("127.0.0.1:8787").expect("loopback").is_some() && parse("[::1]:0").expect("loopback").is_some());
        for other in [
            "0.0.0.0:8787",
            "[::]:8787",
            "192.168.1.2:80",
            "[::ffff:127.0.0.1]:80",
            "localhost:8787",
            "8787",
            "127.0.0.1",
        ] {
            assert!(parse(other).is_err(), "{other}");
        }
    }
}
