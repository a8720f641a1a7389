//! Authentication: a person's token, over a socket of the same user or a loopback port.
//!
//! The peer is a second factor and never the identity, because a child process has the same uid. Every refusal has a reason of its own, and
//! failures of others never block a valid token. See `api::auth::peer`, `api::refusals`.

pub(super) mod failures;
pub mod peer;

pub use peer::Peer;

use super::answer::{Answer, Noted};
use super::callers::Freshness;
use super::connections::TrackedBody;
use super::state::Api;
use crate::registry::tokens::{self, PREFIX, TEXT_CHARACTERS};
use crate::registry::{Face, Person, Role, Signer, Token, TokenId, TokenState};
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::DenialCode;
use ironclaw_operator::routes::{HEALTH, READINESS};
use ironclaw_store::refusal::Refusal;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::Instant;

/// The paths that need no token; authentication lets only these pass without one.
pub const OPEN_TO_ALL: [&str; 2] = [HEALTH.path, READINESS.path];

/// The token of a request.
#[derive(Debug, Clone)]
pub struct Current(pub TokenId);

/// The authenticated caller of a request, and the API.
#[derive(Clone)]
pub struct Caller {
    pub api: Api,
    pub person: Person,
    pub current: Current,
    pub face: Face,
}

impl Caller {
    /// Returns the caller as the ledger names who decides.
    pub fn signer(&self) -> Signer {
        Signer { person: self.person.clone(), token: Some(self.current.0.clone()), face: self.face }
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Answer> {
        let found = parts.extensions.get().cloned().zip(parts.extensions.get().cloned());
        let Some((person, current)) = found else {
            return Err(Answer::broken(&"a route without a token has a handler that needs a caller"));
        };
        let face = parts.extensions.get().copied().unwrap_or(Face::Program);
        Ok(Self { api: api.clone(), person, current, face })
    }
}

/// Lets a request pass with the person whose token it carries.
///
/// The server drops the task of a connection when the other end closes it. So each request has a task of its own: the steps after a
/// committed change run even if the client is gone. Only a read ends with its connection.
pub async fn require(
    State(api): State<Api>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let (in_flight, is_read_only) = (peer.begin_request(), request.method().is_safe());
    let response = in_own_task(is_read_only, handle(api, peer, request, next)).await;
    let response = response.unwrap_or_else(|error| Answer::task_ended(&error).into_response());
    response.map(|body| TrackedBody::hold(body, in_flight))
}

/// Handles a request in a task of its own; only a read ends with the caller.
pub(super) async fn in_own_task(
    is_read_only: bool,
    handling: impl Future<Output = Response> + Send + 'static,
) -> Result<Response, JoinError> {
    let handling = tokio::spawn(handling);
    let _abort = is_read_only.then(|| AbortOnDrop(handling.abort_handle()));
    handling.await
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
                api.callers.record_use(api.state(), &token);
                request.extensions_mut().insert(token.person.clone());
                request.extensions_mut().insert(Current(token.id));
                let mut response = next.run(request).await;
                if let Some(Noted(code)) = response.extensions_mut().remove() {
                    api.callers.refusals.note((code, via)).await;
                }
                return response;
            }
            Err(AuthError::Denied(denied)) => denied,
            Err(AuthError::Broken(error)) => return Answer::from(error).into_response(),
        },
    };
    peer.withdraw();
    if denied.refusal.code != DenialCode::PeerGone {
        api.callers.refusals.note((denied.refusal.code, via)).await;
    }
    // An ended token always gets its reason: its holder is a person with a mistake, not a stranger who guesses.
    let limited = peer.is_open_to_others() && !api.callers.failures.allow(denied.token.as_ref(), Instant::now());
    if limited {
        let refusal =
            Refusal::new(DenialCode::TooManyFailures, "too many requests without a valid token came to this port");
        return Answer::from(refusal.hint("wait a second; a request with a valid token is never delayed"))
            .into_response();
    }
    Answer::from(denied.refusal).into_response()
}

/// Aborts a task when it is dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A refusal, with the ended token that it is about.
struct Denied {
    refusal: Refusal,
    token: Option<TokenId>,
}

enum AuthError {
    Denied(Denied),
    Broken(ironclaw_state::Error),
}

impl From<ironclaw_state::Error> for AuthError {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::Broken(error)
    }
}

fn deny<T>(code: DenialCode, message: &str, hint: &str) -> Result<T, AuthError> {
    Err(AuthError::Denied(Denied { refusal: Refusal::new(code, message).hint(hint), token: None }))
}

const TOKEN_HINT: &str =
    "ironctl sends the one in `owner.token` of the home, or what IRONCLAW_TOKEN or --token-file gives";

async fn authenticate(api: &Api, peer: &Peer, headers: &HeaderMap) -> Result<Token, AuthError> {
    let given = bearer(headers)?;
    let digest = Digest::of(given);
    let mut found = api.callers.tokens.find(api.state(), &digest, Freshness::Cached).await?;
    if found.is_none() && !peer.is_open_to_others() {
        // Another process may have made it a moment ago. Strangers cannot cause this second lookup in the record.
        found = api.callers.tokens.find(api.state(), &digest, Freshness::Now).await?;
    }
    // A stolen cookie opens no API, as a stolen token opens no page.
    let Some(token) = found.filter(|token| token.face == Face::Program) else {
        return deny(DenialCode::TokenInvalid, "this host does not know the token", TOKEN_HINT);
    };
    let Err(refusal) = check_valid(&token, ironclaw_state::wall_clock()) else { return Ok(token) };
    if token.state == TokenState::Live {
        // The expiry is not recorded yet. Once recorded, it holds whatever the clock says later.
        api.state().write(tokens::expire).await?;
        api.people_changed();
    }
    Err(AuthError::Denied(Denied { refusal, token: Some(token.id) }))
}

pub(super) fn check_valid(token: &Token, now: i64) -> Result<(), Refusal> {
    let (code, end) = match token.state {
        TokenState::Live if token.expires_at.is_none_or(|at| now < at) => return Ok(()),
        TokenState::Live | TokenState::Expired => (DenialCode::TokenExpired, "expired"),
        TokenState::Revoked => (DenialCode::TokenRevoked, "was revoked"),
    };
    let refusal = Refusal::new(code, format!("the token {} {end}", token.id));
    Err(refusal.hint("an owner makes a new one with `ironctl token add --person PERSON`"))
}

/// Checks the token again after a wait. Reads the record and not the cache, because the token may have ended meanwhile.
///
/// # Errors
/// Refuses an ended token.
pub async fn check_still_valid(api: &Api, current: &Current) -> Result<(), Answer> {
    let wanted = current.0.clone();
    let found = api.state().read_committed(move |tx| tokens::find_token(tx, &wanted)).await?;
    current.check(found)
}

impl Current {
    /// Checks the row that the record has for this token.
    ///
    /// # Errors
    /// Refuses an ended token.
    pub fn check(&self, found: Option<Token>) -> Result<(), Answer> {
        let id = &self.0;
        let gone = || Refusal::new(DenialCode::TokenInvalid, format!("the token {id} is gone")).hint(TOKEN_HINT);
        Ok(check_valid(&found.ok_or_else(gone)?, ironclaw_state::wall_clock())?)
    }
}

/// Returns the text of the token from exactly one header of the right form.
fn bearer(headers: &HeaderMap) -> Result<&[u8], AuthError> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (given.next(), given.next()) else {
        return deny(DenialCode::TokenMissing, "the request carries no token, or more than one", TOKEN_HINT);
    };
    let Some(text) = strip_scheme(header) else {
        return deny(DenialCode::TokenMissing, "the request's Authorization is not `Bearer TOKEN`", TOKEN_HINT);
    };
    let formed = text.len() == TEXT_CHARACTERS
        && text.strip_prefix(PREFIX.as_bytes()).is_some_and(|rest| rest.iter().all(u8::is_ascii_hexdigit));
    if !formed {
        let message = format!("the token is cut off or mistyped: one is `{PREFIX}` and 64 hex characters");
        return deny(DenialCode::TokenMalformed, &message, TOKEN_HINT);
    }
    Ok(text)
}

/// Strips the scheme of RFC 6750. The names of schemes are case-insensitive (RFC 9110, 11.1).
fn strip_scheme(header: &HeaderValue) -> Option<&[u8]> {
    let (scheme, text) = header.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(text)
}

/// Lets a request pass if its person has at least this role. Wraps every route with a role.
pub async fn require_role(State(needed): State<Role>, request: Request, next: Next) -> Response {
    let Some(person) = request.extensions().get::<Person>() else {
        // Only a wrong order of the layers leads here, and then no request passes.
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
