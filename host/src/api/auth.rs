//! Who is asking: a token of a person, over a socket whose other end is this user's or a loopback port.
//!
//! The peer is a second factor and never the identity: a child process has the same uid. Never answers no without a reason of its
//! own, and never lets the failures of others stand in the way of a valid token. Next: `api::auth::peer`, `api::refusals`.

mod failures;
pub mod peer;

pub use failures::Failures;
pub use peer::Peer;

use super::body::Large;
use super::door::Answering;
use super::refusals::Refusals;
use super::routes::OPEN_TO_ALL;
use super::watching::Probed;
use super::{Answer, Api};
use crate::refusal::Refusal;
use crate::registry::tokens::{self, PREFIX, TEXT_CHARACTERS};
use crate::registry::{Person, Role, Token, TokenId, TokenState};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What was read of the tokens is used so long: what another process changes (`ironclaw-host init` makes a new owner's token
/// beside a running host) is seen after it. What this process changes is seen at once.
const REMEMBERED_FOR: Duration = Duration::from_secs(1);

/// What the API knows of its callers.
pub struct Callers {
    /// Tokens that were looked up.
    pub(super) tokens: Tokens,
    /// Bounds requests whose token is none.
    pub(super) failures: Failures,
    /// Refusals for the ledger, at a bounded rate.
    pub(super) refusals: Refusals,
    /// Told when a token's end may have moved.
    pub(super) expiry: Notify,
    /// When it was last tried whether the record can be written.
    pub(super) probed: Probed,
    /// Who may read a large body now.
    pub(super) large: Arc<Large>,
    /// Held while a token is replaced: the file has room for one that is to come.
    pub(super) rotating: tokio::sync::Mutex<()>,
}

impl Callers {
    /// Callers of an API that has answered no request; `large` is shared with the port for webhooks.
    pub fn new(state: &ironclaw_state::State, large: Arc<Large>) -> Self {
        Self {
            tokens: Tokens::default(),
            failures: Failures::default(),
            refusals: Refusals::new(state.clone(), LedgerEvent::ApiRefused),
            expiry: Notify::new(),
            probed: Probed::default(),
            large,
            rotating: tokio::sync::Mutex::default(),
        }
    }
}

/// The token that a request came with.
#[derive(Debug, Clone)]
pub struct Current(pub TokenId);

/// Lets a request pass with the person whose token it carries.
///
/// When the other end goes away, whoever serves the connection is dropped where it stands. So the request is handled by itself: what
/// has to follow a change that is committed follows it, whether or not anybody waits for the answer. Only looking ends with the wish.
pub async fn require(
    State(api): State<Api>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let only_looks = request.method().is_safe();
    let asking = peer.ask();
    let handling = tokio::spawn(handle(api, peer, request, next));
    let _until_we_go = only_looks.then(|| EndsWithUs(handling.abort_handle()));
    let response = handling.await.unwrap_or_else(|error| Answer::broken(&error).into_response());
    response.map(|body| Answering::hold(body, asking))
}

async fn handle(api: Api, peer: Peer, mut request: Request, next: Next) -> Response {
    let via = peer.via();
    let denied = match peer.check(&request) {
        Err(refusal) => Denied { refusal, token: None },
        Ok(()) if OPEN_TO_ALL.contains(&request.uri().path()) => return next.run(request).await,
        Ok(()) => match authenticate(&api, &peer, request.headers()).await {
            Ok(token) => {
                if let Err(refusal) = peer.admit(&token) {
                    api.callers.refusals.note((refusal.code, via)).await;
                    return Answer::from(refusal).into_response();
                }
                request.extensions_mut().insert(token.person.clone());
                request.extensions_mut().insert(Current(token.id));
                let mut response = next.run(request).await;
                if let Some(Noted(code)) = response.extensions_mut().remove() {
                    api.callers.refusals.note((code, via)).await;
                }
                return response;
            }
            Err(Stop::Denied(denied)) => denied,
            Err(Stop::Broken(error)) => return Answer::from(error).into_response(),
        },
    };
    peer.withdraw();
    if denied.refusal.code != DenialCode::PeerGone {
        api.callers.refusals.note((denied.refusal.code, via)).await;
    }
    // One that ended is told so however much others fail: its holder is a person with a mistake, not a stranger who tries.
    let limited = peer.is_open_to_others() && !api.callers.failures.allow(denied.token.as_ref(), Instant::now());
    if limited {
        let refusal =
            Refusal::new(DenialCode::TooManyFailures, "too many requests without a valid token came to this port");
        return Answer::from(refusal.hint("wait a second; a request with a valid token is never held up"))
            .into_response();
    }
    Answer::from(denied.refusal).into_response()
}

/// A task that ends with whoever waits for it.
struct EndsWithUs(AbortHandle);

impl Drop for EndsWithUs {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A no, and the ended token that it is about.
struct Denied {
    refusal: Refusal,
    token: Option<TokenId>,
}

enum Stop {
    Denied(Denied),
    Broken(ironclaw_state::Error),
}

impl From<ironclaw_state::Error> for Stop {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::Broken(error)
    }
}

fn deny<T>(code: DenialCode, message: &str, hint: &str) -> Result<T, Stop> {
    Err(Stop::Denied(Denied { refusal: Refusal::new(code, message).hint(hint), token: None }))
}

const WHERE_ONE_IS: &str =
    "ironctl sends the one in `owner.token` of the home, or what IRONCLAW_TOKEN or --token-file gives";

async fn authenticate(api: &Api, peer: &Peer, headers: &HeaderMap) -> Result<Token, Stop> {
    let given = bearer(headers)?;
    let digest = Digest::of(given);
    let mut found = api.callers.tokens.find(api, &digest, Fresh::Enough).await?;
    if found.is_none() && !peer.is_open_to_others() {
        // It may have been made a moment ago by another process. Strangers do not get to cost a look into the record.
        found = api.callers.tokens.find(api, &digest, Fresh::Now).await?;
    }
    let Some(token) = found else {
        return deny(DenialCode::TokenInvalid, "the token is none of this host's", WHERE_ONE_IS);
    };
    let Err(refusal) = stands(&token, ironclaw_state::wall_clock()) else { return Ok(token) };
    if token.state == TokenState::Live {
        // Nobody wrote it down yet; from now on it stays so, whatever the clock says later.
        api.state().write(tokens::expire).await?;
        api.callers.tokens.forget();
    }
    Err(Stop::Denied(Denied { refusal, token: Some(token.id) }))
}

fn stands(token: &Token, now: i64) -> Result<(), Refusal> {
    let (code, end) = match token.state {
        TokenState::Live if token.expires_at.is_none_or(|at| now < at) => return Ok(()),
        TokenState::Live | TokenState::Expired => (DenialCode::TokenExpired, "expired"),
        TokenState::Revoked => (DenialCode::TokenRevoked, "was revoked"),
    };
    let refusal = Refusal::new(code, format!("the token {} {end}", token.id));
    Err(refusal.hint("an owner makes a new one with `ironctl token add --person PERSON`"))
}

/// For whoever answered after a wait: the token may have ended meanwhile, and the record is asked, not what was read before.
///
/// # Errors
/// Refuses one that ended.
pub async fn still_stands(api: &Api, current: &Current) -> Result<(), Answer> {
    let wanted = current.0.clone();
    let found = api.state().read(move |tx| tokens::find_token(tx, &wanted)).await?;
    current.stands(found)
}

impl Current {
    /// The same of what the record was found to say of this token.
    ///
    /// # Errors
    /// Refuses one that ended.
    pub fn stands(&self, found: Option<Token>) -> Result<(), Answer> {
        let id = &self.0;
        let gone = || Refusal::new(DenialCode::TokenInvalid, format!("the token {id} is gone")).hint(WHERE_ONE_IS);
        Ok(stands(&found.ok_or_else(gone)?, ironclaw_state::wall_clock())?)
    }
}

/// The token's text: one header, of the right form.
fn bearer(headers: &HeaderMap) -> Result<&[u8], Stop> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (given.next(), given.next()) else {
        return deny(DenialCode::TokenMissing, "the request carries no token, or more than one", WHERE_ONE_IS);
    };
    let Some(text) = strip_scheme(header) else {
        return deny(DenialCode::TokenMissing, "the request's Authorization is not `Bearer TOKEN`", WHERE_ONE_IS);
    };
    let formed = text.len() == TEXT_CHARACTERS
        && text.strip_prefix(PREFIX.as_bytes()).is_some_and(|rest| rest.iter().all(u8::is_ascii_hexdigit));
    if !formed {
        let message = format!("the token is cut off or mistyped: one is `{PREFIX}` and 64 hex characters");
        return deny(DenialCode::TokenMalformed, &message, WHERE_ONE_IS);
    }
    Ok(text)
}

/// RFC 6750; the name of a scheme is the same in any case (RFC 9110, 11.1).
fn strip_scheme(header: &HeaderValue) -> Option<&[u8]> {
    let (scheme, text) = header.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(text)
}

/// How new what is looked at has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fresh {
    Enough,
    Now,
}

/// The tokens as they were read last, so that a request costs no look into the record.
#[derive(Clone, Default)]
pub struct Tokens(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    tokens: Option<(Instant, Arc<Vec<Token>>)>,
    /// Counts what was forgotten: what was read before that is not kept after it.
    generation: u64,
}

impl Tokens {
    /// To be called after each change of a token or a person, once it is committed.
    pub fn forget(&self) {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.tokens = None;
        remembered.generation += 1;
    }

    async fn find(&self, api: &Api, digest: &Digest, fresh: Fresh) -> Result<Option<Token>, ironclaw_state::Error> {
        let (kept, generation) = {
            let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = remembered.tokens.as_ref().filter(|(at, _)| at.elapsed() < REMEMBERED_FOR);
            (kept.filter(|_| fresh == Fresh::Enough).map(|(_, tokens)| Arc::clone(tokens)), remembered.generation)
        };
        let tokens = match kept {
            Some(tokens) => tokens,
            None => {
                let asked = Instant::now();
                let tokens = Arc::new(api.state().read(tokens::tokens).await?);
                let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if remembered.generation == generation {
                    remembered.tokens = Some((asked, Arc::clone(&tokens)));
                }
                tokens
            }
        };
        let mut found = None;
        // To the end, whichever it is: how long this takes says nothing about the tokens.
        for token in tokens.iter() {
            if bool::from(token.digest.as_bytes().ct_eq(digest.as_bytes())) {
                found = Some(token);
            }
        }
        Ok(found.cloned())
    }
}

/// Marks an answer as a refusal that goes into the ledger, with its word for it.
#[derive(Debug, Clone, Copy)]
pub struct Noted(pub DenialCode);

/// Lets a request pass whose person has at least this role. Stands before every route.
pub async fn require_role(State(needed): State<Role>, request: Request, next: Next) -> Response {
    let Some(person) = request.extensions().get::<Person>() else {
        // Only a mistake in the order of the layers leads here; then nobody passes.
        let refusal = Refusal::new(DenialCode::TokenMissing, "the request was not authenticated");
        return Answer::from(refusal).into_response();
    };
    if person.role.covers(needed) {
        return next.run(request).await;
    }
    let message = format!("{} is {} and this needs {}", person.name, person.role, needed);
    let refusal =
        Refusal::new(DenialCode::RoleTooLow, message).hint("ask an owner: `ironctl person set PERSON --role ROLE`");
    Answer::noted(refusal).into_response()
}
