//! A message on its way to a server, and the two ends of a connection.
//!
//! Never knows the protocol beyond JSON-RPC. See [`crate::streams`] and [`crate::http`].

use crate::Error;
use crate::progress::{Progress, Watched};
use crate::traffic::{Response, Traffic};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// Messages that wait between the protocol and a connection.
pub(crate) const QUEUED_MESSAGES_MAX: usize = 16;

/// A message to the server.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) message: Value,
    /// Gets the outcome: over streams when the message is written, over HTTP when the exchange ended.
    pub(crate) sent: oneshot::Sender<Result<(), Error>>,
    /// Gets the reports of the server about this request, if its caller reads them.
    pub(crate) newest: Option<watch::Sender<Option<Progress>>>,
}

/// The host's end of a connection. Dropping it ends the connection.
pub(crate) struct Wire {
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) incoming: mpsc::Receiver<Response>,
    pub(crate) traffic: Arc<Traffic>,
    /// The tasks that end at once when the connection is dropped.
    #[expect(dead_code, reason = "dropping it ends the tasks")]
    pub(crate) tasks: JoinSet<()>,
}

impl Outgoing {
    /// Returns the id of a request, or `None` for a notification or a reply.
    pub(crate) fn request_id(&self) -> Option<i64> {
        self.method()?;
        self.message.get("id")?.as_i64()
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.message.get("method")?.as_str()
    }

    /// Returns the token of a request whose caller reads reports.
    pub(crate) fn watched(&self) -> Option<Watched> {
        let token = self.message.pointer("/params/_meta/progressToken")?.as_i64()?;
        Some(Watched { token, newest: self.newest.clone()? })
    }

    /// Returns the id of the request that this notification cancels.
    pub(crate) fn cancels(&self) -> Option<i64> {
        if self.method() != Some("notifications/cancelled") {
            return None;
        }
        self.message.pointer("/params/requestId")?.as_i64()
    }
}
