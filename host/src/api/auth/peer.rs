//! The other end of a connection: the process on the unix socket as the kernel reports it, and the headers of a request to the port.
//!
//! A request's own statement of its origin can only lead to a refusal: a foreign `Host` or `Origin` comes from a misdirected browser. See
//! `api::port`, `api::auth`.

use crate::api::connections::{ConnectionHandle, RequestInFlight};
use crate::api::port::{ConsolePort, Port, Socket};
use crate::registry::Token;
use axum::extract::Request;
use axum::extract::connect_info::Connected;
use axum::http::header::{HOST, ORIGIN};
use axum::serve::IncomingStream;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// The source of a request.
#[derive(Debug, Clone)]
pub enum Peer {
    /// A process on the unix socket, checked once for each connection.
    Unix(Result<(), Refusal>, ConnectionHandle),
    /// A process on this machine, over the loopback port.
    Loopback(ConnectionHandle),
}

impl Connected<IncomingStream<'_, Socket>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Socket>) -> Self {
        Self::Unix(check_peer(stream.io().stream()), stream.io().handle())
    }
}

impl Connected<IncomingStream<'_, Port>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Port>) -> Self {
        Self::Loopback(stream.io().handle())
    }
}

impl Connected<IncomingStream<'_, ConsolePort>> for Peer {
    fn connect_info(stream: IncomingStream<'_, ConsolePort>) -> Self {
        Self::Loopback(stream.io().handle())
    }
}

impl Peer {
    /// Returns the word for the ledger.
    pub const fn via(&self) -> &'static str {
        match self {
            Self::Unix(..) => "unix",
            Self::Loopback(_) => "loopback",
        }
    }

    /// Returns true if processes of other users can connect.
    pub const fn is_open_to_others(&self) -> bool {
        match self {
            Self::Unix(..) => false,
            Self::Loopback(_) => true,
        }
    }

    const fn handle(&self) -> &ConnectionHandle {
        match self {
            Self::Unix(_, handle) | Self::Loopback(handle) => handle,
        }
    }

    /// Records that a request on this connection carried this valid token.
    ///
    /// # Errors
    /// Refuses a connection beyond the share of one person.
    pub fn admit(&self, token: &Token) -> Result<(), Refusal> {
        self.handle().admit(&token.id, token.person.id)
    }

    /// Marks the connection as busy until the answer is sent.
    pub fn begin_request(&self) -> RequestInFlight {
        self.handle().begin_request()
    }

    /// Records that a request on this connection carried no valid token.
    pub fn withdraw(&self) {
        self.handle().withdraw();
    }

    /// Checks the connection and the headers before the token is read.
    ///
    /// # Errors
    /// Refuses a process of another user or user namespace, and a request with a foreign `Host` or `Origin`.
    pub fn check(&self, request: &Request) -> Result<(), Refusal> {
        match self {
            Self::Unix(looked, _) => looked.clone(),
            Self::Loopback(handle) => check_names(request, handle.port()),
        }
    }
}

/// Checks `Host` and `Origin`. A web page whose name resolves to this address carries its own name in both headers, and cannot change them.
fn check_names(request: &Request, port: u16) -> Result<(), Refusal> {
    let ours = |name: &str| ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| name == format!("{host}:{port}"));
    let one = |header| {
        let mut found = request.headers().get_all(header).iter();
        (found.next().map(|value| value.to_str().unwrap_or("")), found.next().is_some())
    };
    // The request line may name the host too, and then it has precedence (RFC 9112, 3.2.2).
    let in_line = request.uri().authority().is_none_or(|authority| ours(authority.as_str()));
    if !in_line || !matches!(one(HOST), (Some(host), false) if ours(host)) {
        let refusal = Refusal::new(DenialCode::HostForeign, "the request has another host's name");
        return Err(refusal.hint(format!("use http://127.0.0.1:{port}, or localhost or [::1] in place of the address")));
    }
    match one(ORIGIN) {
        (None, _) => Ok(()),
        (Some(origin), false) if origin.strip_prefix("http://").is_some_and(ours) => Ok(()),
        (Some(_), _) => {
            let refusal = Refusal::new(DenialCode::OriginForeign, "a page of another origin is not served");
            Err(refusal.hint("this API is for programs; web pages cannot use it"))
        }
    }
}

fn check_peer(stream: &UnixStream) -> Result<(), Refusal> {
    let me = nix::unistd::geteuid().as_raw();
    // Held during the check: its pid cannot be reused while the process lives. Linux before 6.5 does not support this.
    let held = getsockopt(stream, sockopt::PeerPidfd).ok();
    let peer = stream.peer_cred().ok();
    let Some(uid) = peer.map(|peer| peer.uid()).filter(|uid| *uid == me || *uid == 0) else {
        let refusal = Refusal::new(DenialCode::PeerUser, "this socket serves its own user only");
        return Err(refusal.hint("run ironctl as the user that the host runs as, or use the loopback port"));
    };
    // Another user cannot inspect root's processes, and root can do everything anyway.
    if uid != me {
        return Ok(());
    }
    let theirs = peer.and_then(|peer| peer.pid()).map(|pid| user_namespace(&pid.to_string()));
    judge(user_namespace("self").ok().as_deref(), theirs, held.map(|process| is_alive(&process)))
}

/// Judges a process by its user namespace and ours; `alive` is the state of its pidfd, if the kernel supports it.
fn judge(ours: Option<&Path>, theirs: Option<io::Result<PathBuf>>, alive: Option<bool>) -> Result<(), Refusal> {
    let is_missing = matches!(&theirs, Some(Err(error)) if error.kind() == io::ErrorKind::NotFound);
    if alive == Some(false) || (is_missing && alive.is_none()) {
        return Err(Refusal::new(DenialCode::PeerGone, "the process at the other end has ended"));
    }
    match theirs {
        Some(Ok(theirs)) if ours == Some(&*theirs) => Ok(()),
        Some(_) | None => {
            let refusal = Refusal::new(DenialCode::PeerNamespace, "a process in another user namespace is not served");
            Err(refusal.hint("run ironctl on the same side of the container as the host"))
        }
    }
}

fn is_alive(process: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut asked, PollTimeout::ZERO), Ok(0))
}

fn user_namespace(who: &str) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{who}/ns/user"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn ask(uri: &str, headers: &[(&str, &str)]) -> Result<(), DenialCode> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check_names(&request.body(Body::empty()).expect("a request"), 8787).map_err(|refusal| refusal.code)
    }

    #[test]
    fn ended_peer_is_not_taken_for_another_namespace() {
        let ours = Path::new("user:[1]");
        let link = |name: &str| Some(Ok(PathBuf::from(name)));
        let missing = || Some(Err(io::Error::from(io::ErrorKind::NotFound)));
        let denied = || Some(Err(io::Error::from(io::ErrorKind::PermissionDenied)));
        for (theirs, alive, expected) in [
            (link("user:[1]"), Some(true), None),
            (link("user:[1]"), None, None),
            (link("user:[2]"), Some(true), Some(DenialCode::PeerNamespace)),
            (link("user:[1]"), Some(false), Some(DenialCode::PeerGone)),
            (missing(), Some(false), Some(DenialCode::PeerGone)),
            (missing(), None, Some(DenialCode::PeerGone)),
            (missing(), Some(true), Some(DenialCode::PeerNamespace)),
            (denied(), Some(true), Some(DenialCode::PeerNamespace)),
            (None, None, Some(DenialCode::PeerNamespace)),
        ] {
            let shown = format!("{theirs:?} {alive:?}");
            assert_eq!(judge(Some(ours), theirs, alive).err().map(|refusal| refusal.code), expected, "{shown}");
        }
        assert!(judge(None, link("user:[1]"), Some(true)).is_err());
    }

    #[test]
    fn only_loopback_names_with_the_port_and_no_foreign_origin_pass() {
        for host in ["127.0.0.1:8787", "localhost:8787", "[::1]:8787"] {
            assert_eq!(ask("/v1/status", &[("host", host)]), Ok(()));
            assert_eq!(ask("/v1/status", &[("host", host), ("origin", &format!("http://{host}"))]), Ok(()));
        }
        for host in [
            "evil.example:8787",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:8787",
            "127.0.0.1:8787.evil.example",
            "LOCALHOST:8787",
            "127.1:8787",
            "0.0.0.0:8787",
            "user@127.0.0.1:8787",
            "",
        ] {
            assert_eq!(ask("/v1/status", &[("host", host)]), Err(DenialCode::HostForeign), "{host}");
        }
        assert_eq!(ask("/v1/status", &[]), Err(DenialCode::HostForeign));
        let twice = [("host", "127.0.0.1:8787"), ("host", "127.0.0.1:8787")];
        assert_eq!(ask("/v1/status", &twice), Err(DenialCode::HostForeign));
        let good = ("host", "127.0.0.1:8787");
        assert_eq!(ask("http://evil.example:8787/v1/status", &[good]), Err(DenialCode::HostForeign));
        for origin in ["http://evil.example", "null", "https://127.0.0.1:8787", "http://127.0.0.1:80", "file://", ""] {
            assert_eq!(ask("/v1/status", &[good, ("origin", origin)]), Err(DenialCode::OriginForeign), "{origin}");
        }
        let own = ("origin", "http://127.0.0.1:8787");
        assert_eq!(ask("/v1/status", &[good, own, ("origin", "http://evil.example")]), Err(DenialCode::OriginForeign));
    }
}
