//! The entrance for webhooks: a port of its own with one path, `POST /hooks/NAME`.
//!
//! Accepts a message only after the record has it, and does not reveal the names of channels without their secret. The order of checks:
//! size, signature, age, replay, limit, agent, shape, sender, record. See `channels::inbound::channel::webhook`, `channels::inbound::inbox`.

mod refused;

pub use refused::{Cause, RefusedHooks};

use super::answer::{Answer, RETRY_AFTER_SECONDS};
use super::attachments;
use super::connections::ConnectionHandle;
use super::large_bodies::LargeBodies;
use super::port::Port;
use super::refusals::Refusals;
use crate::channels::inbound::channel::webhook::incoming::{self, REQUEST_BYTES_MAX};
use crate::channels::inbound::channel::webhook::signature::{self, Claimed, Secret};
use crate::channels::inbound::inbox::events::Event;
use crate::channels::inbound::routing;
use crate::registry::channels::{self, Channel};
use crate::runtime::pipeline::{Confirmation, Inbound};
use crate::runtime::sessions::Sessions;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{Bound, ChannelKind, DenialCode, LedgerEvent, Taken};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::shutdown::Shutdown;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// Requests without a valid signature that get their reason: a burst, then a rate for each second. The others are asked to slow down.
const FAILURES_AT_ONCE: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
const FAILURES_A_SECOND: NonZeroU32 = NonZeroU32::new(2).expect("not zero");

/// The entrance, for entries about refusals.
const VIA: &str = "webhook";

/// The state of every request.
#[derive(Clone)]
pub struct Hooks {
    record: Arc<Record>,
    inbound: Inbound,
    /// Have the workspaces for the files of messages.
    sessions: Sessions,
    refusals: Refusals,
    refused: RefusedHooks,
    failures: Arc<DefaultDirectRateLimiter>,
    signed: Arc<DefaultKeyedRateLimiter<String>>,
    per_minute: u32,
    /// Permits for large bodies.
    large: Arc<LargeBodies>,
}

impl Hooks {
    /// Returns the entrance, with a limit on signed requests for each minute. The API and this port share `large`, as one bound holds for
    /// both.
    pub fn new(
        record: Arc<Record>,
        inbound: Inbound,
        sessions: Sessions,
        per_minute: u32,
        large: Arc<LargeBodies>,
    ) -> Self {
        let signed_per_minute = NonZeroU32::new(per_minute);
        Self {
            per_minute,
            refusals: Refusals::new(record.state.clone(), LedgerEvent::WebhookRefused),
            refused: RefusedHooks::default(),
            failures: Arc::new(RateLimiter::direct(Quota::per_second(FAILURES_A_SECOND).allow_burst(FAILURES_AT_ONCE))),
            // The settings refuse 0.
            signed: Arc::new(RateLimiter::keyed(Quota::per_minute(signed_per_minute.unwrap_or(NonZeroU32::MIN)))),
            large,
            record,
            inbound,
            sessions,
        }
    }

    /// Returns the entrance with these counts of refused requests.
    pub fn counting(self, refused: &RefusedHooks) -> Self {
        Self { refused: refused.clone(), ..self }
    }

    /// Notes a refusal in the ledger, and counts it for its channel.
    async fn note(&self, code: DenialCode, cause: Cause) {
        // A message that the rules of the channel drop is acknowledged.
        if code != DenialCode::MessageIgnored {
            self.refused.count(code, &cause, ironclaw_state::wall_clock());
        }
        self.refusals.record_cause((code, VIA), cause).await;
    }

    /// Returns the refusal of a signed request of a channel that has room again after this time.
    fn over_rate(&self, channel: &str, wait: Duration) -> Refusal {
        let name = format!("signed requests of channel {channel} in a minute");
        let bound = Bound::new(name, self.per_minute, self.per_minute, "wait, and send it again with the same id");
        let bound = bound.setting_at_start("webhook.requests_per_minute");
        let ends_at = ironclaw_state::wall_clock() + i64::try_from(wait.as_millis()).unwrap_or(i64::MAX >> 1);
        Refusal::over(DenialCode::TooManyRequests, bound.until(ironclaw_ledger::rfc3339(ends_at)))
    }

    /// Serves the port until the host stops. Open requests are answered first.
    ///
    /// A connection has the bounds of [`Port`]. It lasts ten seconds and gives way to a new one if all are taken, until it carries a signed
    /// request. The answer to that request is the last on it.
    ///
    /// # Errors
    /// When the socket breaks.
    pub async fn serve(self, port: Port, shutdown: Shutdown) -> std::io::Result<()> {
        let refusals = self.refusals.clone();
        let app = Router::new()
            .route("/hooks/{name}", post(receive))
            .fallback(|| async { Answer::from(Refusal::new(DenialCode::NotFound, "there is no such path")) })
            .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
            .with_state(self);
        let served = axum::serve(port, app.into_make_service_with_connect_info::<ConnectionHandle>())
            .with_graceful_shutdown(shutdown.stopped())
            .await;
        refusals.flush().await;
        served
    }
}

/// `POST /hooks/{name}`. Runs in a task of its own, so that the steps after a recorded message run even if the client is gone.
async fn receive(
    State(hooks): State<Hooks>,
    ConnectInfo(handle): ConnectInfo<ConnectionHandle>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let body = body(request).await;
    let handled = tokio::spawn(async move {
        let (mut signed, mut cause) = (false, Cause::default());
        let is_signed = || signed = handle.begin_answer();
        let mut answer = match accept(&hooks, &name, &headers, body, &mut cause, is_signed).await {
            Ok(taken) => Json(taken).into_response(),
            Err(Denied::Refused(refusal)) if refusal.code == DenialCode::MessageIgnored => {
                // Counted, and acknowledged, so that the sender does not repeat it.
                hooks.note(refusal.code, cause).await;
                Json(Taken { message_id: None }).into_response()
            }
            Err(Denied::Refused(refusal)) => {
                hooks.note(refusal.code, cause).await;
                refused(refusal)
            }
            Err(Denied::Failed(error)) => {
                tracing::error!(%error, "a webhook request failed");
                // The sender gets no cause, since the fault is the host's.
                let refusal = Refusal::new(
                    DenialCode::MessageNotRecorded,
                    "the host could not accept the request, and kept no part of it",
                );
                refused(refusal.hint("send it again with the same id"))
            }
        };
        if signed {
            // The connection only remains open for this answer.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    });
    handled.await.unwrap_or_else(|_| refused(Refusal::new(DenialCode::MessageNotRecorded, "the host is stopping")))
}

/// Reads the body, unless it is too large. A body whose declared length is too large is not read.
async fn body(request: Request) -> Result<Bytes, Refusal> {
    let too_large = || {
        let words = format!("a request has at most {REQUEST_BYTES_MAX} bytes");
        Refusal::new(DenialCode::RequestTooLarge, words)
    };
    let says = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if says.is_some_and(|length| length > REQUEST_BYTES_MAX as u64) {
        return Err(too_large());
    }
    match Bytes::from_request(request, &()).await {
        Ok(body) => Ok(body),
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(too_large()),
        Err(_) => Err(Refusal::new(DenialCode::RequestMalformed, "the body is incomplete")),
    }
}

async fn accept(
    hooks: &Hooks,
    name: &str,
    headers: &HeaderMap,
    body: Result<Bytes, Refusal>,
    cause: &mut Cause,
    is_signed: impl FnOnce(),
) -> Result<Taken, Denied<Error>> {
    let body = body?;
    let (record, asked) = (&hooks.record, name.to_owned());
    let channel = record.state.read(move |tx| Ok::<_, Error>(find_webhook(tx, &asked)?)).await?;
    let secret = channel.as_ref().map(|channel| channel.secret(&record.wrapping)).transpose();
    let secret = secret.map_err(Error::Key)?.and_then(|text| Secret::read(&text).ok());
    cause.channel = channel.as_ref().map(|channel| channel.name.clone());
    // Before any limit: unsigned requests of others never block a sender with the secret.
    let claimed = verified(hooks, headers, secret.as_ref(), &body, cause)?;
    is_signed();
    let Some(channel) = channel else {
        return Err(ironclaw_state::Error::Stored("a signature without a channel was accepted".to_owned()).into());
    };
    signature::check_time(&claimed, ironclaw_state::wall_clock())?;
    // Before the limit and before the check for an agent: a replayed request uses no quota, and a recorded message is acknowledged.
    let event = Event::new(channel.name.clone(), claimed.id.to_owned(), Digest::of(&body));
    if let Some(seen) = record.state.read(move |tx| event.seen(tx)).await? {
        return Ok(Taken { message_id: Some(seen.message) });
    }
    if let Err(not_until) = hooks.signed.check_key(&channel.name) {
        let wait = not_until.wait_time_from(DefaultClock::default().now());
        return Err(hooks.over_rate(&channel.name, wait).into());
    }
    let Channel { name, agent: Some(agent), .. } = channel else {
        return Err(routing::unheard().into());
    };
    let _permit = hooks.large.permit(&format!("channel:{name}"), Some(body.len())).await;
    let event_id = claimed.id.to_owned();
    let reading = tokio::task::spawn_blocking(move || incoming::read(&name, agent.to_string(), &event_id, &body));
    let received = reading.await.map_err(|_| Error::Stopping)??;
    let received = attachments::place(&hooks.inbound, &hooks.sessions, received).await?;
    let recorded = hooks.inbound.inbound(received, Confirmation::AtOnce).await?;
    Ok(Taken { message_id: Some(recorded.message) })
}

/// Finds the webhook of this name. A channel of another kind counts as unknown, since it has another entrance.
fn find_webhook(tx: &ReadTx<'_>, name: &str) -> Result<Option<Channel>, ironclaw_state::Error> {
    let found = channels::find(tx, name)?;
    Ok(found.filter(|channel| match channel.kind {
        ChannelKind::Webhook => true,
    }))
}

/// Returns the claims of a request that the holder of the secret signed.
///
/// # Errors
/// Refuses any other request. Only the holder of the secret gets an answer that depends on the channel.
fn verified<'a>(
    hooks: &Hooks,
    headers: &'a HeaderMap,
    secret: Option<&Secret>,
    body: &[u8],
    cause: &mut Cause,
) -> Result<Claimed<'a>, Refusal> {
    let (refused, claimed) = match Claimed::read(headers) {
        Ok(claimed) => match signature::check(secret, &claimed, body) {
            Ok(()) => return Ok(claimed),
            Err(refused) => (refused, Some(claimed)),
        },
        Err(refused) => (refused, None),
    };
    cause.rule = Some(refused.rule);
    if hooks.failures.check().is_err() {
        let words = "too many requests without a valid signature came to this port";
        return Err(slow_down(DenialCode::TooManyFailures, words));
    }
    let refused = match claimed {
        Some(claimed) => signature::diagnose(refused, secret, &claimed, body),
        None => refused,
    };
    cause.rule = Some(refused.rule);
    Err(refused.refusal)
}

fn slow_down(code: DenialCode, words: &str) -> Refusal {
    Refusal::new(code, words).hint("wait a moment, and send it again with the same id")
}

/// Returns a refusal as HTTP. A request that may be sent again later gets another status than a permanently refused one.
fn refused(refusal: Refusal) -> Response {
    let status = match refusal.code {
        // The agent of the channel was removed meanwhile: the sender may try again.
        DenialCode::AgentUnknown => StatusCode::SERVICE_UNAVAILABLE,
        code => StatusCode::from_u16(code.status()).expect("the list holds statuses"),
    };
    let mut response = Answer { status, ..Answer::from(refusal) }.into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_store::record;
    use ironclaw_store::tables::channels::{NewChannel, insert};

    #[test]
    fn channel_of_another_kind_is_unknown_here() {
        record::in_a_new_one(|tx, _| {
            for kind in ChannelKind::ALL {
                let new = NewChannel {
                    name: kind.name(),
                    kind,
                    url: "https://example.org/",
                    idempotent: false,
                    wrapped: b"wrapped",
                    created_at: 1,
                };
                insert(tx, &new).expect("a row of this kind");
                let found = find_webhook(tx, kind.name()).expect("read");
                assert_eq!(found.is_some(), kind.name() == "webhook", "{kind}");
            }
            assert!(find_webhook(tx, "none").expect("read").is_none());
        });
    }
}
