//! The operator's API: HTTP on a unix socket, with the token of a person on every request.
//!
//! Only translates between the types of the other modules and those of the wire; it decides nothing. See `api::auth`.

mod abilities;
mod agents;
mod allowances;
mod answer;
mod attachments;
mod audit;
mod auth;
mod backup;
mod body;
mod callers;
mod calls;
mod changes;
mod channels;
mod chat;
mod configuration;
mod connections;
pub mod console;
mod console_state;
mod dead_letters;
mod destinations;
mod explanation;
mod files;
mod forgotten;
mod groups;
mod handler;
mod health;
pub mod hooks;
mod large_bodies;
mod mcp;
mod memory;
mod models;
mod named;
mod openapi;
mod page;
mod paths;
mod people;
pub mod port;
mod refusals;
mod replies;
mod report;
mod routes;
mod schedules;
mod scope;
mod secrets;
mod sessions;
mod settings;
#[cfg(test)]
mod shapes;
mod skills;
mod small_contexts;
mod state;
mod status;
mod stops;
mod streaming;
pub mod tls;
mod tokens;
mod transcript;
mod usage;
mod waiting;

pub use callers::Callers;
pub use chat::read_replies::ReadReplies;
pub use console_state::Console;
pub use large_bodies::LargeBodies;
pub use state::{About, Api, Reload, Reloading};

use answer::Answer;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use ironclaw_operator::{DenialCode, ZONE_HEADER};
use ironclaw_store::refusal::Refusal;
use ironclaw_store::shutdown::Shutdown;
use port::{Port, Socket};
use std::path::PathBuf;
use std::sync::Arc;

ironclaw_operator::settings! {
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

impl Api {
    /// Serves the unix socket and the optional port until the host stops. Open requests are answered first.
    ///
    /// # Errors
    /// When a socket breaks.
    pub async fn serve(self, listener: Socket, port: Option<Port>, shutdown: Shutdown) -> std::io::Result<()> {
        let (refusals, read_replies) = (self.callers.refusals.clone(), self.read_replies.clone());
        let connections: Vec<_> = port.iter().map(Port::connections).chain([listener.connections()]).collect();
        let ending = tokio::spawn(tokens::end_due(self.clone(), connections, shutdown.clone()));
        console::open_at_start(&self).await;
        let served_console = Arc::clone(&self.console);
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
        served_console.end().await;
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
            .layer(axum::middleware::map_response_with_state(self.clone(), with_zone))
            .with_state(self)
    }
}

/// Adds the time zone of the host, in which a client shows times.
async fn with_zone(State(api): State<Api>, mut response: Response) -> Response {
    let settings = api.gateway.now();
    if let Ok(zone) = HeaderValue::from_str(settings.host_policy.zone.zone.name()) {
        response.headers_mut().insert(ZONE_HEADER, zone);
    }
    response
}
