//! Bounds on the connections to a socket: the same rules for the unix socket and for the ports.
//!
//! A connection without a valid token is cut off after 10 seconds, or at once when a new one needs its place. After those, idle connections
//! give way, the longest idle first. One person has a share of the connections. One extra connection may be reserved for questions about
//! the host itself, and only those are answered on it. See `api::port`, `api::auth`.

use crate::registry::TokenId;
use axum::body::HttpBody;
use axum::serve::Listener;
use http_body::Frame;
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_store::refusal::Refusal;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// A connection without a valid token within this time is cut off.
const AUTHENTICATION_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time for the answer to a signed request.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// One person has at most one part in this many of the connections.
const SHARE_DIVISOR: usize = 4;

/// The bounds of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at once.
    pub connections_max: usize,
    /// One more connection is reserved for questions about the host itself.
    pub reserves_one: bool,
}

/// A listener with bounds on its connections.
pub struct BoundedListener<L> {
    listener: L,
    port: u16,
    connections: Connections,
}

impl<L> BoundedListener<L> {
    /// Returns the listener with bounds; `port` is 0 if there is none.
    pub fn new(listener: L, port: u16, bounds: Bounds) -> Self {
        Self { listener, port, connections: Connections::new(bounds) }
    }

    /// Returns the open connections.
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }
}

impl<L: Listener> Listener for BoundedListener<L> {
    type Io = Connection<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // Axum handles errors of one connection and a lack of descriptors here.
        let (stream, from) = self.listener.accept().await;
        let connection = self.connections.add().await;
        let end = Box::pin(end(connection.state.subscribe()));
        let handle = ConnectionHandle { port: self.port, connection, connections: self.connections.clone() };
        (Connection { stream, handle, end, is_over: false }, from)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ConnectionState {
    /// It showed no valid token yet, or its token ended.
    Unauthenticated,
    /// Its last request carried this valid token of this person.
    Authenticated(TokenId, PersonId),
    /// A signed request on it is being answered.
    Answering,
    /// A newer connection took its place.
    CutOff,
}

/// Ends when the connection must close.
async fn end(mut state: watch::Receiver<ConnectionState>) {
    loop {
        let current = state.borrow_and_update().clone();
        let changed = state.changed();
        let continues = match current {
            ConnectionState::Unauthenticated => matches!(timeout(AUTHENTICATION_TIME_MAX, changed).await, Ok(Ok(()))),
            ConnectionState::Answering => matches!(timeout(ANSWER_TIME_MAX, changed).await, Ok(Ok(()))),
            ConnectionState::Authenticated(..) => changed.await.is_ok(),
            ConnectionState::CutOff => false,
        };
        if !continues {
            return;
        }
    }
}

#[derive(Debug)]
struct OpenConnection {
    state: watch::Sender<ConnectionState>,
    /// Requests in flight; 0 if it is idle.
    in_flight: AtomicU32,
    /// Grows with each connection that becomes idle, so the smallest is the longest idle.
    idle_since: AtomicU64,
    /// True if this is the reserved connection.
    is_reserved: AtomicBool,
}

impl OpenConnection {
    /// Changes the state if `from` accepts the present one. Returns true if it did.
    fn change(&self, from: impl FnOnce(&ConnectionState) -> bool, to: ConnectionState) -> bool {
        self.state.send_if_modified(|state| {
            let changes = from(state);
            if changes {
                *state = to;
            }
            changes
        })
    }

    fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::SeqCst) == 0
    }

    fn is_of(&self, person: PersonId) -> bool {
        matches!(&*self.state.borrow(), ConnectionState::Authenticated(_, of) if *of == person)
    }
}

type SharedConnection = Arc<OpenConnection>;

/// The open connections, oldest first.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    bounds: Bounds,
    open: Mutex<Vec<SharedConnection>>,
    /// Counts up with each connection that becomes idle.
    idle: AtomicU64,
    freed: Notify,
}

impl Connections {
    fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Inner { bounds, open: Mutex::default(), idle: AtomicU64::new(0), freed: Notify::new() }))
    }

    /// Waits for a place for a new connection.
    async fn add(&self) -> SharedConnection {
        loop {
            if let Some(connection) = self.try_add() {
                return connection;
            }
            self.0.freed.notified().await;
        }
    }

    /// Returns a free place, else that of the oldest unauthenticated one, else that of the longest idle one, else the reserved one.
    fn try_add(&self) -> Option<SharedConnection> {
        let mut open = self.open();
        let is_reserved = !self.make_room(&mut open);
        if is_reserved {
            if !self.0.bounds.reserves_one {
                return None;
            }
            if let Some(at) = open.iter().position(|connection| connection.is_reserved.load(Ordering::SeqCst)) {
                let before = open.remove(at);
                before.change(|_| true, ConnectionState::CutOff);
            }
        }
        let connection = Arc::new(OpenConnection {
            state: watch::Sender::new(ConnectionState::Unauthenticated),
            in_flight: AtomicU32::new(0),
            idle_since: AtomicU64::new(self.0.idle.fetch_add(1, Ordering::SeqCst)),
            is_reserved: AtomicBool::new(is_reserved),
        });
        open.push(Arc::clone(&connection));
        Some(connection)
    }

    /// Returns true if there is a place besides the reserved one. Cuts off an unauthenticated or idle connection for it if needed.
    fn make_room(&self, open: &mut Vec<SharedConnection>) -> bool {
        let is_usual = |connection: &&SharedConnection| !connection.is_reserved.load(Ordering::SeqCst);
        if open.iter().filter(is_usual).count() < self.0.bounds.connections_max {
            return true;
        }
        let is_unauthenticated = |state: &ConnectionState| *state == ConnectionState::Unauthenticated;
        let gone = open
            .iter()
            .filter(is_usual)
            .find(|connection| connection.change(is_unauthenticated, ConnectionState::CutOff))
            .cloned();
        let Some(gone) = gone.or_else(|| cut_idle(open, |_| true)) else { return false };
        open.retain(|connection| !Arc::ptr_eq(connection, &gone));
        true
    }

    /// Withdraws the admission of each connection whose token is not valid.
    pub fn withdraw_unless(&self, is_valid: impl Fn(&TokenId) -> bool) {
        let ended =
            |state: &ConnectionState| matches!(state, ConnectionState::Authenticated(token, _) if !is_valid(token));
        for connection in self.open().iter() {
            connection.change(ended, ConnectionState::Unauthenticated);
        }
        self.0.freed.notify_one();
    }

    fn forget(&self, closed: &SharedConnection) {
        self.open().retain(|connection| !Arc::ptr_eq(connection, closed));
        self.0.freed.notify_one();
    }

    fn open(&self) -> MutexGuard<'_, Vec<SharedConnection>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts off the longest idle of the admitted connections that `of` accepts.
fn cut_idle(open: &[SharedConnection], of: impl Fn(&OpenConnection) -> bool) -> Option<SharedConnection> {
    let is_authenticated = |state: &ConnectionState| matches!(state, ConnectionState::Authenticated(..));
    let idle = open
        .iter()
        .filter(|connection| connection.is_idle() && is_authenticated(&connection.state.borrow()) && of(connection));
    let longest = idle.min_by_key(|connection| connection.idle_since.load(Ordering::SeqCst))?;
    longest.change(is_authenticated, ConnectionState::CutOff).then(|| Arc::clone(longest))
}

/// A connection as its requests see it.
#[derive(Clone)]
pub struct ConnectionHandle {
    port: u16,
    connection: SharedConnection,
    connections: Connections,
}

impl std::fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionHandle")
            .field("port", &self.port)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl ConnectionHandle {
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Records that the connection showed this token of this person, and keeps its place while it has requests in flight.
    ///
    /// # Errors
    /// Refuses a person whose share of connections is used up by busy ones, and any request on the reserved connection while there is no
    /// other place.
    pub fn admit(&self, token: &TokenId, person: PersonId) -> Result<(), Refusal> {
        if matches!(&*self.connection.state.borrow(), ConnectionState::Authenticated(admitted, _) if admitted == token)
        {
            return Ok(());
        }
        let mut open = self.connections.open();
        if self.connection.is_reserved.load(Ordering::SeqCst) {
            if !self.connections.make_room(&mut open) {
                let refusal = Refusal::new(DenialCode::PortFull, "every connection to this port is in use");
                return Err(refusal.hint("try again in a moment, or use the unix socket"));
            }
            self.connection.is_reserved.store(false, Ordering::SeqCst);
        }
        let share = (self.connections.0.bounds.connections_max / SHARE_DIVISOR).max(1);
        let others = open
            .iter()
            .filter(|connection| connection.is_of(person) && !Arc::ptr_eq(connection, &self.connection))
            .count();
        if others >= share {
            let Some(gone) = cut_idle(&open, |connection| connection.is_of(person)) else {
                let bound =
                    Bound::new("open connections of one person", share, others, "wait until one of them is answered");
                return Err(Refusal::over(DenialCode::TooManyConnections, bound));
            };
            open.retain(|connection| !Arc::ptr_eq(connection, &gone));
        }
        let may = |state: &ConnectionState| {
            matches!(state, ConnectionState::Unauthenticated | ConnectionState::Authenticated(..))
        };
        self.connection.change(may, ConnectionState::Authenticated(token.clone(), person));
        Ok(())
    }

    /// Keeps the place until the signed request is answered; the answer is the last on this connection. Returns false if the place was
    /// already taken.
    pub fn begin_answer(&self) -> bool {
        self.connection.change(|state| *state == ConnectionState::Unauthenticated, ConnectionState::Answering)
    }

    /// Records that the last request carried no valid token.
    pub fn withdraw(&self) {
        self.connection
            .change(|state| matches!(state, ConnectionState::Authenticated(..)), ConnectionState::Unauthenticated);
    }

    /// Counts a request in flight until its answer is sent.
    pub fn begin_request(&self) -> RequestInFlight {
        self.connection.in_flight.fetch_add(1, Ordering::SeqCst);
        RequestInFlight(self.clone())
    }
}

/// A request in flight; it ends with the last byte of the answer.
pub struct RequestInFlight(ConnectionHandle);

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        let ConnectionHandle { connection, connections, .. } = &self.0;
        connection.idle_since.store(connections.0.idle.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        connection.in_flight.fetch_sub(1, Ordering::SeqCst);
        // A new connection may wait for its place.
        connections.0.freed.notify_one();
    }
}

/// The body of an answer; it keeps its request in flight until it is sent.
pub struct TrackedBody {
    body: axum::body::Body,
    _request: RequestInFlight,
}

impl TrackedBody {
    /// Returns a body that keeps this request in flight.
    pub fn hold(body: axum::body::Body, request: RequestInFlight) -> axum::body::Body {
        axum::body::Body::new(Self { body, _request: request })
    }
}

impl HttpBody for TrackedBody {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

pub struct Connection<S> {
    stream: S,
    handle: ConnectionHandle,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl<S> Connection<S> {
    /// Returns the handle that records tokens and requests.
    pub fn handle(&self) -> ConnectionHandle {
        self.handle.clone()
    }

    /// Returns the stream below.
    pub const fn stream(&self) -> &S {
        &self.stream
    }
}

impl<S: Unpin> Connection<S> {
    /// Returns the stream, or an error after the end of the connection. Called at every step: a client that only sends, and never reads the
    /// answers, would otherwise keep the connection open forever.
    fn live_stream(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut S>> {
        self.is_over = self.is_over || self.end.as_mut().poll(context).is_ready();
        if self.is_over { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Pin::new(&mut self.stream)) }
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        self.handle.connections.forget(&self.handle.connection);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().live_stream(context)?.poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().live_stream(context)?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().live_stream(context)?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().live_stream(context)?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
