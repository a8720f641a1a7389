//! The server of `model.sock`: the check of the peer, the frames, and the limits on connections and refusals.
//!
//! Judges no request. The host stops a sandbox that floods the socket. Nothing here outlives the session. See
//! [`crate::calls::model_socket::requests`].

pub mod endpoints;
pub mod report;
pub mod request_budget;
pub mod request_sizes;
pub mod requests;
pub mod versions;

use crate::calls::executor::Executor;
use crate::calls::model_socket::endpoints::Models;
use crate::calls::model_socket::request_sizes::Sizes;
use crate::calls::model_socket::requests::{Answer, refuse};
use crate::calls::model_socket::versions::VersionKeeper;
use crate::registry::Agent;
use crate::registry::latch::Latch;
use crate::registry::live_settings::Live;
use crate::registry::tools::levels::Room;
use crate::turns::context::item_caches::{ItemCaches, SharedCache};
use crate::turns::context::{Refused, Unanswered};
use crate::turns::open_turns::OpenTurns;
use crate::turns::{items, turn};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::seam::socket::{RefusalCode, Request, Response, frame, frame_length};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Fault, LedgerEvent};
use ironclaw_state::State;
use ironclaw_state::home::Home;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::record::Record;
use std::io;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

/// Concurrent connections; the sandbox needs one.
const CONNECTIONS_MAX: usize = 4;

/// Time from the beginning of a frame to its end.
const FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// Pause after an error of the listener, such as a lack of file descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Refused requests in one launch. Each refusal is a ledger entry, and a sandbox that follows the contract causes few.
pub const REFUSALS_MAX: u32 = 64;

/// Requests `items` in a burst, and per second after it. A sandbox makes one for each turn and one for each page of items that it does
/// not know. A conversation at its bound of 20,000 items has 40 pages.
const ITEMS_AT_ONCE: NonZeroU32 = NonZeroU32::new(512).expect("not zero");
const ITEMS_A_SECOND: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

/// A request `items` beyond the rate, earned by each turn that gets an output.
///
/// A session at its bound of items makes one in each turn. With a fast model, honest turns would otherwise exceed the rate.
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

/// The state that the servers of all awake sessions share.
pub struct ModelServers {
    pub turns: Arc<OpenTurns>,
    /// The item caches of the awake sessions.
    pub caches: Arc<ItemCaches>,
    pub models: Arc<Models>,
    /// The emergency stop, which prevents requests to models.
    pub latch: Arc<Latch>,
    /// Has the workspaces with the images of messages.
    pub home: Home,
    /// Have `[budget]` and `[egress]`.
    pub settings: Arc<Live>,
    /// Runs the calls that the host runs.
    pub executor: Arc<Executor>,
    /// Copies changed files before calls that may change files.
    pub versions: VersionKeeper,
}

impl ModelServers {
    pub(super) fn record(&self) -> &Arc<Record> {
        &self.turns.record
    }

    /// Returns the room for the definitions of tools of servers in the prompts of an agent.
    pub(super) fn room(&self, agent: &Agent) -> Room {
        let endpoints = self.models.current();
        let own = endpoints.get(&agent.model).and_then(|endpoint| endpoint.spec.settings.tool_definitions_bytes_max);
        self.turns.config().room(own)
    }
}

/// The server of the model socket of one awake session.
pub struct Server {
    pub(super) shared: Arc<ModelServers>,
    pub(super) session: SessionId,
    pub(super) key: Arc<ContentKey>,
    /// Changes whenever a call gets its result.
    pub(super) results: watch::Receiver<u64>,
    /// Serializes requests, so that a second connection of the same sandbox gains nothing.
    one: Mutex<()>,
    /// The turn for which the changed files were copied last.
    kept_for: std::sync::Mutex<Option<TurnId>>,
    /// Locked by the one request that reads the record or records its output.
    pub(super) cache: Arc<SharedCache>,
    /// The sizes of its requests, for models that read less than the host may send.
    pub(super) sizes: Arc<Sizes>,
    refusals: AtomicU32,
    /// The number of the newest dropped item at the last excused request for a dropped one.
    excused_upto: AtomicU64,
    /// The rate of requests `items`.
    items: DefaultDirectRateLimiter,
    /// A request `items` beyond that rate, earned by the newest turn.
    earned: std::sync::Mutex<Earned>,
    violations: mpsc::Sender<&'static str>,
}

impl Server {
    /// Makes the server of one awake session; `violations` receives a sentence when the sandbox exceeds a limit.
    pub fn new(
        shared: Arc<ModelServers>,
        session: SessionId,
        key: Arc<ContentKey>,
        results: watch::Receiver<u64>,
        violations: mpsc::Sender<&'static str>,
    ) -> Self {
        let cache = shared.caches.add();
        Self {
            shared,
            session,
            key,
            results,
            one: Mutex::new(()),
            kept_for: std::sync::Mutex::default(),
            cache,
            sizes: Arc::default(),
            refusals: AtomicU32::new(0),
            excused_upto: AtomicU64::new(0),
            items: RateLimiter::direct(Quota::per_second(ITEMS_A_SECOND).allow_burst(ITEMS_AT_ONCE)),
            earned: std::sync::Mutex::default(),
            violations,
        }
    }

    /// Accepts connections of the sandbox process. All its tasks end when this future is dropped.
    pub async fn run(self: Arc<Self>, listener: UnixListener, sandbox: watch::Receiver<Option<u32>>) {
        let mut open = JoinSet::new();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(session = %self.session, %error, "cannot accept a connection on the model socket");
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
            // Connections that ended since the last accept free their slots here.
            while open.try_join_next().is_some() {}
            if open.len() >= CONNECTIONS_MAX {
                let message =
                    format!("the sandbox has {CONNECTIONS_MAX} connections to its model socket, which is the limit");
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
            // Before the body is read or allocated, so that a waiting request costs only four bytes.
            let _one = self.one.lock().await;
            let length = match frame_length(prefix) {
                Ok(length) => length,
                Err(error) => {
                    // The beginning of the next frame is unknown, so the connection ends with the answer.
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
                tracing::debug!(session = %self.session, line = error.line(), column = error.column(), "not a request");
                let message = "the frame is not a request of the contract".to_owned();
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
            // A failed model is no fault of the sandbox. The ledger and the turn have the reason already, and each such request is
            // counted.
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

    /// Answers a request `items` within the rate. A session that continues after [`REFUSALS_MAX`] refusals is stopped.
    async fn metered_items(&self, after_seq: u64) -> Answer {
        let is_allowed = self.earned().spend() || self.items.check().is_ok();
        if !is_allowed {
            let message = format!("the sandbox requests items more than {ITEMS_A_SECOND} times a second");
            return refuse(RefusalCode::Budget, message);
        }
        self.items_after(after_seq).await
    }

    fn earned(&self) -> std::sync::MutexGuard<'_, Earned> {
        self.earned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the host dropped items since the last excused request for a dropped item. The sandbox could not know that, so
    /// it is not at fault. It is excused once after each drop, because it then requests the items again.
    async fn is_excused(&self, refused: &Refused) -> bool {
        if refused.code != RefusalCode::Unknown {
            return false;
        }
        let session = self.session;
        let dropped = self.state().read(move |tx| items::dropped_upto(tx, session)).await;
        dropped.is_ok_and(|dropped: u64| self.excused_upto.fetch_max(dropped, Ordering::Relaxed) < dropped)
    }

    /// Records a refusal in the ledger and returns it as the answer.
    async fn refusal(&self, refused: Refused, turn: Option<TurnId>) -> Response {
        self.count_refusal("the sandbox was refused too often on its model socket");
        let (session, code, message) = (self.session, refused.code.name(), refused.message.clone());
        let note = self.state().write(move |tx| {
            let entry = Entry::new(LedgerEvent::ModelRefused).session(session).fault(Fault::Sandbox);
            let entry = entry.with("code", code).reason(&message);
            // A turn of another session is only a claim of the sandbox, so the entry does not name it.
            let own = turn.map(|id| turn::find(tx, id)).transpose()?.flatten().filter(|turn| turn.session == session);
            match own {
                Some(own) => entry.turn(own.id).append(tx),
                None => entry.append(tx),
            }
        });
        if let Err(error) = note.await {
            tracing::error!(session = %self.session, %error, "cannot record a refusal");
        }
        Response::Refused { code: refused.code, message: refused.message }
    }

    pub(super) fn state(&self) -> &State {
        &self.shared.turns.record.state
    }

    fn count_refusal(&self, what: &'static str) {
        if self.refusals.fetch_add(1, Ordering::Relaxed) >= REFUSALS_MAX {
            // One violation is enough, because the first one stops the session.
            let _ = self.violations.try_send(what);
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
