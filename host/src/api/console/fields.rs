//! The fields of a posted form, and its files.
//!
//! A form of a page has the token of its session, and is refused without it. Never guesses at bytes that are no text. See [`super::guard`].

use super::visit::Visit;
use crate::api::body::BODY_TIME_MAX;
use crate::api::handler::{Answer, Api};
use axum::body::Bytes;
use axum::extract::multipart::MultipartError;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::quoted;
use percent_encoding::percent_decode;
use std::collections::HashMap;
use subtle::ConstantTimeEq;
use tokio::time::timeout;

/// The share of all browsers without a session in the large bodies at once.
const STRANGERS: &str = "console";

/// Fields of one form.
const FIELDS_MAX: usize = 64;

/// A file of a form.
pub struct File {
    pub name: String,
    pub bytes: Bytes,
}

/// The fields of a form, each at most once, and its files.
#[derive(Default)]
pub struct Fields {
    values: HashMap<String, String>,
    pub files: Vec<File>,
}

impl Fields {
    /// Returns a field; empty without it.
    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Takes a field out; empty without it.
    pub fn take(&mut self, name: &str) -> String {
        self.values.remove(name).unwrap_or_default()
    }

    /// Returns a field, or `None` if it is absent or empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    async fn read(request: Request, api: &Api) -> Result<Self, Answer> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/x-www-form-urlencoded" => {
                let bytes = Bytes::from_request(request, api).await.map_err(|error| too_large(&error.body_text()))?;
                Self::parse(&bytes)
            }
            "multipart/form-data" => Self::parts(request, api).await,
            other => Err(malformed(format!("a form has another type of content than {}", quoted(other)))),
        }
    }

    /// Reads the fields of a form that is not in parts.
    pub fn parse(bytes: &[u8]) -> Result<Self, Answer> {
        let mut fields = Self::default();
        for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let name = decoded(&pair[..end]).map_err(|()| malformed("the form has a field without a readable name"))?;
            let value = decoded(pair.get(end + 1..).unwrap_or_default()).map_err(|()| malformed(not_text(&name)))?;
            fields.put(&name, value)?;
        }
        Ok(fields)
    }

    async fn parts(request: Request, api: &Api) -> Result<Self, Answer> {
        let mut fields = Self::default();
        let mut parts = Multipart::from_request(request, api).await.map_err(|error| malformed(error.body_text()))?;
        while let Some(part) = parts.next_field().await.map_err(unread)? {
            let (name, file) = (part.name().unwrap_or_default().to_owned(), part.file_name().map(str::to_owned));
            let bytes = part.bytes().await.map_err(unread)?;
            match file {
                // A browser sends an empty file for a field without one.
                Some(file) if file.is_empty() && bytes.is_empty() => {}
                Some(file) => fields.files.push(File { name: file, bytes }),
                None => {
                    let text = String::from_utf8(bytes.into()).map_err(|_| malformed(not_text(&name)))?;
                    fields.put(&name, text)?;
                }
            }
        }
        Ok(fields)
    }

    fn put(&mut self, name: &str, value: String) -> Result<(), Answer> {
        if value.contains('\0') {
            return Err(malformed(not_text(name)));
        }
        if self.values.len() == FIELDS_MAX || self.values.insert(name.to_owned(), value).is_some() {
            return Err(malformed(format!("the form has the field {} twice, or too many fields", quoted(name))));
        }
        Ok(())
    }
}

/// Decodes a part of a form (`application/x-www-form-urlencoded` of the URL Standard), strictly as UTF-8.
fn decoded(part: &[u8]) -> Result<String, ()> {
    let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    String::from_utf8(percent_decode(&spaced).collect()).map_err(drop)
}

fn not_text(name: &str) -> String {
    format!("the field {} is not readable as UTF-8 text", quoted(name))
}

fn malformed(message: impl Into<String>) -> Answer {
    Refusal::new(DenialCode::RequestMalformed, message).hint("go back, and send the form of the page again").into()
}

/// Returns the refusal of parts that are cut off or too large.
fn unread(error: MultipartError) -> Answer {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(&error.body_text()),
        _ => malformed(error.body_text()),
    }
}

fn too_large(why: &str) -> Answer {
    let refusal = Refusal::new(DenialCode::RequestTooLarge, format!("the form was not read: {why}"));
    refusal.hint("go back, and send less at once").into()
}

impl FromRequest<Api> for Fields {
    type Rejection = Answer;

    /// Reads the form of a request. Refuses another type of content, a field that comes twice or is no text, and a form over its bound.
    async fn from_request(request: Request, api: &Api) -> Result<Self, Answer> {
        let whose = request.extensions().get::<Visit>();
        let whose = whose.map_or_else(|| STRANGERS.to_owned(), |visit| format!("person:{}", visit.caller.person.id));
        let says = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let _permit = api.callers.large.permit(&whose, says).await;
        let read = timeout(BODY_TIME_MAX, Self::read(request, api)).await;
        read.unwrap_or_else(|_| Err(malformed("the form did not arrive in time")))
    }
}

/// A form that a page of the caller's own session posted.
pub struct Posted {
    pub visit: Visit,
    pub fields: Fields,
}

impl FromRequest<Api> for Posted {
    type Rejection = Answer;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Answer> {
        let visit = request.extensions().get::<Visit>().cloned();
        let visit = visit.ok_or_else(super::visit::missing)?;
        let fields = Fields::from_request(request, api).await?;
        if !bool::from(fields.get("csrf").as_bytes().ct_eq(visit.form_token.as_bytes())) {
            let refusal = Refusal::new(DenialCode::OriginForeign, "the form does not belong to this session");
            return Err(Answer::noted(refusal.hint("open the page again, and repeat the step there")));
        }
        Ok(Self { visit, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_that_is_twice_or_no_text_is_refused() {
        let read = |text: &str| Fields::parse(text.as_bytes()).map_err(|answer| answer.failure.error.code);
        let fields = read("text=a%20b+c%2B&reason=&x=%C3%A9%EF%BF%BD&alone").unwrap_or_else(|code| panic!("{code}"));
        assert_eq!((fields.get("text"), fields.get("x"), fields.given("reason")), ("a b c+", "é\u{fffd}", None));
        for wrong in ["a=1&a=2", "a=%FF%FE", "a=%00", "a=1&%61=2"] {
            assert_eq!(read(wrong).err().as_deref(), Some("request_malformed"), "{wrong}");
        }
        let many: Vec<String> = (0..=FIELDS_MAX).map(|number| format!("f{number}=1")).collect();
        assert!(read(&many.join("&")).is_err());
    }
}
