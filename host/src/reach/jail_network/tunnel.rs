//! The tunnels of one jail: connections of its own over TLS, which the gateway passes on and cannot read.
//!
//! Never carries a byte before the connection names the granted host in clear, never more than the grant admits, and never a secret of
//! the host. See [`super::client_hello`] and [`super::gateway`].

use super::address::name;
use super::client_hello::{HELLO_BYTES_MAX, NoName, server_name};
use super::traffic::{Shared, Tunnel, plain};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use ironclaw_judge::egress::Grant;
use ironclaw_net::fetch::NotFetched;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest time to the end of the ClientHello.
const HELLO_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 32 * 1024;
/// The alert `access_denied`, for a client whose connection is refused (RFC 8446, 6).
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// The end of a tunnel before its connections end.
enum Stopped {
    Refused(DenialCode, String),
    /// Its first bytes name no server.
    Unnamed(NoName),
    /// One of the two connections.
    Broken,
}

impl From<io::Error> for Stopped {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Opens a connection to the granted host of a `CONNECT`, and a tunnel to it behind the answer.
pub(super) async fn open(shared: &Arc<Shared>, mut request: Request, what: &str) -> Result<Response, Refusal> {
    let tunnel = granted(request.uri(), &shared.tunnels)?;
    {
        let mut traffic = shared.traffic();
        traffic.tunnels += 1;
        traffic.hosts.insert(name(&tunnel.grant));
    }
    let left = shared.left();
    let fetcher = shared.fetchers.for_grant(Some(&tunnel.grant), shared.loopback);
    match fetcher.connect(tunnel.grant.host().as_str(), tunnel.grant.port(), left).await {
        Ok(there) => {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(carry(Arc::clone(shared), Arc::clone(tunnel), upgrade, there, what.to_owned()));
            Ok(Response::new(Body::empty()))
        }
        Err(NotFetched::Refused(refused)) => Err(Refusal::new(DenialCode::EgressNewHost, refused.to_string())),
        Err(NotFetched::Failed(failed)) => {
            Ok(plain(StatusCode::BAD_GATEWAY, &format!("the host did not answer: {:?}\n", failed.failure)))
        }
    }
}

/// Returns the tunnel to the host and the port of a `CONNECT`.
pub(super) fn granted<'t>(uri: &Uri, tunnels: &'t [Arc<Tunnel>]) -> Result<&'t Arc<Tunnel>, Refusal> {
    // A user before the host is no part of a grant, and a reader could take it for the host.
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let is_of = |grant: &Grant| {
        uri.host().is_some_and(|host| host.eq_ignore_ascii_case(grant.host().as_str()))
            && uri.port_u16() == Some(grant.port())
    };
    tunnels.iter().find(|tunnel| !has_user && is_of(&tunnel.grant)).ok_or_else(|| {
        let all: Vec<_> = tunnels.iter().map(|tunnel| name(&tunnel.grant)).collect();
        let words = match all.as_slice() {
            [] => "no host is granted for tunnels: write http://127.0.0.1:8129/HOST/PATH".to_owned(),
            all => format!("the host and port are not granted for tunnels ({})", all.join(", ")),
        };
        let hint = "an operator can grant it: ironctl egress grant AGENT HOST --commands tunnel";
        Refusal::new(DenialCode::EgressNewHost, words).hint(hint)
    })
}

/// Passes the bytes of a tunnel on, until it ends, is refused, or its command ends.
async fn carry(shared: Arc<Shared>, tunnel: Arc<Tunnel>, upgrade: OnUpgrade, there: TcpStream, what: String) {
    let mut over = shared.is_over.subscribe();
    let carried = async {
        let Ok(upgraded) = upgrade.await else { return };
        let mut here = TokioIo::new(upgraded);
        let refused = match pass(&shared, &tunnel, &mut here, there).await {
            Err(Stopped::Refused(code, why)) => Some((code, why, "")),
            Err(Stopped::Unnamed(why)) => Some((DenialCode::EgressTunnelSni, why.to_string(), why.hint())),
            Ok(()) | Err(Stopped::Broken) => None,
        };
        if let Some((code, why, hint)) = refused {
            // Before the command can see it, and end.
            shared.record_refusal(format!("{what} ({why})"), code, hint);
            let _ = here.write_all(&ACCESS_DENIED).await;
            let _ = here.shutdown().await;
        }
    };
    tokio::select! {
        biased;
        _ = over.wait_for(|over| *over) => {}
        () = carried => {}
    }
}

async fn pass(
    shared: &Shared,
    tunnel: &Tunnel,
    here: &mut TokioIo<Upgraded>,
    mut there: TcpStream,
) -> Result<(), Stopped> {
    let refused = |why: String| Stopped::Refused(DenialCode::EgressTunnelSni, why);
    let Ok(read) = timeout(HELLO_TIME_MAX, first_bytes(here)).await else {
        return Err(refused("no ClientHello in time".to_owned()));
    };
    let Some((first, named)) = read? else { return Ok(()) };
    if named != tunnel.grant.host().as_str() {
        return Err(refused(format!("TLS for {named}")));
    }
    let (mut from_here, mut to_here) = tokio::io::split(here);
    let (mut from_there, mut to_there) = there.split();
    let up = async {
        send(shared, tunnel, &first, &mut to_there).await?;
        let mut chunk = vec![0; CHUNK_BYTES];
        while let length @ 1.. = from_here.read(&mut chunk).await? {
            send(shared, tunnel, &chunk[..length], &mut to_there).await?;
        }
        Ok(to_there.shutdown().await?)
    };
    let down = async {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let length @ 1.. = from_there.read(&mut chunk).await? {
            shared.traffic().received_bytes += length as u64;
            to_here.write_all(&chunk[..length]).await?;
            to_here.flush().await?;
        }
        Ok(to_here.shutdown().await?)
    };
    tokio::try_join!(up, down).map(|((), ())| ())
}

/// Reads until the server name is known. `None` if the connection ends before.
async fn first_bytes(here: &mut (impl AsyncRead + Unpin)) -> Result<Option<(Vec<u8>, String)>, Stopped> {
    let mut first = Vec::with_capacity(HELLO_BYTES_MAX);
    loop {
        let room = HELLO_BYTES_MAX - first.len();
        if here.take(room as u64).read_buf(&mut first).await? == 0 {
            return Ok(None);
        }
        if let Some(named) = server_name(&first).map_err(Stopped::Unnamed)? {
            return Ok(Some((first, named)));
        }
    }
}

async fn send(
    shared: &Shared,
    tunnel: &Tunnel,
    bytes: &[u8],
    there: &mut (impl AsyncWrite + Unpin),
) -> Result<(), Stopped> {
    if !tunnel.admits(bytes.len()) {
        let words = format!("more than {} bytes to the host", tunnel.grant.upload_bytes_max());
        return Err(Stopped::Refused(DenialCode::EgressUpload, words));
    }
    shared.traffic().sent_bytes += bytes.len() as u64;
    Ok(there.write_all(bytes).await?)
}
