//! The operator's API: HTTP on a unix socket, with the token of a person on every request.
//!
//! Only translates between the types of the other modules and those of the wire; it decides nothing. See `api::auth`.

mod agents;
mod allowances;
mod attachments;
mod audit;
mod auth;
mod backup;
mod body;
mod calls;
mod changes;
mod channels;
mod chat;
mod connections;
mod dead_letters;
mod destinations;
mod files;
mod forgotten;
mod groups;
mod health;
pub mod hooks;
mod mcp;
mod memory;
mod models;
mod named;
mod openapi;
mod paths;
mod people;
pub mod port;
mod questions;
mod refusals;
mod requests;
mod routes;
mod schedules;
mod scope;
mod secrets;
mod sessions;
mod settings;
#[cfg(test)]
mod shapes;
mod skills;
mod status;
mod stops;
mod streaming;
mod tokens;
mod transcript;
mod usage;

use crate::calls::model_socket::endpoints::Models;
use crate::channels::outbound::dispatch::Dispatch;
use crate::gateway::changes::Changes;
use crate::gateway::questions::Questions;
use crate::gateway::requests::Requests;
use crate::reach::network_command::CommandJails;
use crate::runtime::emergency_stop::EmergencyStop;
use crate::runtime::pipeline::Inbound;
use crate::runtime::sessions::Sessions;
use crate::store::record::Record;
use crate::store::refusal::{Denied, Refusal};
use crate::store::shutdown::Shutdown;
use auth::Caller;
pub use auth::Callers;
use axum::Router;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use body::Body;
pub use body::LargeBodies;
pub use chat::ReadReplies;
use ironclaw_contract::operator::{DenialCode, Failure};
use ironclaw_state::State;
use ironclaw_state::home::Home;
use port::{Port, Socket};
pub use settings::{Reload, Reloading};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Seconds in `Retry-After`. Connections and rate limits become free within seconds, and no exact moment is known.
const RETRY_AFTER_SECONDS: u32 = 5;

ironclaw_contract::settings! {
    /// `[api]`
    pub struct Config for api {
        /// The unix socket of the API.
        socket: Option<PathBuf> = None, Optional {
            rule: "a path", instead: "`api.sock` in the private runtime directory",
            example: "\"/run/user/1000/ironclaw/api.sock\"",
        }, Restart;
        /// The API also listens on this address, e.g. 127.0.0.1:8787; empty opens no port, and port 0 takes a free one.
        listen: String = String::new(), Rule("a loopback address with a port, or empty"), Restart;
    }
}

/// The state of every handler.
#[derive(Clone)]
pub struct Api {
    pub record: Arc<Record>,
    pub inbound: Inbound,
    /// Asks and watches sessions.
    pub sessions: Sessions,
    /// Takes proposals of changes and decisions on them.
    pub changes: Arc<Changes>,
    pub skills: Arc<crate::reach::skills::Skills>,
    /// Approval requests of calls.
    pub requests: Arc<Requests>,
    /// Make the jails in which git reads the diff of a push.
    pub command_jails: Arc<dyn CommandJails>,
    pub questions: Arc<Questions>,
    /// Replies that people got.
    pub read_replies: ReadReplies,
    /// The connections to MCP servers.
    pub servers: Arc<crate::reach::mcp::Servers>,
    pub models: Arc<Models>,
    /// Sends deliveries over a network.
    pub dispatch: Arc<Dispatch>,
    /// Stops and resumes everything.
    pub stops: EmergencyStop,
    /// The callers and their tokens.
    pub callers: Arc<Callers>,
    /// Facts about the daemon.
    pub about: Arc<About>,
}

/// Facts about the daemon.
pub struct About {
    pub home: Home,
    /// The process that makes jails.
    pub launcher_pid: u32,
    /// The time of the start, in milliseconds since the epoch.
    pub started_at: i64,
    /// The address of the port for webhooks, if it is open.
    pub hooks: Option<SocketAddr>,
    pub head_publisher: crate::upkeep::maintenance::HeadPublisher,
    pub backups: Arc<crate::upkeep::backup::Maker>,
    /// Warnings about lowered guards and other conditions.
    pub warnings: Vec<String>,
    /// Stops the daemon when an operator asks for it, and says if it is stopping.
    pub shutdown: Shutdown,
    /// Reads the settings again.
    pub reload: Arc<dyn Reload>,
}

impl Api {
    /// The state in the record.
    fn state(&self) -> &State {
        &self.record.state
    }

    /// Forgets the cached tokens and has the worker of ended tokens look. Call it after each committed change of people or tokens, so that the next request sees the change.
    fn people_changed(&self) {
        self.callers.tokens.invalidate();
        self.callers.token_changes.notify_one();
    }

    /// Serves the unix socket and the optional port until the host stops. Open requests are answered first.
    ///
    /// # Errors
    /// When a socket breaks.
    pub async fn serve(self, listener: Socket, port: Option<Port>, shutdown: Shutdown) -> std::io::Result<()> {
        let (refusals, read_replies) = (self.callers.refusals.clone(), self.read_replies.clone());
        let connections: Vec<_> = port.iter().map(Port::connections).chain([listener.connections()]).collect();
        let ending = tokio::spawn(tokens::end_due(self.clone(), connections, shutdown.clone()));
        let app = self.app();
        let unix = app.clone().into_make_service_with_connect_info::<auth::Peer>();
        let unix = axum::serve(listener, unix).with_graceful_shutdown(shutdown.stopped()).into_future();
        let served = match port {
            None => unix.await,
            Some(port) => {
                let loopback = app.into_make_service_with_connect_info::<auth::Peer>();
                let loopback = axum::serve(port, loopback).with_graceful_shutdown(shutdown.stopped()).into_future();
                tokio::try_join!(unix, loopback).map(drop)
            }
        };
        ending.abort();
        refusals.flush().await;
        if let Err(error) = read_replies.record().await {
            tracing::warn!(%error, "replies that people got count as unread");
        }
        served
    }

    fn app(self) -> Router {
        routes::router(paths::routes())
            .fallback(|| async { Answer::from(Refusal::new(DenialCode::NotFound, "there is no such path in the API")) })
            .method_not_allowed_fallback(|| async {
                Answer::from(Refusal::new(DenialCode::MethodNotAllowed, "this path does not accept that method"))
            })
            .layer(axum::middleware::from_fn_with_state(self.clone(), auth::require))
            .with_state(self)
    }
}

/// An answer that refuses or fails.
pub struct Answer {
    status: StatusCode,
    failure: Failure,
    /// The code for the ledger, if the answer goes there.
    noted: Option<DenialCode>,
}

impl Answer {
    /// Returns the answer to a refusal that the ledger records, at a bounded rate however often it comes.
    fn noted(refusal: Refusal) -> Self {
        let noted = Some(refusal.code);
        Self { noted, ..Self::from(refusal) }
    }

    /// Answers a denial as [`Self::noted`] answers a refusal.
    fn denied<E: Into<Self>>(denied: Denied<E>) -> Self {
        match denied {
            Denied::Refused(refusal) => Self::noted(refusal),
            Denied::Failed(error) => error.into(),
        }
    }

    /// Returns the answer to a failure of the host. The log has the cause, and the caller gets a sentence.
    fn broken(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed");
        let failure =
            Failure::new(DenialCode::Internal, format!("the host failed: {error}"), "`ironctl logs` has more");
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, failure, noted: None }
    }

    /// Returns the answer for a record that cannot be written now. The request had no effect and can be repeated.
    fn unwritten(error: &dyn std::fmt::Display) -> Self {
        let mut answer = Self::broken(error);
        answer.failure = Failure::new(
            DenialCode::StateUnwritable,
            format!("the host failed: {error}"),
            crate::store::error::Error::UNWRITTEN_HINT,
        );
        answer
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.code.status()).expect("the list holds statuses");
        Self { status, failure: Failure::new(refusal.code, refusal.message, refusal.hint), noted: None }
    }
}

macro_rules! breakdown {
    ($($error:ty),+) => {
        $(impl From<$error> for Answer {
            fn from(error: $error) -> Self {
                Self::broken(&error)
            }
        })+
    };
}
breakdown!(
    ironclaw_state::keys::Error,
    crate::registry::secrets::Error,
    ironclaw_model::Error,
    ironclaw_state::home::Error
);

impl<E: Into<Self>> From<Denied<E>> for Answer {
    fn from(denied: Denied<E>) -> Self {
        match denied {
            Denied::Refused(refusal) => refusal.into(),
            Denied::Failed(error) => error.into(),
        }
    }
}

impl From<crate::store::error::Error> for Answer {
    fn from(error: crate::store::error::Error) -> Self {
        if error.is_unwritten() { Self::unwritten(&error) } else { Self::broken(&error) }
    }
}

impl From<ironclaw_state::Error> for Answer {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::from(crate::store::error::Error::from(error))
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.failure)).into_response();
        if let Some(code) = self.noted {
            response.extensions_mut().insert(auth::Noted(code));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        response
    }
}

/// The result of a handler: JSON or an error answer.
pub type Reply<T> = Result<axum::Json<T>, Answer>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_tells_forbidden_from_too_many_requests() {
        for (code, status) in [
            (DenialCode::PolicyAsksForMore, StatusCode::FORBIDDEN),
            (DenialCode::NotYoursToDecide, StatusCode::FORBIDDEN),
            (DenialCode::ChangesTooMany, StatusCode::TOO_MANY_REQUESTS),
            (DenialCode::ChangeStale, StatusCode::CONFLICT),
            (DenialCode::ChangeEmpty, StatusCode::BAD_REQUEST),
        ] {
            let response = Answer::from(Refusal::new(code, "no")).into_response();
            assert_eq!(response.status(), status, "{code}");
            let retry_after = response.headers().get(RETRY_AFTER).map(HeaderValue::as_bytes);
            let expected = (status == StatusCode::TOO_MANY_REQUESTS).then_some(&b"5"[..]);
            assert_eq!(retry_after, expected, "{code}");
        }
    }
}
