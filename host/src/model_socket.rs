//! The wire of `model.sock`: who may connect, how many at once, how frames lie, and how often one may be refused.
//!
//! Judges no request; a sandbox that floods it is stopped, and nothing of it outlives the session. Next: `model_socket::requests`.

pub mod endpoints;
pub mod report;
pub mod request_budget;
pub mod requests;

use crate::latch::Latch;
use crate::model_socket::endpoints::Models;
use crate::model_socket::requests::{Answer, refuse};
use crate::open_turns::OpenTurns;
use crate::record::Record;
use crate::turns::context::{self, Refused, Unanswered};
use crate::turns::{budget, items, turn};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::operator::{Fault, LedgerEvent};
use ironclaw_contract::seam::socket::{RefusalCode, Request, Response, frame, frame_length};
use ironclaw_ledger::Entry;
use ironclaw_state::State;
use ironclaw_state::keys::ContentKey;
use std::io;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

/// Connections at once; the sandbox needs one.
const CONNECTIONS_MAX: usize = 4;

/// A frame that has begun must be there within this time.
const FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// After an error of the listener, such as no descriptors left, it rests this long.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Refused requests in one launch; each is a ledger entry, and a sandbox that keeps to the contract has hardly any.
pub const REFUSALS_MAX: u32 = 64;

/// Requests `items` at once, and then in a second. A sandbox asks once for each turn and once for each page of what it does not know: a
/// conversation at its bound of 20,000 items has 40 pages.
const ITEMS_AT_ONCE: NonZeroU32 = NonZeroU32::new(512).expect("not zero");
const ITEMS_A_SECOND: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

/// A request `items` beyond the rate, earned by each turn that gets an output.
///
/// A session at its bound of items asks once a turn. A fast model would otherwise exceed the rate with honest turns.
#[derive(Debug, Default)]
struct Earned {
    by: Option<TurnId>,
    is_left: bool,
}

impl Earned {
    /// Counts the first output of `turn`; another output of the same turn earns nothing.
    fn earn(&mut self, turn: TurnId) {
        if self.by != Some(turn) {
            *self = Self { by: Some(turn), is_left: true };
        }
    }

    /// Uses the earned request. Returns whether there was one.
    fn spend(&mut self) -> bool {
        std::mem::take(&mut self.is_left)
    }
}

/// What the servers of all awake sessions share.
pub struct ModelServers {
    /// The turns that ask.
    pub turns: Arc<OpenTurns>,
    /// The models that are asked.
    pub models: Arc<Models>,
    /// Keeps models from being asked.
    pub latch: Arc<Latch>,
    /// `[budget]`
    pub budget: budget::Config,
}

impl ModelServers {
    pub(super) fn record(&self) -> &Arc<Record> {
        &self.turns.record
    }
}

/// The server of the model socket of one awake session.
pub struct Server {
    pub(super) shared: Arc<ModelServers>,
    pub(super) session: SessionId,
    pub(super) key: Arc<ContentKey>,
    /// Changes whenever a call got its result.
    pub(super) results: watch::Receiver<u64>,
    /// One request at a time: a second connection of the same sandbox gains nothing.
    one: Mutex<()>,
    /// Held by the one request that reads the record.
    pub(super) cache: Arc<std::sync::Mutex<context::ItemCache>>,
    refusals: AtomicU32,
    /// The number of the newest dropped item when a request last named one that is gone.
    excused_upto: AtomicU64,
    /// How often the record may be read for `items`.
    items: DefaultDirectRateLimiter,
    /// A request `items` that the newest turn earned beyond that rate.
    earned: std::sync::Mutex<Earned>,
    trouble: mpsc::Sender<&'static str>,
}

impl Server {
    /// A server for one awake session; `trouble` hears when the sandbox is out of order.
    pub fn new(
        shared: Arc<ModelServers>,
        session: SessionId,
        key: Arc<ContentKey>,
        results: watch::Receiver<u64>,
        trouble: mpsc::Sender<&'static str>,
    ) -> Self {
        Self {
            shared,
            session,
            key,
            results,
            one: Mutex::new(()),
            cache: Arc::default(),
            refusals: AtomicU32::new(0),
            excused_upto: AtomicU64::new(0),
            items: RateLimiter::direct(Quota::per_second(ITEMS_A_SECOND).allow_burst(ITEMS_AT_ONCE)),
            earned: std::sync::Mutex::default(),
            trouble,
        }
    }

    /// Accepts connections of the sandbox's own process. Every task of it ends when this future is dropped.
    pub async fn run(self: Arc<Self>, listener: UnixListener, sandbox: watch::Receiver<Option<u32>>) {
        let mut open = JoinSet::new();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(session = %self.session, %error, "the model socket accepts nobody for a moment");
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
            let known = sandbox.borrow().and_then(|pid| i32::try_from(pid).ok());
            if known.is_none() || peer != known {
                self.count_refusal("a process that is not the sandbox connected to its model socket");
                continue;
            }
            // Those that ended while nobody connected hold no place any more.
            while open.try_join_next().is_some() {}
            if open.len() >= CONNECTIONS_MAX {
                let message =
                    format!("it holds {CONNECTIONS_MAX} connections to its model socket, and may have no more");
                self.refusal(Refused { code: RefusalCode::Budget, message }, None).await;
                continue;
            }
            let server = Arc::clone(&self);
            open.spawn(async move {
                if let Err(error) = server.serve(stream).await {
                    tracing::debug!(session = %server.session, %error, "a model connection ended");
                }
            });
        }
    }

    async fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
        loop {
            let mut prefix = [0; 4];
            match stream.read_exact(&mut prefix).await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            };
            // Before anything is read or made room for: what waits here costs four bytes.
            let _one = self.one.lock().await;
            let length = match frame_length(prefix) {
                Ok(length) => length,
                Err(error) => {
                    // What follows cannot be told from the next frame, so the connection ends with the answer.
                    let refused = Refused { code: RefusalCode::Frame, message: error.to_string() };
                    let response = self.refusal(refused, None).await;
                    return stream.write_all(&frame(&response)?).await;
                }
            };
            let mut body = vec![0; length];
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "a frame did not end in time");
            tokio::time::timeout(FRAME_TIME_MAX, stream.read_exact(&mut body)).await.map_err(late)??;
            let response = self.answer(&body).await;
            drop(body);
            stream.write_all(&frame(&response)?).await?;
        }
    }

    async fn answer(&self, body: &[u8]) -> Response {
        let request: Request = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => {
                tracing::debug!(session = %self.session, line = error.line(), column = error.column(), "no request");
                let message = "the frame holds no request of the contract".to_owned();
                return self.refusal(Refused { code: RefusalCode::Frame, message }, None).await;
            }
        };
        let (turn, answer) = match request {
            Request::Generate { turn, purpose, refs } => {
                let answer = self.generate(turn, purpose, refs).await;
                if answer.is_ok() {
                    self.earned().earn(turn);
                }
                (Some(turn), answer)
            }
            Request::Report { turn, call_id, ok, body } => (Some(turn), self.report(turn, call_id, ok, body).await),
            Request::Result { turn, call_id } => (Some(turn), self.result(turn, call_id).await),
            Request::Items { after_seq } => (None, self.metered_items(after_seq).await),
        };
        match answer {
            Ok(response) => response,
            // That a model gives nothing is no fault of the sandbox; why stands in the ledger and in the turn already, and
            // each such request was counted.
            Err(Unanswered::Refused(Refused { code: RefusalCode::Model, message })) => {
                Response::Refused { code: RefusalCode::Model, message }
            }
            Err(Unanswered::Refused(refused)) if self.is_excused(&refused).await => {
                Response::Refused { code: refused.code, message: refused.message }
            }
            Err(Unanswered::Refused(refused)) => self.refusal(refused, turn).await,
            Err(Unanswered::Failed(error)) => {
                tracing::error!(session = %self.session, %error, "a model request failed");
                Response::Refused { code: RefusalCode::Unavailable, message: "the host failed; see its log".to_owned() }
            }
        }
    }

    /// The items, as long as the session does not ask for them too often; one that goes on after [`REFUSALS_MAX`] refusals is stopped.
    async fn metered_items(&self, after_seq: u64) -> Answer {
        let is_allowed = self.earned().spend() || self.items.check().is_ok();
        if !is_allowed {
            let message = format!("it asks for items more than {ITEMS_A_SECOND} times in a second");
            return refuse(RefusalCode::Budget, message);
        }
        self.items_after(after_seq).await
    }

    fn earned(&self) -> std::sync::MutexGuard<'_, Earned> {
        self.earned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host has dropped items since a request last named one that is gone. The sandbox could not know that, so it is not
    /// at fault: once for each time that items are dropped, as it asks for the items then.
    async fn is_excused(&self, refused: &Refused) -> bool {
        if refused.code != RefusalCode::Unknown {
            return false;
        }
        let session = self.session;
        let dropped = self.state().read(move |tx| items::dropped_upto(tx, session)).await;
        dropped.is_ok_and(|dropped: u64| self.excused_upto.fetch_max(dropped, Ordering::Relaxed) < dropped)
    }

    /// Puts a refusal into the ledger and makes it an answer.
    async fn refusal(&self, refused: Refused, turn: Option<TurnId>) -> Response {
        self.count_refusal("it was refused too often on its model socket");
        let (session, code, message) = (self.session, refused.code.name(), refused.message.clone());
        let note = self.state().write(move |tx| {
            let entry = Entry::new(LedgerEvent::ModelRefused).session(session).fault(Fault::Sandbox);
            let entry = entry.with("code", code).reason(&message);
            // A turn that is not this session's own is the sandbox's word and no place to file it under.
            let own = turn.map(|id| turn::find(tx, id)).transpose()?.flatten().filter(|turn| turn.session == session);
            match own {
                Some(own) => entry.turn(own.id).append(tx),
                None => entry.append(tx),
            }
        });
        if let Err(error) = note.await {
            tracing::error!(session = %self.session, %error, "a refusal was not noted");
        }
        Response::Refused { code: refused.code, message: refused.message }
    }

    pub(super) fn state(&self) -> &State {
        &self.shared.turns.record.state
    }

    fn count_refusal(&self, what: &'static str) {
        if self.refusals.fetch_add(1, Ordering::Relaxed) >= REFUSALS_MAX {
            // Once is enough; the session is stopped on the first.
            let _ = self.trouble.try_send(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_earns_one_request_for_items() {
        let (first, second) = (TurnId::new(), TurnId::new());
        let mut earned = Earned::default();
        assert!(!earned.spend(), "no turn had an output");
        earned.earn(first);
        assert!(earned.spend());
        earned.earn(first);
        assert!(!earned.spend(), "a second output of the same turn earns nothing");
        earned.earn(second);
        assert!(earned.spend());
        assert!(!earned.spend());
    }
}
