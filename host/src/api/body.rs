//! Request bodies, with bounds on bytes, values, and large bodies in flight.
//!
//! A handler only gets values that strictly match its type. Large bodies are parsed off the async threads. See `api::routes` for the sizes.

use super::{Answer, Api};
use crate::registry::Person;
use crate::store::refusal::Refusal;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Bytes of a request that is not a message.
pub const REQUEST_BYTES_MAX: usize = BODY_BYTES_MAX;

/// Bytes of a text with files, where JSON may escape half of the characters.
pub const TEXT_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// Bytes of a message, which may have the bytes of files in base64.
pub const MESSAGE_BYTES_MAX: usize = 8 * BODY_BYTES_MAX;

/// Values in a request; the largest change has some hundreds.
pub const REQUEST_VALUES_MAX: usize = 8192;

/// A larger body is parsed by a blocking thread, and needs a permit.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Large bodies in flight, for the API and the port for webhooks together.
const LARGE_AT_ONCE_MAX: usize = 8;

/// Large bodies in flight of one person or channel.
const LARGE_OF_ONE_MAX: usize = 2;

/// Time in which a body must arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// The permits for large bodies: few in total, and fewer for each person or channel.
pub struct LargeBodies {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for LargeBodies {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(LARGE_AT_ONCE_MAX)), each: Mutex::default() }
    }
}

impl LargeBodies {
    /// Waits for a permit for `whose`; returns `None` if the body is not large.
    pub async fn permit(&self, whose: &str, bytes: Option<usize>) -> Option<[OwnedSemaphorePermit; 2]> {
        if bytes.is_some_and(|bytes| bytes <= INLINE_BYTES_MAX) {
            return None;
        }
        let own = {
            let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
            // Only entries with permits in use matter.
            each.retain(|_, own| own.available_permits() < LARGE_OF_ONE_MAX || Arc::strong_count(own) > 1);
            let fresh = || Arc::new(Semaphore::new(LARGE_OF_ONE_MAX));
            Arc::clone(each.entry(whose.to_owned()).or_insert_with(fresh))
        };
        // Their own permit first: a wait for it takes no permit from others.
        let own = own.acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some([own, all])
    }
}

/// Parses a text, on a blocking thread if it is long. Not generic, so that it is compiled once for all types of bodies.
///
/// # Errors
/// Returns a sentence about the first mistake.
async fn parse(bytes: Bytes) -> Result<Value, String> {
    let limits = Limits::bytes(bytes.len()).values(REQUEST_VALUES_MAX);
    let parse = move || canonical::parse(&bytes, limits).map_err(|error| error.to_string());
    if limits.bytes_max <= INLINE_BYTES_MAX {
        return parse();
    }
    let parsing = tokio::task::spawn_blocking(parse);
    parsing.await.unwrap_or_else(|_| Err("it could not be read".to_owned()))
}

fn shaped<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| canonical::Error::Shape(canonical::said(&error)).to_string())
}

/// The body of a request, strictly of this type. Other content is refused in the API's own words.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Api> for Body<T> {
    type Rejection = Answer;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Answer> {
        // The permit is held until the value has its type.
        let RawBody { bytes, _permit } = RawBody::from_request(request, api).await?;
        parse(bytes).await.and_then(shaped).map(Body).map_err(malformed)
    }
}

/// The body of a request, as its bytes. It holds the permit of a large body.
pub struct RawBody {
    /// The bytes.
    pub bytes: Bytes,
    _permit: Option<[OwnedSemaphorePermit; 2]>,
}

impl FromRequest<Api> for RawBody {
    type Rejection = Answer;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Answer> {
        let whose =
            request.extensions().get::<Person>().map(|person| format!("person:{}", person.id)).unwrap_or_default();
        let says = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let permit = api.callers.large.permit(&whose, says).await;
        let read_body = timeout(BODY_TIME_MAX, Bytes::from_request(request, api)).await;
        let late = |_| malformed(format!("the body did not arrive within {} seconds", BODY_TIME_MAX.as_secs()));
        let bytes = read_body.map_err(late)?.map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let words = "the request is larger than this path accepts";
                Answer::from(Refusal::new(DenialCode::RequestTooLarge, words))
            }
            _ => malformed(error.body_text()),
        })?;
        Ok(Self { bytes, _permit: permit })
    }
}

fn malformed(what: String) -> Answer {
    Answer::from(Refusal::new(DenialCode::RequestMalformed, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_bodies_of_one_person_wait_for_each_other() {
        let large = LargeBodies::default();
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
        let error = parse(text.into()).await.expect_err("refused");
        assert!(error.contains("too many values"), "{error}");
        assert_eq!(shaped(parse("[1,2]".into()).await.expect("read")), Ok(vec![1, 2]));
    }
}
