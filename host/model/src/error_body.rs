//! The parser of error answers: the status, the known words of servers, and the requested wait.
//!
//! Never returns a provider's words except as a detail for the operator. See [`crate::fault`].

use super::context_size;
use super::fault::Fault;
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::time::Duration;

/// The subject of a refusal after which a request with other options may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaint {
    /// The server does not know the option for the usage of a stream.
    Usage,
    /// The server limits the output with another field.
    LimitField,
    /// The limit on the output is too large for the model.
    LimitSize,
}

/// The body of an error: words to recognise, and words to show.
#[derive(Debug, Default)]
pub struct ErrorBody {
    /// Type, code and message, in lower case.
    recognised: String,
    pub words: String,
    /// The status in the body itself.
    status: Option<u16>,
}

impl ErrorBody {
    /// Parses the body of an error answer; it may have any content.
    pub fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(body) => Self::from_json(&body),
            Err(_) => {
                let words = String::from_utf8_lossy(body).into_owned();
                Self { recognised: words.to_lowercase(), words, status: None }
            }
        }
    }

    /// Returns the error in this JSON, if there is one. Servers also send errors with status 200 or within a stream.
    pub fn in_answer(body: &Value) -> Option<Self> {
        let error = body.get("error").filter(|error| !error.is_null())?;
        (error.is_object() || error.is_string()).then(|| Self::from_json(body))
    }

    fn from_json(body: &Value) -> Self {
        // Most servers wrap the error in `error`; Mistral and some gateways do not.
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let message = [&error["message"], error, &body["message"], &body["detail"], &error["detail"]];
        let mut words = message.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned();
        // llama.cpp has the number beside its words.
        if let Some(tokens) = error["n_ctx"].as_u64() {
            words += &format!(" (n_ctx: {tokens})");
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
        let (kind, code) = (text(&error["type"]), text(&error["code"]));
        let named = [&error["code"], &error["status"], &body["status"]].into_iter().find_map(Value::as_u64);
        let status = named.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status));
        let status = status.or(match kind.as_str() {
            "invalid_request_error" => Some(400),
            "authentication_error" => Some(401),
            "permission_error" => Some(403),
            "not_found_error" => Some(404),
            "request_too_large" => Some(413),
            "rate_limit_error" => Some(429),
            "overloaded_error" => Some(529),
            _ => None,
        });
        Self { recognised: format!("{kind} {code} {}", words.to_lowercase()), words, status }
    }

    /// Returns the fault of an error answer with status 200.
    pub fn fault_inside(&self, has_key: bool) -> Fault {
        self.fault(self.status.unwrap_or(500), None, has_key)
    }

    /// Returns the fault of an error answer with this status.
    pub fn fault(&self, status: u16, retry_after: Option<Duration>, has_key: bool) -> Fault {
        // First the errors whose status is unclear or wrong.
        if self.has(&[
            "does not support tools",
            "support tool use",
            "requires --jinja",
            "requires --enable-auto-tool-choice",
        ]) {
            return Fault::NoTools;
        }
        if self.has(&[
            "insufficient_quota",
            "credit balance is too low",
            "insufficient balance",
            "insufficient credits",
        ]) {
            return Fault::NoCredit;
        }
        if context_size::is_refusal(&self.recognised) {
            return Fault::ContextTooLong;
        }
        match status {
            300..=399 => Fault::Redirected,
            401 | 403 if has_key => Fault::KeyRefused,
            401 | 403 => Fault::KeyWanted,
            402 => Fault::NoCredit,
            404 => Fault::ModelUnknown,
            413 => Fault::ContextTooLong,
            429 => Fault::RateLimited { retry_after },
            503 | 529 => Fault::Overloaded { retry_after },
            // By definition, 408 and 409 are transient, unlike the other 4xx.
            408 | 409 | 500..=599 => Fault::ServerError { status, retry_after },
            _ if self.has(&["model_not_found", "is not a valid model", "invalid model", "model not found"]) => {
                Fault::ModelUnknown
            }
            _ => Fault::BadRequest(status),
        }
    }

    /// Returns whether the error is about the option for the usage of a stream, which older servers do not know.
    pub fn complains_of_usage(&self) -> bool {
        self.has(&["stream_options", "include_usage"])
    }

    /// Returns the complaint about the limit on the output, if there is one.
    pub fn limit_complaint(&self) -> Option<Complaint> {
        if !self.has(&["max_tokens", "max_completion_tokens"]) {
            None
        } else if self.has(&["unsupported", "not supported", "unrecognized", "instead"]) {
            Some(Complaint::LimitField)
        } else {
            Some(Complaint::LimitSize)
        }
    }

    fn has(&self, any: &[&str]) -> bool {
        any.iter().any(|words| self.recognised.contains(words))
    }
}

/// Returns the wait that an answer requests, in seconds or until a date.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.trim().parse::<u32>().ok()) {
        return Some(Duration::from_millis(u64::from(ms)));
    }
    let asked = text("retry-after")?.trim();
    if let Ok(seconds) = asked.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(asked).ok()?;
    // A date in the past means no wait.
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_of_known_servers_are_recognised() {
        let read = |status: u16, body: &str| ErrorBody::read(body.as_bytes()).fault(status, None, true);
        for (status, body, fault) in [
            (401, "", Fault::KeyRefused),
            (403, "<html>", Fault::KeyRefused),
            (404, r#"{"error":"model 'x' not found"}"#, Fault::ModelUnknown),
            (400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#, Fault::ModelUnknown),
            (400, r#"{"error":{"message":"registry.ollama.ai/library/gemma does not support tools"}}"#, Fault::NoTools),
            (500, r#"{"error":{"code":500,"message":"tools param requires --jinja flag"}}"#, Fault::NoTools),
            (429, r#"{"error":{"type":"insufficient_quota","message":"You exceeded"}}"#, Fault::NoCredit),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
                Fault::NoCredit,
            ),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"…"}}"#, Fault::ContextTooLong),
            (400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8"}}"#, Fault::ContextTooLong),
            (400, r#"{"object":"error","message":"extra inputs","type":"bad"}"#, Fault::BadRequest(400)),
            (422, r#"{"detail":[{"loc":["body"]}]}"#, Fault::BadRequest(422)),
            (302, "", Fault::Redirected),
            (500, "oops", Fault::ServerError { status: 500, retry_after: None }),
            (503, r#"{"error":{"message":"Loading model"}}"#, Fault::Overloaded { retry_after: None }),
            (529, "", Fault::Overloaded { retry_after: None }),
        ] {
            assert_eq!(read(status, body), fault, "{status} {body}");
        }
        assert_eq!(ErrorBody::read(b"").fault(401, None, false), Fault::KeyWanted);
    }

    #[test]
    fn complaint_about_the_limit_is_recognised() {
        let complaint = |words: &str| {
            ErrorBody::read(json!({ "error": { "message": words } }).to_string().as_bytes()).limit_complaint()
        };
        let renamed = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        assert_eq!(complaint(renamed), Some(Complaint::LimitField));
        let vllm = "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens";
        assert_eq!(complaint(vllm), Some(Complaint::LimitSize));
        assert_eq!(complaint("This model's maximum context length is 4096 tokens"), None);
    }

    #[test]
    fn error_with_status_200_is_recognised() {
        let inside = |body: Value| ErrorBody::in_answer(&body).map(|error| error.fault_inside(true));
        assert_eq!(
            inside(json!({ "error": { "code": 429, "message": "slow" } })),
            Some(Fault::RateLimited { retry_after: None })
        );
        let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        assert_eq!(inside(overloaded), Some(Fault::Overloaded { retry_after: None }));
        assert_eq!(inside(json!({ "error": "broken" })), Some(Fault::ServerError { status: 500, retry_after: None }));
        assert_eq!(inside(json!({ "error": null, "choices": [] })), None);
    }

    #[test]
    fn requested_wait_is_read_as_seconds_or_a_date() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let wait = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            retry_after(&headers, now)
        };
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(wait("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(wait("retry-after", "Wed, 31 Dec 2025 00:01:00 GMT"), Some(Duration::ZERO));
        for odd in ["-1", "NaN", "soon", "1e300"] {
            assert_eq!(wait("retry-after", odd), None, "{odd}");
        }
    }
}
