//! The answer of a handler: JSON, or a failure with its status, its code and a hint.
//!
//! Decides nothing. See [`ironclaw_operator::Failure`].

use crate::registry::secrets;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ironclaw_operator::{DenialCode, Failure, FailureBody};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};

/// Seconds in `Retry-After`. Connections and rate limits become free within seconds, and no exact moment is known.
pub(super) const RETRY_AFTER_SECONDS: u32 = 5;

/// An answer that refuses or fails.
pub struct Answer {
    pub(super) status: StatusCode,
    pub(super) failure: Failure,
    /// The code for the ledger, if the answer goes there.
    pub(super) noted: Option<DenialCode>,
}

impl Answer {
    /// Returns the answer to a refusal that the ledger records, at a bounded rate however often it comes.
    pub(super) fn noted(refusal: Refusal) -> Self {
        let noted = Some(refusal.code);
        Self { noted, ..Self::from(refusal) }
    }

    /// Answers a denial as [`Self::noted`] answers a refusal.
    pub(super) fn denied<E: Into<Self>>(denied: Denied<E>) -> Self {
        match denied {
            Denied::Refused(refusal) => Self::noted(refusal),
            Denied::Failed(error) => error.into(),
        }
    }

    /// Returns the answer to a failure of the host. The log has the cause, and the caller gets a sentence.
    pub(super) fn broken(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed");
        let failure =
            Failure::new(DenialCode::Internal, format!("the host failed: {error}"), "`ironctl logs` has more");
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, failure, noted: None }
    }

    /// Returns the answer of a host that is ending.
    pub(super) fn stopping() -> Self {
        let refusal = Refusal::new(DenialCode::Stopping, "the host is stopping");
        refusal.hint("`ironctl up` starts it again; then repeat the command").into()
    }

    /// Returns the answer for a request whose task ended before its answer: it panicked, or the host is ending.
    pub(super) fn task_ended(error: &tokio::task::JoinError) -> Self {
        if error.is_cancelled() { Self::stopping() } else { Self::broken(error) }
    }

    /// Returns the answer for a record that cannot be written now. The request had no effect and can be repeated.
    fn unwritten(error: &dyn std::fmt::Display) -> Self {
        let mut answer = Self::broken(error);
        answer.failure =
            Failure::new(DenialCode::StateUnwritable, format!("the host failed: {error}"), Error::UNWRITTEN_HINT);
        answer
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.code.status()).expect("the list holds statuses");
        let mut failure = Failure::new(refusal.code, refusal.message, refusal.hint);
        failure.error.bound = refusal.bound;
        Self { status, failure, noted: None }
    }
}

/// What an answer refuses or how the host failed, kept with its response for a page that shows it to a person.
#[derive(Debug, Clone)]
pub struct Refused {
    pub status: StatusCode,
    pub code: String,
    pub message: String,
    pub hint: String,
}

impl From<Answer> for Refused {
    fn from(Answer { status, failure, .. }: Answer) -> Self {
        let FailureBody { code, message, hint, .. } = failure.error;
        Self { status, code, message, hint }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Answer::from(refusal).into()
    }
}

macro_rules! breakdown {
    ($($error:ty),+) => {
        $(impl From<$error> for Answer {
            fn from(error: $error) -> Self {
                Self::broken(&error)
            }
        })+
    };
}
breakdown!(ironclaw_state::keys::Error, ironclaw_model::Error, ironclaw_state::home::Error);

impl<E: Into<Self>> From<Denied<E>> for Answer {
    fn from(denied: Denied<E>) -> Self {
        match denied {
            Denied::Refused(refusal) => refusal.into(),
            Denied::Failed(error) => error.into(),
        }
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        if error.is_stopping() {
            Self::stopping()
        } else if error.is_unwritten() {
            Self::unwritten(&error)
        } else {
            Self::broken(&error)
        }
    }
}

impl From<secrets::Error> for Answer {
    fn from(error: secrets::Error) -> Self {
        match error {
            secrets::Error::State(error) => error.into(),
            error => Self::broken(&error),
        }
    }
}

impl From<ironclaw_state::Error> for Answer {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::from(Error::from(error))
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(&self.failure)).into_response();
        if let Some(code) = self.noted {
            response.extensions_mut().insert(Noted(code));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        response.extensions_mut().insert(Refused::from(self));
        response
    }
}

/// The result of a handler: JSON or an error answer.
pub type Reply<T> = Result<axum::Json<T>, Answer>;

/// Marks an answer as a refusal for the ledger, with its code.
#[derive(Debug, Clone, Copy)]
pub struct Noted(pub DenialCode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_an_ending_host_is_the_answer_stopping() {
        use ironclaw_state::Error as State;
        let ending: [Answer; 5] = [
            State::Closed.into(),
            Error::Stopping.into(),
            Denied::Failed(Error::State(State::Closed)).into(),
            secrets::Error::State(State::Closed).into(),
            Answer::denied(Denied::Failed(State::Closed)),
        ];
        for answer in ending {
            assert_eq!(
                (answer.status.as_u16(), answer.failure.error.code),
                (503, DenialCode::Stopping.name().to_owned())
            );
        }
        let broken = Answer::from(State::Unwritten(String::new()));
        assert_eq!(broken.failure.error.code, DenialCode::StateUnwritable.name());
    }

    #[test]
    fn status_tells_forbidden_from_too_many_requests() {
        for (code, status) in [
            (DenialCode::PolicyAsksForMore, StatusCode::FORBIDDEN),
            (DenialCode::NotYoursToDecide, StatusCode::FORBIDDEN),
            (DenialCode::TooManyFailures, StatusCode::TOO_MANY_REQUESTS),
            (DenialCode::ChangeStale, StatusCode::CONFLICT),
            (DenialCode::ChangeEmpty, StatusCode::BAD_REQUEST),
        ] {
            let response = Answer::from(Refusal::new(code, "no")).into_response();
            assert_eq!(response.status(), status, "{code}");
            let retry_after = response.headers().get(RETRY_AFTER).map(HeaderValue::as_bytes);
            let expected = (status == StatusCode::TOO_MANY_REQUESTS).then_some(&b"5"[..]);
            assert_eq!(retry_after, expected, "{code}");
        }
    }
}
