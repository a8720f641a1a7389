//! Sorts the messages of a server: answers to open requests, requests that get a refusal, and the rest, which is dropped.
//!
//! Never answers a request of a server with anything but "method not found", `ping` apart. See [`crate::wire`].

use crate::Error;
use crate::answer::Asked;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The code of JSON-RPC for an unknown method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// Requests of a server that are kept to be shown.
const ASKED_MAX: usize = 4;

/// The state that a connection and its client share.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// The methods of the requests without an answer, by id.
    open: Mutex<HashMap<i64, String>>,
    has_changed: AtomicBool,
    asked: Mutex<Vec<Asked>>,
    end: OnceLock<Error>,
    /// Bytes of dropped messages since the last request.
    dropped_bytes: AtomicUsize,
}

/// An answer to an open request.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) id: i64,
    /// The method of the request.
    pub(crate) method: String,
    /// The result, or the error object.
    pub(crate) content: Result<Value, Value>,
}

/// A message of the server, sorted.
#[derive(Debug)]
pub(crate) enum Sorted {
    Response(Response),
    /// What the server gets back.
    Reply(Value),
    Dropped,
}

impl Traffic {
    /// Records a request. Also drops the open requests before an `initialize`: their answers come too late.
    pub(crate) fn open(&self, id: i64, method: &str) {
        let mut open = locked(&self.open);
        if method == "initialize" {
            open.clear();
        }
        open.insert(id, method.to_owned());
        self.dropped_bytes.store(0, Ordering::Relaxed);
    }

    /// Forgets a request, so that its answer is dropped.
    pub(crate) fn forget(&self, id: i64) {
        locked(&self.open).remove(&id);
    }

    /// Sorts a message of `bytes` bytes.
    pub(crate) fn sort(&self, message: Value, bytes: usize) -> Sorted {
        let sorted = self.sorted(message);
        if !matches!(sorted, Sorted::Response(_)) {
            self.dropped_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        sorted
    }

    /// Returns the bytes that were dropped since the last request.
    pub(crate) fn dropped_bytes(&self) -> usize {
        self.dropped_bytes.load(Ordering::Relaxed)
    }

    fn sorted(&self, mut message: Value) -> Sorted {
        let id = message.get("id").cloned().filter(|id| !id.is_null());
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => {
                let reply = self.reply(method, message.get("params"), id);
                Sorted::Reply(reply)
            }
            (Some(method), None) => {
                if method == "notifications/tools/list_changed" {
                    self.has_changed.store(true, Ordering::Release);
                }
                Sorted::Dropped
            }
            (None, id) => {
                let mut open = locked(&self.open);
                // An error without an id can only be an answer if one request is open.
                let id = match id {
                    Some(id) => number(&id),
                    None if open.len() == 1 && message.get("error").is_some() => open.keys().next().copied(),
                    None => None,
                };
                let content = match (message.get_mut("result"), id) {
                    (Some(result), Some(_)) => Ok(result.take()),
                    (None, Some(_)) => match message.get_mut("error") {
                        Some(error) => Err(error.take()),
                        None => return Sorted::Dropped,
                    },
                    (_, None) => return Sorted::Dropped,
                };
                match id.and_then(|id| Some((id, open.remove(&id)?))) {
                    Some((id, method)) => Sorted::Response(Response { id, method, content }),
                    None => Sorted::Dropped,
                }
            }
        }
    }

    fn reply(&self, method: &str, params: Option<&Value>, id: Value) -> Value {
        if method == "ping" {
            return json!({"jsonrpc": "2.0", "id": id, "result": {}});
        }
        let mut asked = locked(&self.asked);
        if asked.len() < ASKED_MAX {
            asked.push(Asked::of("", method, params));
        }
        let error = json!({"code": METHOD_NOT_FOUND, "message": "this client offers no such method"});
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }

    /// Forgets the requests of the server during earlier calls, unless one of these calls is still open.
    pub(crate) fn begin_call(&self) {
        if locked(&self.open).is_empty() {
            locked(&self.asked).clear();
        }
    }

    /// Returns the requests of the server during the open calls and the last one. They were refused.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        locked(&self.asked).clone()
    }

    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    pub(crate) fn clear_changed(&self) {
        self.has_changed.store(false, Ordering::Release);
    }

    /// Records the reason of the end of the connection; the first one counts.
    pub(crate) fn end(&self, error: Error) {
        let _ = self.end.set(error);
    }

    /// Returns the reason of the end, or `None` while the connection is open.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.end.get().cloned()
    }
}

fn number(id: &Value) -> Option<i64> {
    id.as_i64().or_else(|| id.as_str()?.parse().ok())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(traffic: &Traffic, message: Value) -> Option<i64> {
        match traffic.sort(message, 10) {
            Sorted::Response(response) => Some(response.id),
            Sorted::Reply(_) | Sorted::Dropped => None,
        }
    }

    #[test]
    fn an_answer_counts_once_and_by_its_id() {
        let traffic = Traffic::default();
        traffic.open(1, "tools/call");
        traffic.open(2, "tools/call");
        assert_eq!(answers(&traffic, json!({"id": 3, "result": {}})), None);
        assert_eq!(answers(&traffic, json!({"error": {"code": 1}})), None);
        assert_eq!(answers(&traffic, json!({"id": "2", "result": {}})), Some(2));
        assert_eq!(answers(&traffic, json!({"id": 2, "result": {}})), None);
        assert_eq!(answers(&traffic, json!({"id": 1})), None);
        assert_eq!(answers(&traffic, json!({"id": null, "error": {"code": 1}})), Some(1));
        assert_eq!(traffic.dropped_bytes(), 40);
    }

    #[test]
    fn initialize_drops_the_probe_before_it() {
        let traffic = Traffic::default();
        traffic.open(0, "server/discover");
        traffic.open(1, "initialize");
        assert_eq!(answers(&traffic, json!({"id": 0, "result": {}})), None);
        assert_eq!(answers(&traffic, json!({"id": 1, "result": {}})), Some(1));
    }
}
