//! How many may be connected to a socket at once: the same rules for the unix socket and for the ports.
//!
//! A connection without a valid token is cut off after a moment, and at once when its place is needed; then go those on which nothing is
//! asked, the longest idle first. One person has a share of the places, and where a place is kept for questions about the host itself,
//! nothing else is answered on it. Next: `api::port`, `api::auth`.

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

/// A connection on which no valid token came within this is cut off.
const ADMITTED_WITHIN: Duration = Duration::from_secs(10);

/// So long the answer to a signed request may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// One person has at most this part of the places.
const SHARE_OF_ONE: usize = 4;

/// How many may be connected.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at once.
    pub connections_max: usize,
    /// Whether one more place is kept for what asks about the host itself.
    pub keeps_one: bool,
}

/// A listener with bounds.
pub struct Door<L> {
    listener: L,
    port: u16,
    places: Places,
}

impl<L> Door<L> {
    /// Puts bounds around a listener; `port` is 0 where there is none.
    pub fn new(listener: L, port: u16, bounds: Bounds) -> Self {
        Self { listener, port, places: Places::new(bounds) }
    }

    /// Everybody who is connected.
    pub fn places(&self) -> Places {
        self.places.clone()
    }
}

impl<L: Listener> Listener for Door<L> {
    type Io = Connection<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // Axum's own way with errors of one connection, and with having no descriptors left.
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

/// Where a connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// It has shown no valid token yet, or one that has ended.
    Stranger,
    /// Its last request carried this valid token of this person.
    Admitted(TokenId, PersonId),
    /// A signed request of its is being answered.
    Answered,
    /// Its place was needed.
    CutOff,
}

/// Ends when the connection has to.
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

/// One connection's place.
#[derive(Debug)]
struct Seat {
    standing: watch::Sender<Standing>,
    /// Requests that are being answered; none where it is idle.
    asked: AtomicU32,
    /// The larger the number, the shorter it is idle.
    idle_since: AtomicU64,
    /// Whether this is the place that is kept.
    is_kept: AtomicBool,
}

impl Seat {
    /// From here to there, unless it stands elsewhere; whether it did.
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

/// Everybody who is connected, oldest first.
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

    /// A place for a new connection, once there is one.
    async fn take(&self) -> Held {
        loop {
            if let Some(seat) = self.try_take() {
                return seat;
            }
            self.0.left.notified().await;
        }
    }

    /// A free place, or that of the oldest who is not admitted, or that of who is idle the longest; else the one that is kept.
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

    /// Whether there is a place that is not the kept one, made where somebody can go.
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

    /// Takes its admission from each connection whose token is none of these.
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

/// Cuts off the admitted connection of these on which nothing has been asked for the longest.
fn cut_idle(held: &[Held], of: impl Fn(&Seat) -> bool) -> Option<Held> {
    let is_admitted = |standing: &Standing| matches!(standing, Standing::Admitted(..));
    let idle = held.iter().filter(|seat| seat.is_idle() && is_admitted(&seat.standing.borrow()) && of(seat));
    let longest = idle.min_by_key(|seat| seat.idle_since.load(Ordering::SeqCst))?;
    longest.change(is_admitted, Standing::CutOff).then(|| Arc::clone(longest))
}

/// What a connection has shown, and its place.
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
    /// The port that it came to.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// It has shown this token of this person, and keeps its place while something is asked on it.
    ///
    /// # Errors
    /// Refuses one more connection of a person who has as many as one may, each with a request that is being answered; and anything on
    /// the place that is kept, as long as there is no other.
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
                let words = format!("you have {others} connections at once, and one person may have no more");
                let refusal = Refusal::new(DenialCode::TooManyConnections, words);
                return Err(refusal.hint("wait for one of them to be answered"));
            };
            held.retain(|seat| !Arc::ptr_eq(seat, &gone));
        }
        let may = |standing: &Standing| matches!(standing, Standing::Stranger | Standing::Admitted(..));
        self.seat.change(may, Standing::Admitted(token.clone(), person));
        Ok(())
    }

    /// Its request is signed, and is answered before its place is anybody's; the answer is the last on this connection. False when its
    /// place was needed already.
    pub fn answer(&self) -> bool {
        self.seat.change(|standing| *standing == Standing::Stranger, Standing::Answered)
    }

    /// Its last request had none.
    pub fn withdraw(&self) {
        self.seat.change(|standing| matches!(standing, Standing::Admitted(..)), Standing::Stranger);
    }

    /// Something is asked on it, until the answer is sent.
    pub fn ask(&self) -> Asking {
        self.seat.asked.fetch_add(1, Ordering::SeqCst);
        Asking(self.clone())
    }
}

/// A request that is being answered; goes with the last byte of the answer.
pub struct Asking(Admission);

impl Drop for Asking {
    fn drop(&mut self) {
        let Admission { seat, places, .. } = &self.0;
        seat.idle_since.store(places.0.idle.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        seat.asked.fetch_sub(1, Ordering::SeqCst);
        // Its place may be wanted.
        places.0.left.notify_one();
    }
}

/// The body of an answer, which holds its request until it is sent.
pub struct Answering {
    body: axum::body::Body,
    _asking: Asking,
}

impl Answering {
    /// A body that holds this request.
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
    /// What notes that it has shown a valid token.
    pub fn admission(&self) -> Admission {
        self.admission.clone()
    }

    /// What it goes over.
    pub const fn stream(&self) -> &S {
        &self.stream
    }
}

impl<S: Unpin> Connection<S> {
    /// The stream while the connection lasts. Asked for at every step: whoever only sends, and never reads what is answered,
    /// would otherwise be waited for without an end.
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
