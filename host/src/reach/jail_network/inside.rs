//! Requests of a command over TLS: it asks the gateway for a connection to a granted host, and the gateway answers in the place of the host.
//!
//! Each request is judged and sent like a plain one, and nothing else gets through. A command sees the true name of each host this way, so
//! no file that it writes has another. See [`super::authority`] and [`super::gateway`].

use super::authority::{Authority, NoKey};
use super::gateway::{Asked, respond};
use super::traffic::{Shared, plain};
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Chain, Join, ReadHalf, WriteHalf, join, split};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Longest time of a handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// The connection behind a `CONNECT`, of which the first byte was read.
type Connection = Join<Chain<Cursor<[u8; 1]>, ReadHalf<TokioIo<Upgraded>>>, WriteHalf<TokioIo<Upgraded>>>;

/// Answers a `CONNECT` to the granted host at this place of the list, and serves the requests behind the answer.
pub(super) fn open(shared: &Arc<Shared>, at: usize, authority: &Authority, mut request: Request) -> Response {
    match authority.server(shared.hosts[at].grant.host().as_str()) {
        Ok(config) => {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(serve(Arc::clone(shared), at, config, upgrade));
            Response::new(Body::empty())
        }
        Err(NoKey) => plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{NoKey}\n")),
    }
}

/// Serves requests, until the connection or its command ends.
async fn serve(shared: Arc<Shared>, at: usize, config: Arc<ServerConfig>, upgrade: OnUpgrade) {
    let mut over = shared.is_over.subscribe();
    let served = async {
        match timeout(HANDSHAKE_TIME_MAX, first_byte(upgrade)).await {
            Ok(Some((TLS_HANDSHAKE, connection))) => {
                if let Some(stream) = accepted(&shared, at, config, connection).await {
                    answer(&shared, at, stream).await;
                }
            }
            // Some programs ask for a connection for plain requests too.
            Ok(Some((_, connection))) => answer(&shared, at, connection).await,
            Ok(None) | Err(_) => {}
        }
    };
    tokio::select! {
        biased;
        _ = over.wait_for(|over| *over) => {}
        () = served => {}
    }
}

async fn first_byte(upgrade: OnUpgrade) -> Option<(u8, Connection)> {
    let mut upgraded = TokioIo::new(upgrade.await.ok()?);
    let first = upgraded.read_u8().await.ok()?;
    let (read, write) = split(upgraded);
    Some((first, join(Cursor::new([first]).chain(read), write)))
}

async fn accepted(
    shared: &Shared,
    at: usize,
    config: Arc<ServerConfig>,
    connection: Connection,
) -> Option<TlsStream<Connection>> {
    match timeout(HANDSHAKE_TIME_MAX, TlsAcceptor::from(config).accept(connection)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            if matches!(error.get_ref().and_then(|inner| inner.downcast_ref()), Some(rustls::Error::AlertReceived(_))) {
                shared.record_distrust(at);
            }
            None
        }
        Err(_) => None,
    }
}

/// Answers the requests of a connection to this host.
async fn answer(shared: &Arc<Shared>, at: usize, stream: impl AsyncRead + AsyncWrite + Unpin + Send) {
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let answered = respond(Arc::clone(shared), request.map(Body::new), Asked::Inside(at));
        async { Ok::<_, Infallible>(answered.await) }
    });
    // The command sees each error of its connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
