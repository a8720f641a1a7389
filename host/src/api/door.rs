//! Bounds on the connections to a socket: the same rules for the unix socket and for the ports.
//!
//! A connection without a valid token is cut off after 10 seconds, or at once when a new one needs its place. After those, idle connections
//! give way, the longest idle first. One person has a share of the connections. One extra connection may be reserved for questions about
//! the host itself, and only those are answered on it. See `api::port`, `api::auth`.

use crate::refusal::Refusal;
use crate::registry::TokenId;
use axum::body::HttpBody;
use axum::serve::Listener;
use http_body::Frame;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::DenialCode;
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
const ADMITTED_WITHIN: Duration = Duration::from_secs(10);

/// Longest time for the answer to a signed request.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// One person has at most one part in this many of the connections.
const SHARE_OF_ONE: usize = 4;

/// The bounds of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at once.
    pub connections_max: usize,
    /// One more connection is reserved for questions about the host itself.
    pub keeps_one: bool,
}

/// A listener with bounds on its connections.
pub struct Door<L> {
    listener: L,
    port: u16,
    places: Places,
}

impl<L> Door<L> {
    /// Returns the listener with bounds; `port` is 0 if there is none.
    pub fn new(listener: L, port: u16, bounds: Bounds) -> Self {
        Self { listener, port, places: Places::new(bounds) }
    }

    /// Returns the open connections.
    pub fn places(&self) -> Places {
        self.places.clone()
    }
}

impl<L: Listener> Listener for Door<L> {
    type Io = Connection<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // Axum handles errors of one connection and a lack of descriptors here.
        let (stream, from) = self.listener.accept().await;
        let seat = self.places.take().await;
        let end = Box::pin(end(seat.standing.subscribe()));
        let admission = Admission { port: self.port, seat, places: self.places.clone() };
        (Connection { stream, admission, end, over: false }, from)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// The state of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// It showed no valid token yet, or its token ended.
    Stranger,
    /// Its last request carried this valid token of this person.
    Admitted(TokenId, PersonId),
    /// A signed request on it is being answered.
    Answered,
    /// A newer connection took its place.
    CutOff,
}

/// Ends when the connection must close.
async fn end(mut standing: watch::Receiver<Standing>) {
    loop {
        let stands = standing.borrow_and_update().clone();
        let changed = standing.changed();
        let goes_on = match stands {
            Standing::Stranger => matches!(timeout(ADMITTED_WITHIN, changed).await, Ok(Ok(()))),
            Standing::Answered => matches!(timeout(ANSWERED_WITHIN, changed).await, Ok(Ok(()))),
            Standing::Admitted(..) => changed.await.is_ok(),
            Standing::CutOff => false,
        };
        if !goes_on {
            return;
        }
    }
}

/// One open connection.
#[derive(Debug)]
struct Seat {
    standing: watch::Sender<Standing>,
    /// Requests in flight; 0 if it is idle.
    asked: AtomicU32,
    /// Grows with each connection that becomes idle, so the smallest is the longest idle.
    idle_since: AtomicU64,
    /// True if this is the reserved connection.
    is_kept: AtomicBool,
}

impl Seat {
    /// Changes the state if `from` accepts the present one. Returns true if it did.
    fn change(&self, from: impl FnOnce(&Standing) -> bool, to: Standing) -> bool {
        self.standing.send_if_modified(|standing| {
            let changes = from(standing);
            if changes {
                *standing = to;
            }
            changes
        })
    }

    fn is_idle(&self) -> bool {
        self.asked.load(Ordering::SeqCst) == 0
    }

    fn is_of(&self, person: PersonId) -> bool {
        matches!(&*self.standing.borrow(), Standing::Admitted(_, of) if *of == person)
    }
}

type Held = Arc<Seat>;

/// The open connections, oldest first.
#[derive(Clone)]
pub struct Places(Arc<Inner>);

struct Inner {
    bounds: Bounds,
    held: Mutex<Vec<Held>>,
    /// Counts up with each connection that becomes idle.
    idle: AtomicU64,
    left: Notify,
}

impl Places {
    fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Inner { bounds, held: Mutex::default(), idle: AtomicU64::new(0), left: Notify::new() }))
    }

    /// Waits for a place for a new connection.
    async fn take(&self) -> Held {
        loop {
            if let Some(seat) = self.try_take() {
                return seat;
            }
            self.0.left.notified().await;
        }
    }

    /// Returns a free place, else that of the oldest stranger, else that of the longest idle one, else the reserved one.
    fn try_take(&self) -> Option<Held> {
        let mut held = self.held();
        let is_kept = !self.has_room(&mut held);
        if is_kept {
            if !self.0.bounds.keeps_one {
                return None;
            }
            if let Some(at) = held.iter().position(|seat| seat.is_kept.load(Ordering::SeqCst)) {
                let before = held.remove(at);
                before.change(|_| true, Standing::CutOff);
            }
        }
        let seat = Arc::new(Seat {
            standing: watch::Sender::new(Standing::Stranger),
            asked: AtomicU32::new(0),
            idle_since: AtomicU64::new(self.0.idle.fetch_add(1, Ordering::SeqCst)),
            is_kept: AtomicBool::new(is_kept),
        });
        held.push(Arc::clone(&seat));
        Some(seat)
    }

    /// Returns true if there is a place besides the reserved one. Cuts off a stranger or an idle connection for it if needed.
    fn has_room(&self, held: &mut Vec<Held>) -> bool {
        let is_usual = |seat: &&Held| !seat.is_kept.load(Ordering::SeqCst);
        if held.iter().filter(is_usual).count() < self.0.bounds.connections_max {
            return true;
        }
        let is_stranger = |standing: &Standing| *standing == Standing::Stranger;
        let gone = held.iter().filter(is_usual).find(|seat| seat.change(is_stranger, Standing::CutOff)).cloned();
        let Some(gone) = gone.or_else(|| cut_idle(held, |_| true)) else { return false };
        held.retain(|seat| !Arc::ptr_eq(seat, &gone));
        true
    }

    /// Withdraws the admission of each connection whose token is not valid.
    pub fn withdraw_unless(&self, stands: impl Fn(&TokenId) -> bool) {
        let ended = |standing: &Standing| matches!(standing, Standing::Admitted(token, _) if !stands(token));
        for seat in self.held().iter() {
            seat.change(ended, Standing::Stranger);
        }
        self.0.left.notify_one();
    }

    fn leave(&self, leaving: &Held) {
        self.held().retain(|seat| !Arc::ptr_eq(seat, leaving));
        self.0.left.notify_one();
    }

    fn held(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts off the longest idle of the admitted connections that `of` accepts.
fn cut_idle(held: &[Held], of: impl Fn(&Seat) -> bool) -> Option<Held> {
    let is_admitted = |standing: &Standing| matches!(standing, Standing::Admitted(..));
    let idle = held.iter().filter(|seat| seat.is_idle() && is_admitted(&seat.standing.borrow()) && of(seat));
    let longest = idle.min_by_key(|seat| seat.idle_since.load(Ordering::SeqCst))?;
    longest.change(is_admitted, Standing::CutOff).then(|| Arc::clone(longest))
}

/// A connection as its requests see it.
#[derive(Clone)]
pub struct Admission {
    port: u16,
    seat: Held,
    places: Places,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("port", &self.port).field("seat", &self.seat).finish_non_exhaustive()
    }
}

impl Admission {
    /// Returns the port of the connection.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Records that the connection showed this token of this person, and keeps its place while it has requests in flight.
    ///
    /// # Errors
    /// Refuses a person whose share of connections is used up by busy ones, and any request on the reserved connection while there is no
    /// other place.
    pub fn admit(&self, token: &TokenId, person: PersonId) -> Result<(), Refusal> {
        if matches!(&*self.seat.standing.borrow(), Standing::Admitted(admitted, _) if admitted == token) {
            return Ok(());
        }
        let mut held = self.places.held();
        if self.seat.is_kept.load(Ordering::SeqCst) {
            if !self.places.has_room(&mut held) {
                let refusal = Refusal::new(DenialCode::PortFull, "every connection to this port is in use");
                return Err(refusal.hint("try again in a moment, or use the unix socket"));
            }
            self.seat.is_kept.store(false, Ordering::SeqCst);
        }
        let share = (self.places.0.bounds.connections_max / SHARE_OF_ONE).max(1);
        let others = held.iter().filter(|seat| seat.is_of(person) && !Arc::ptr_eq(seat, &self.seat)).count();
        if others >= share {
            let Some(gone) = cut_idle(&held, |seat| seat.is_of(person)) else {
                let words = format!("you have {others} open connections, the most for one person");
                let refusal = Refusal::new(DenialCode::TooManyConnections, words);
                return Err(refusal.hint("wait until one of them is answered"));
            };
            held.retain(|seat| !Arc::ptr_eq(seat, &gone));
        }
        let may = |standing: &Standing| matches!(standing, Standing::Stranger | Standing::Admitted(..));
        self.seat.change(may, Standing::Admitted(token.clone(), person));
        Ok(())
    }

    /// Keeps the place until the signed request is answered; the answer is the last on this connection. Returns false if the place was
    /// already taken.
    pub fn answer(&self) -> bool {
        self.seat.change(|standing| *standing == Standing::Stranger, Standing::Answered)
    }

    /// Records that the last request carried no valid token.
    pub fn withdraw(&self) {
        self.seat.change(|standing| matches!(standing, Standing::Admitted(..)), Standing::Stranger);
    }

    /// Counts a request in flight until its answer is sent.
    pub fn ask(&self) -> Asking {
        self.seat.asked.fetch_add(1, Ordering::SeqCst);
        Asking(self.clone())
    }
}

/// A request in flight; it ends with the last byte of the answer.
pub struct Asking(Admission);

impl Drop for Asking {
    fn drop(&mut self) {
        let Admission { seat, places, .. } = &self.0;
        seat.idle_since.store(places.0.idle.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        seat.asked.fetch_sub(1, Ordering::SeqCst);
        // A new connection may wait for its place.
        places.0.left.notify_one();
    }
}

/// The body of an answer; it keeps its request in flight until it is sent.
pub struct Answering {
    body: axum::body::Body,
    _asking: Asking,
}

impl Answering {
    /// Returns a body that keeps this request in flight.
    pub fn hold(body: axum::body::Body, asking: Asking) -> axum::body::Body {
        axum::body::Body::new(Self { body, _asking: asking })
    }
}

impl HttpBody for Answering {
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

/// One connection.
pub struct Connection<S> {
    stream: S,
    admission: Admission,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    over: bool,
}

impl<S> Connection<S> {
    /// Returns the handle that records tokens and requests.
    pub fn admission(&self) -> Admission {
        self.admission.clone()
    }

    /// Returns the stream below.
    pub const fn stream(&self) -> &S {
        &self.stream
    }
}

impl<S: Unpin> Connection<S> {
    /// Returns the stream, or an error after the end of the connection. Called at every step: a client that only sends, and never reads the
    /// answers, would otherwise keep the connection open for ever.
    fn while_it_lasts(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut S>> {
        self.over = self.over || self.end.as_mut().poll(context).is_ready();
        if self.over { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Pin::new(&mut self.stream)) }
    }
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        self.admission.places.leave(&self.admission.seat);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().while_it_lasts(context)?.poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().while_it_lasts(context)?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().while_it_lasts(context)?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().while_it_lasts(context)?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
