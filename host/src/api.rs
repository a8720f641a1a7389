//! The operator's API: HTTP on a unix socket, a person's token on every request.
//!
//! Decides nothing that the modules below decide; translates between their words and the wire's. Next: `api::auth`.

mod agents;
mod auth;
mod chat;
mod sessions;
mod status;

use crate::ledger::Entry;
use crate::pipeline::Pipeline;
use crate::refusal::{Fault, Refusal};
use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ironclaw_contract::operator::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::UnixListener;
use tokio::sync::watch;

/// Bytes of a request: the largest message with its files, in JSON.
const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Refused requests are noted in the ledger at most this often.
const REFUSAL_NOTED_EVERY: Duration = Duration::from_secs(10);

/// `[api]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The unix socket, in place of one in the private runtime directory.
    pub socket: Option<PathBuf>,
}

/// What every handler works with.
#[derive(Clone)]
pub struct Api {
    pipeline: Pipeline,
    about: Arc<About>,
    stop: watch::Sender<bool>,
    refused: Arc<Mutex<Option<Instant>>>,
}

/// What the daemon knows of itself.
pub struct About {
    /// When it started, milliseconds since the epoch.
    pub started_at: i64,
    /// What is lowered or worth a look.
    pub warnings: Vec<String>,
}

impl Api {
    /// An API over a pipeline; `stop` is set when somebody asks the daemon to stop.
    pub fn new(pipeline: Pipeline, about: About, stop: watch::Sender<bool>) -> Self {
        Self { pipeline, about: Arc::new(about), stop, refused: Arc::default() }
    }

    /// Puts into the ledger that somebody was not let in; once in a while, so that nobody fills it by knocking.
    async fn note_refusal(&self) {
        {
            let mut last = self.refused.lock().expect("no holder panics");
            if last.is_some_and(|last| last.elapsed() < REFUSAL_NOTED_EVERY) {
                return;
            }
            *last = Some(Instant::now());
        }
        tracing::warn!("a request to the API was refused");
        let note = self.pipeline.core().state.write(|tx| Entry::retract("api.refused").append(tx));
        if let Err(error) = note.await {
            tracing::error!(%error, "a refusal was not noted");
        }
    }

    /// Serves until `stopped` says so; open requests are answered first.
    ///
    /// # Errors
    /// When the socket breaks.
    pub async fn serve(self, listener: UnixListener, mut stopped: watch::Receiver<bool>) -> std::io::Result<()> {
        let routes = Router::new()
            .route("/v1/status", get(status::status))
            .route("/v1/stop", post(status::stop))
            .route("/v1/agents", get(agents::list).post(agents::create))
            .route("/v1/agents/{agent}", get(agents::show).delete(agents::remove))
            .route("/v1/agents/{agent}/mode", post(agents::set_mode))
            .route("/v1/agents/{agent}/messages", post(chat::send))
            .route("/v1/agents/{agent}/history", get(chat::history))
            .route("/v1/messages/{id}", get(chat::message))
            .route("/v1/messages/{id}/events", get(chat::events))
            .route("/v1/messages/{id}/why", get(chat::why))
            .route("/v1/sessions", get(sessions::list))
            .route("/v1/sessions/{id}", get(sessions::show).delete(sessions::remove))
            .route("/v1/sessions/{id}/stop", post(sessions::stop))
            .route("/v1/sessions/{id}/release", post(sessions::release))
            .route("/v1/sessions/{id}/prove", post(sessions::prove))
            .fallback(|| async { Answer::from(Refusal::operator("not_found", "there is no such path in the API")) })
            .layer(axum::middleware::from_fn_with_state(self.clone(), auth::require))
            .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
            .with_state(self);
        let service = routes.into_make_service_with_connect_info::<auth::Peer>();
        let ended = async move {
            // An error means that nobody can ask us to stop any more: then we stop.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        axum::serve(listener, service).with_graceful_shutdown(ended).await
    }
}

/// A request's body, strictly of this shape; anything else is answered in the API's own words.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Answer;

    async fn from_request(request: Request, state: &S) -> Result<Self, Answer> {
        let malformed = |what: String| Answer::from(Refusal::operator("request_malformed", what));
        let bytes =
            axum::body::Bytes::from_request(request, state).await.map_err(|error| malformed(error.body_text()))?;
        let limits = ironclaw_contract::canonical::Limits::bytes(REQUEST_BYTES_MAX);
        ironclaw_contract::canonical::from_slice(&bytes, limits).map(Body).map_err(|error| malformed(error.to_string()))
    }
}

/// An answer that says no.
pub struct Answer(StatusCode, Failure);

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let status = match (refusal.fault, refusal.code) {
            (_, code) if code.ends_with("_unknown") || code == "not_found" => StatusCode::NOT_FOUND,
            (_, "unauthorized") => StatusCode::UNAUTHORIZED,
            (_, "forbidden") => StatusCode::FORBIDDEN,
            (_, code) if code.ends_with("_exists") || code.ends_with("_in_use") => StatusCode::CONFLICT,
            (Fault::Host, _) => StatusCode::SERVICE_UNAVAILABLE,
            (Fault::Operator | Fault::Sender | Fault::Sandbox, _) => StatusCode::BAD_REQUEST,
        };
        Self(status, Failure::new(refusal.code, refusal.message, refusal.hint))
    }
}

/// Breakdowns: the log has the cause, the caller a sentence.
macro_rules! breakdown {
    ($($error:ty),+) => {
        $(impl From<$error> for Answer {
            fn from(error: $error) -> Self {
                tracing::error!(%error, "a request failed");
                let failure = Failure::new("internal", format!("the host failed: {error}"), "`ironctl logs` has more");
                Self(StatusCode::INTERNAL_SERVER_ERROR, failure)
            }
        })+
    };
}
breakdown!(crate::pipeline::Error, crate::state::Error, crate::items::BodyError);

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.0, axum::Json(self.1)).into_response()
    }
}

/// What a handler gives: JSON, or a no.
pub type Reply<T> = Result<axum::Json<T>, Answer>;

/// Reads an id out of a path, or says that there is no such thing.
fn id<T: std::str::FromStr>(text: &str, code: &'static str, what: &str) -> Result<T, Answer> {
    let shown: String = text.chars().take(64).collect();
    text.parse().map_err(|_| Refusal::operator(code, format!("there is no {what} {shown:?}")).into())
}
