//! Sorts the messages of a server: answers to open requests, progress of open calls, requests that get a refusal, and the rest, which
//! is dropped.
//!
//! Never answers a request of a server with anything but "method not found", `ping` apart. See [`crate::wire`].

use crate::Error;
use crate::answer::Asked;
use crate::message::Unread;
use crate::progress::{Progress, Watched};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The code of JSON-RPC for an unknown method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The code of the host for an answer that it cannot read. No server uses it: JSON-RPC reserves the codes that a server may send.
pub(crate) const UNREADABLE: i32 = i32::MIN;
/// The method of a request for a page of a listing.
const LISTING: &str = "tools/list";
/// Requests of a server that are kept to be shown.
const ASKED_MAX: usize = 4;

/// The state that a connection and its client share.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// The requests without an answer, by id.
    open: Mutex<HashMap<i64, Open>>,
    has_changed: AtomicBool,
    asked: Mutex<Vec<Asked>>,
    end: OnceLock<Error>,
    /// Bytes of dropped messages since the last request.
    dropped_bytes: AtomicUsize,
}

/// A request without an answer.
#[derive(Debug)]
struct Open {
    method: String,
    watched: Option<Watched>,
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
    pub(crate) fn open(&self, id: i64, method: &str, watched: Option<Watched>) {
        let mut open = locked(&self.open);
        if method == "initialize" {
            open.clear();
        }
        open.insert(id, Open { method: method.to_owned(), watched });
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
            self.drop_bytes(bytes);
        }
        sorted
    }

    /// Makes the answer to an open request of a message that cannot be read; `None` if it answers no open request.
    pub(crate) fn unreadable(&self, unread: Unread, bytes: usize) -> Option<Response> {
        let Unread { id, why, page } = unread;
        if let Some(response) = id.and_then(|id| self.page(id, page)) {
            return Some(response);
        }
        let open = id.and_then(|id| Some((id, locked(&self.open).remove(&id)?)));
        let Some((id, Open { method, .. })) = open else {
            self.drop_bytes(bytes);
            return None;
        };
        Some(Response { id, method, content: Err(json!({"code": UNREADABLE, "message": why})) })
    }

    /// Makes the answer to an open request for a page of a listing of the entries that can be read; `None` if that is not open.
    pub(crate) fn page(&self, id: i64, page: Option<Value>) -> Option<Response> {
        let (page, mut open) = (page?, locked(&self.open));
        open.get(&id).filter(|open| open.method == LISTING)?;
        let Open { method, .. } = open.remove(&id)?;
        Some(Response { id, method, content: Ok(page) })
    }

    /// Counts a message that is dropped.
    pub(crate) fn drop_bytes(&self, bytes: usize) {
        self.dropped_bytes.fetch_add(bytes, Ordering::Relaxed);
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
                match (method, message.get("params")) {
                    ("notifications/tools/list_changed", _) => self.has_changed.store(true, Ordering::Release),
                    ("notifications/progress", Some(report)) => self.record_progress(report),
                    _ => {}
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
                    Some((id, Open { method, .. })) => Sorted::Response(Response { id, method, content }),
                    None => Sorted::Dropped,
                }
            }
        }
    }

    /// Passes a report on, unless its token is not that of an open call whose caller reads reports.
    fn record_progress(&self, report: &Value) {
        let open = locked(&self.open);
        let token = report.get("progressToken").and_then(number);
        let watched = open.values().filter_map(|open| open.watched.as_ref()).find(|of| Some(of.token) == token);
        if let (Some(watched), Some(progress)) = (watched, Progress::read(report)) {
            watched.newest.send_replace(Some(progress));
        }
    }

    fn reply(&self, method: &str, params: Option<&Value>, id: Value) -> Value {
        if method == "ping" {
            return json!({"jsonrpc": "2.0", "id": id, "result": {}});
        }
        let mut asked = locked(&self.asked);
        if asked.len() < ASKED_MAX {
            asked.push(Asked::new("", method, params));
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
    use tokio::sync::watch;

    fn answers(traffic: &Traffic, message: Value) -> Option<i64> {
        match traffic.sort(message, 10) {
            Sorted::Response(response) => Some(response.id),
            Sorted::Reply(_) | Sorted::Dropped => None,
        }
    }

    #[test]
    fn an_answer_counts_once_and_by_its_id() {
        let traffic = Traffic::default();
        traffic.open(1, "tools/call", None);
        traffic.open(2, "tools/call", None);
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
        traffic.open(0, "server/discover", None);
        traffic.open(1, "initialize", None);
        assert_eq!(answers(&traffic, json!({"id": 0, "result": {}})), None);
        assert_eq!(answers(&traffic, json!({"id": 1, "result": {}})), Some(1));
    }

    #[test]
    fn progress_counts_by_its_token_until_the_answer() {
        let traffic = Traffic::default();
        let (one, two) = (watch::Sender::new(None), watch::Sender::new(None));
        for (id, token, newest) in [(1, 10, &one), (2, 20, &two)] {
            traffic.open(id, "tools/call", Some(Watched { token, newest: newest.clone() }));
        }
        traffic.open(3, "tools/call", None);
        let report = |token: Value, params: Value| {
            let mut params = params;
            params["progressToken"] = token;
            assert_eq!(answers(&traffic, json!({"method": "notifications/progress", "params": params})), None);
        };
        let words = |newest: &watch::Sender<Option<Progress>>| {
            newest.borrow().as_ref().map(|newest| (newest.progress, newest.total, newest.message.clone()))
        };
        // Tokens of no call, the id of a call, and reports without a number.
        for token in [json!(30), json!(1), json!("x"), json!(null)] {
            report(token, json!({"progress": 1}));
        }
        for bad in [json!({}), json!({"progress": "1"}), json!({"message": "words"})] {
            report(json!(10), bad);
        }
        assert_eq!((words(&one), words(&two)), (None, None));

        // A flood leaves the newest report.
        for step in 1..=100_000 {
            report(json!(10), json!({"progress": step, "total": 100_000, "message": "step"}));
        }
        report(json!("20"), json!({"progress": 0.5, "message": "ü".repeat(1_000_000)}));
        assert_eq!(words(&one), Some((100_000.0, Some(100_000.0), Some("step".to_owned()))));
        assert_eq!(words(&two), Some((0.5, None, None)), "a text over the bound is left out");

        // After the answer, and after the cancellation.
        assert_eq!(answers(&traffic, json!({"id": 1, "result": {}})), Some(1));
        traffic.forget(2);
        for token in [10, 20] {
            report(json!(token), json!({"progress": 7}));
        }
        assert_eq!((words(&one).unwrap().0, words(&two).unwrap().0), (100_000.0, 0.5));
    }
}
