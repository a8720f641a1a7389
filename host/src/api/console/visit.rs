//! The visit of a person: the caller of the API's functions, with the session and the token of their forms.
//!
//! Only [`super::session`] makes one.

use crate::api::auth::Caller;
use crate::api::handler::{Answer, Api};
use crate::registry::Token;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;

/// A person's visit: the caller of the API's functions, and the token of their forms.
#[derive(Clone)]
pub struct Visit {
    pub caller: Caller,
    /// The session, as the record had it at the begin of the request.
    pub session: Token,
    /// The token of each form of the session. Another page cannot read it.
    pub form_token: String,
}

impl FromRequestParts<Api> for Visit {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Answer> {
        parts.extensions.get().cloned().ok_or_else(missing)
    }
}

/// Returns the answer to a request without a session.
pub fn missing() -> Answer {
    let refusal = Refusal::new(DenialCode::SessionMissing, "this browser has no session of the console");
    refusal.hint("sign in with a code from `ironctl console`").into()
}
