//! Reads a request's body: so many bytes for its path, so many values, and large ones few at a time.
//!
//! Never gives a handler what is not strictly of its shape, and never reads a large body beside the connections of others.
//! Next: `api::routes`, which says how large a body may be.

use super::{Answer, Api};
use crate::refusal::Refusal;
use crate::registry::Person;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Bytes of a request that is no message.
pub const REQUEST_BYTES_MAX: usize = BODY_BYTES_MAX;

/// Bytes of a message: its text with its files, half of whose characters JSON escapes.
pub const MESSAGE_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// Values in a request: the largest change has some hundreds.
pub const REQUEST_VALUES_MAX: usize = 8192;

/// A body that is larger is read by a thread of its own, and few of them are at once.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Large bodies that are read at once, by the API and the port for webhooks together.
const LARGE_AT_ONCE_MAX: usize = 8;

/// Large bodies of one person, or one channel, that are read at once.
const LARGE_OF_ONE_MAX: usize = 2;

/// A body must be there within this time.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// Who may read a large body now: few at once, and of each person or channel fewer.
pub struct Large {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for Large {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(LARGE_AT_ONCE_MAX)), each: Mutex::default() }
    }
}

impl Large {
    /// Waits until one more of `whose` may be read; gives nothing for a body that is not large.
    pub async fn permit(&self, whose: &str, bytes: Option<usize>) -> Option<[OwnedSemaphorePermit; 2]> {
        if bytes.is_some_and(|bytes| bytes <= INLINE_BYTES_MAX) {
            return None;
        }
        let own = {
            let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
            // Only those who read something now have an entry that means anything.
            each.retain(|_, own| own.available_permits() < LARGE_OF_ONE_MAX || Arc::strong_count(own) > 1);
            let fresh = || Arc::new(Semaphore::new(LARGE_OF_ONE_MAX));
            Arc::clone(each.entry(whose.to_owned()).or_insert_with(fresh))
        };
        // Their own first: whoever waits for it takes nothing from others.
        let own = own.acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some([own, all])
    }
}

/// Reads a text strictly into `T`, in a thread of its own where it is long.
///
/// # Errors
/// What is wrong with it.
pub async fn read<T: DeserializeOwned + Send + 'static>(bytes: Bytes) -> Result<T, String> {
    let limits = Limits::bytes(bytes.len()).values(REQUEST_VALUES_MAX);
    let read = move || canonical::from_slice(&bytes, limits).map_err(|error| error.to_string());
    if limits.bytes_max <= INLINE_BYTES_MAX {
        return read();
    }
    let reading = tokio::task::spawn_blocking(read);
    reading.await.unwrap_or_else(|_| Err("it could not be read".to_owned()))
}

/// A request's body, strictly of this shape; anything else is answered in the API's own words.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Api> for Body<T> {
    type Rejection = Answer;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Answer> {
        let whose =
            request.extensions().get::<Person>().map(|person| format!("person:{}", person.id)).unwrap_or_default();
        let says = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let _permit = api.callers.large.permit(&whose, says).await;
        let malformed = |what: String| Answer::from(Refusal::new(DenialCode::RequestMalformed, what));
        let read_body = timeout(BODY_TIME_MAX, Bytes::from_request(request, api)).await;
        let late = |_| malformed(format!("the body did not come within {} seconds", BODY_TIME_MAX.as_secs()));
        let bytes = read_body.map_err(late)?.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let words = "the request is larger than this path takes";
                Answer::from(Refusal::new(DenialCode::RequestTooLarge, words))
            }
            _ => malformed(error.body_text()),
        })?;
        read(bytes).await.map(Body).map_err(malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_bodies_of_one_person_wait_for_each_other() {
        let large = Large::default();
        assert!(large.permit("bob", Some(INLINE_BYTES_MAX)).await.is_none(), "a small one waits for nothing");
        let mut held = Vec::new();
        for _ in 0..LARGE_OF_ONE_MAX {
            held.push(large.permit("bob", None).await.expect("one of his"));
        }
        let mut third = Box::pin(large.permit("bob", None));
        assert!(third.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
        let others = large.permit("ann", Some(1 << 20)).await.expect("another person's");
        drop(held.pop());
        assert!(third.await.is_some() && others.len() == 2);
    }

    #[tokio::test]
    async fn body_with_too_many_values_is_refused() {
        let text = format!("{{\"text\":\"x\",\"y\":[{}0]}}", "{\"a\":0},".repeat(32 * 1024));
        let error = read::<serde_json::Value>(text.into()).await.expect_err("refused");
        assert!(error.contains("too many values"), "{error}");
        assert_eq!(read::<Vec<u8>>("[1,2]".into()).await, Ok(vec![1, 2]));
    }
}
