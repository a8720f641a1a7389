//! The progress that a server reports during a call.
//!
//! Keeps the newest report alone, with a bounded text, so that a flood of reports needs no memory. See [`crate::traffic`].

use serde_json::Value;
use tokio::sync::watch;

/// Bytes of the text of a report. A longer one is left out: a cut could leave a part of a secret that the host then does not find.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A report of a server about a running call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The work that is done, in a unit of the server.
    pub progress: f64,
    /// The whole work, if the server knows it.
    pub total: Option<f64>,
    /// The words of the server, at most 4,096 bytes. Unchanged: they can have invisible characters.
    pub message: Option<String>,
}

/// The token of a call, and the place of its newest report.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) token: i64,
    pub(crate) newest: watch::Sender<Option<Progress>>,
}

impl Progress {
    /// Reads the parameters of a report; `None` without a number.
    pub(crate) fn read(params: &Value) -> Option<Self> {
        let message = params.get("message").and_then(Value::as_str);
        Some(Self {
            progress: params.get("progress")?.as_f64()?,
            total: params.get("total").and_then(Value::as_f64),
            message: message.filter(|text| text.len() <= MESSAGE_BYTES_MAX).map(str::to_owned),
        })
    }
}
