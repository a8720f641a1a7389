//! The other end of a connection: what the kernel says of a process on the unix socket, and what a request to the port must show.
//!
//! Never trusts what a request says of where it comes from beyond refusing it: a foreign `Host` or `Origin` is a browser that was
//! sent here. Next: `api::port`, `api::auth`.

use crate::api::door::{Admission, Asking};
use crate::api::port::{Port, Socket};
use crate::refusal::Refusal;
use crate::registry::Token;
use axum::extract::Request;
use axum::extract::connect_info::Connected;
use axum::http::header::{HOST, ORIGIN};
use axum::serve::IncomingStream;
use ironclaw_contract::operator::DenialCode;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

/// Where a request came from.
#[derive(Debug, Clone)]
pub enum Peer {
    /// A process on the unix socket; looked at when it was let in, once a connection.
    Unix(Result<(), Refusal>, Admission),
    /// Somebody on this machine, over the loopback port.
    Loopback(Admission),
}

impl Connected<IncomingStream<'_, Socket>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Socket>) -> Self {
        Self::Unix(look(stream.io().stream()), stream.io().admission())
    }
}

impl Connected<IncomingStream<'_, Port>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Port>) -> Self {
        Self::Loopback(stream.io().admission())
    }
}

impl Peer {
    /// A word for the ledger.
    pub const fn via(&self) -> &'static str {
        match self {
            Self::Unix(..) => "unix",
            Self::Loopback(_) => "loopback",
        }
    }

    /// Whether processes of other users can reach it.
    pub const fn is_open_to_others(&self) -> bool {
        match self {
            Self::Unix(..) => false,
            Self::Loopback(_) => true,
        }
    }

    const fn admission(&self) -> &Admission {
        match self {
            Self::Unix(_, admission) | Self::Loopback(admission) => admission,
        }
    }

    /// Notes that a request of it carried this valid token.
    ///
    /// # Errors
    /// Refuses more connections of one person than one may have.
    pub fn admit(&self, token: &Token) -> Result<(), Refusal> {
        self.admission().admit(&token.id, token.person.id)
    }

    /// Notes that something is asked, until the answer is sent.
    pub fn ask(&self) -> Asking {
        self.admission().ask()
    }

    /// Notes that a request of it carried none.
    pub fn withdraw(&self) {
        self.admission().withdraw();
    }

    /// What can be said before the token is looked at.
    ///
    /// # Errors
    /// Refuses a process of another user or user namespace, and a request with a foreign `Host` or `Origin`.
    pub fn check(&self, request: &Request) -> Result<(), Refusal> {
        match self {
            Self::Unix(looked, _) => looked.clone(),
            Self::Loopback(admission) => check_names(request, admission.port()),
        }
    }
}

/// A page of the web whose name was made to point here carries its own name in both headers, and cannot change them.
fn check_names(request: &Request, port: u16) -> Result<(), Refusal> {
    let ours = |name: &str| ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| name == format!("{host}:{port}"));
    let one = |header| {
        let mut found = request.headers().get_all(header).iter();
        (found.next().map(|value| value.to_str().unwrap_or("")), found.next().is_some())
    };
    // A request may name the host in its first line too, and then that one counts (RFC 9112, 3.2.2).
    let in_line = request.uri().authority().is_none_or(|authority| ours(authority.as_str()));
    if !in_line || !matches!(one(HOST), (Some(host), false) if ours(host)) {
        let refusal = Refusal::new(DenialCode::HostForeign, "the request is for another host's name");
        return Err(refusal.hint(format!("ask http://127.0.0.1:{port}, by that name or as localhost or [::1]")));
    }
    match one(ORIGIN) {
        (None, _) => Ok(()),
        (Some(origin), false) if origin.strip_prefix("http://").is_some_and(ours) => Ok(()),
        (Some(_), _) => {
            let refusal = Refusal::new(DenialCode::OriginForeign, "a page of another origin is not served");
            Err(refusal.hint("this API is for programs; no web page may speak to it"))
        }
    }
}

fn look(stream: &UnixStream) -> Result<(), Refusal> {
    let me = nix::unistd::geteuid().as_raw();
    // Held while we look: as long as the process is alive, its number is nobody else's. Linux before 6.5 has none to give.
    let held = getsockopt(stream, sockopt::PeerPidfd).ok();
    let peer = stream.peer_cred().ok();
    let Some(uid) = peer.map(|peer| peer.uid()).filter(|uid| *uid == me || *uid == 0) else {
        let refusal = Refusal::new(DenialCode::PeerUser, "this socket serves its own user only");
        return Err(refusal.hint("run ironctl as the user that the host runs as, or use the loopback port"));
    };
    // Root's processes cannot be looked at by another user's; root may do as it likes anyhow.
    if uid != me {
        return Ok(());
    }
    let theirs = peer.and_then(|peer| peer.pid()).map(|pid| user_namespace(&pid.to_string()));
    judge(user_namespace("self").ok().as_deref(), theirs, held.map(|process| is_alive(&process)))
}

/// Judges a process by its user namespace and ours; `alive` is what its descriptor says, if the kernel gives one.
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
    fn peer_that_ended_is_not_one_of_another_namespace() {
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
