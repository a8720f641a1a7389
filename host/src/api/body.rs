//! Request bodies, with bounds on bytes and values. See `api::large_bodies` for those in flight.
//!
//! A handler only gets values that strictly match its type. Large bodies are parsed off the async threads. See `api::routes` for the sizes.

use super::answer::Answer;
use super::large_bodies::INLINE_BYTES_MAX;
use super::state::Api;
use crate::registry::Person;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::seam::limits::BODY_BYTES_MAX;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::json;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// Bytes of a request that is not a message.
pub const REQUEST_BYTES_MAX: usize = BODY_BYTES_MAX;

/// Bytes of a text with files, where JSON may escape half of the characters.
pub const TEXT_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

/// Bytes of a message, which may have the bytes of files in base64.
pub const MESSAGE_BYTES_MAX: usize = 8 * BODY_BYTES_MAX;

/// Values in a request; the largest change has some hundreds.
pub const REQUEST_VALUES_MAX: usize = 8192;

/// Time in which a body must arrive.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(30);

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
    json::from_value(value).map_err(|error| canonical::Error::Shape(canonical::said(&error)).to_string())
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
    use ironclaw_contract::canonical::Digest;
    use ironclaw_operator::Decision;

    #[tokio::test]
    async fn body_with_too_many_values_is_refused() {
        let text = format!("{{\"text\":\"x\",\"y\":[{}0]}}", "{\"a\":0},".repeat(32 * 1024));
        let error = parse(text.into()).await.expect_err("refused");
        assert!(error.contains("too many values"), "{error}");
        assert_eq!(shaped(parse("[1,2]".into()).await.expect("read")), Ok(vec![1, 2]));
        let list = format!("[\"{}\"]", Digest::of(b"page"));
        shaped::<Decision>(parse(list.into()).await.expect("read")).expect_err("a list names no field");
    }
}
