//! The request for tokens, and the answer of an issuer.
//!
//! Never repeats a text of the issuer but the code of a known error, because the text may contain a token. See [`super::Logins`].

use super::discovery::text;
use crate::registry::mcp::login::{IssuerClient, Times, Tokens};
use axum::http::HeaderValue;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ironclaw_state::keys::SecretText;
use ironclaw_text::json;
use serde_json::Value;
use std::fmt;

const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Values of the claims of a token.
const CLAIMS_MAX: usize = 1024;

/// The longest time between the renewal of a token and its end.
const AHEAD_MS_MAX: i64 = 300_000;

/// The least time between two renewals.
const RENEWAL_PAUSE_MS_MIN: i64 = 1000;

/// The longest time of a token that the host believes.
const LIFETIME_SECONDS_MAX: i64 = 10 * 365 * 24 * 3600;

/// The errors of RFC 6749, RFC 8707 and OpenID Connect.
const ERRORS: [&str; 12] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
    "invalid_scope",
    "invalid_target",
    "access_denied",
    "server_error",
    "temporarily_unavailable",
    "login_required",
];

/// The errors that a later request may not have.
const PASSING: [&str; 3] = ["server_error", "temporarily_unavailable", "slow_down"];

/// Tokens as an issuer gave them.
pub(super) struct Issued {
    access: SecretText,
    refresh: Option<SecretText>,
    lifetime_ms: Option<i64>,
}

/// The reason why an issuer gave no tokens.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// It refuses, and another try has the same answer: the code of its error, or the status without one.
    Refused(String),
    /// The token has expired, and there is none for a renewal.
    Expired,
    /// The host did not ask, because it cannot read the secret of its client.
    Unasked(String),
    /// It did not answer as an issuer.
    Broken(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what) => write!(f, "the issuer answers {what}"),
            Self::Expired => f.write_str("the token has expired, and the issuer gave none for its renewal"),
            Self::Unasked(why) => f.write_str(why),
            Self::Broken(why) => write!(f, "the issuer does not give a token: {why}"),
        }
    }
}

/// Returns the code of a known error.
pub(super) fn known(error: &str) -> &'static str {
    ERRORS.into_iter().find(|known| *known == error).unwrap_or("an unknown error")
}

/// Reads an answer. An issuer refuses by an error in any answer that is no failure of its own, or by the status alone.
pub(super) fn read(status: u16, mut answer: Value) -> Result<Issued, Failed> {
    let broken = |why: String| Err(Failed::Broken(why));
    if matches!(status, 408 | 425 | 429) || !matches!(status, 200..=299 | 400..=499) {
        return broken(format!("its answer has HTTP status {status}"));
    }
    if let Some(error) = error_in(&answer) {
        return match PASSING.contains(&error) {
            true => broken(format!("its answer is {error}")),
            false => Err(Failed::Refused(known(error).to_owned())),
        };
    }
    if status >= 400 {
        return Err(Failed::Refused(format!("HTTP status {status}")));
    }
    if !answer.is_object() {
        return broken("its answer is neither JSON nor a form".to_owned());
    }
    if text(&answer, "token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(Failed::Refused("with a token that is not of the type Bearer".to_owned()));
    }
    let seconds = seconds(&answer["expires_in"]);
    let mut take = |field: &str| match answer[field].take() {
        Value::String(text) if !text.is_empty() => Some(SecretText::new(text)),
        _ => None,
    };
    let (access, refresh) = (take("access_token"), take("refresh_token"));
    let fits = |token: &SecretText| {
        let text = token.expose();
        text.len() <= TOKEN_BYTES_MAX && HeaderValue::from_str(text).is_ok() && !text.contains(' ')
    };
    let Some(access) = access.filter(fits) else {
        return Err(Failed::Refused("without a token that can be sent".to_owned()));
    };
    let lifetime_ms = match seconds {
        Some(seconds) => Some(seconds.clamp(0, LIFETIME_SECONDS_MAX) * 1000),
        None => lifetime_in(&access, ironclaw_state::wall_clock()),
    };
    Ok(Issued { access, refresh: refresh.filter(|token| token.expose().len() <= TOKEN_BYTES_MAX), lifetime_ms })
}

/// Returns the error in an answer; `None` if it has none in any usual form.
fn error_in(answer: &Value) -> Option<&str> {
    match &answer["error"] {
        Value::String(error) if error.is_empty() => None,
        Value::String(error) => Some(error),
        Value::Object(_) | Value::Array(_) | Value::Bool(true) => Some("an error of another form"),
        Value::Null | Value::Bool(false) | Value::Number(_) => None,
    }
}

/// Returns a number of seconds, which some issuers write as a text.
fn seconds(value: &Value) -> Option<i64> {
    let number = match value {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    number.filter(|number| number.is_finite()).map(|number| number as i64)
}

/// Returns the rest of the life of a token that is a JWT with its end (RFC 7519). Its signature is for the server. If the clocks differ so
/// much that it is over, the whole life counts.
fn lifetime_in(token: &SecretText, now_ms: i64) -> Option<i64> {
    let mut parts = token.expose().split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims = json::read(&claims, CLAIMS_MAX).ok()?;
    let (end, begin) = (seconds(&claims["exp"])?, seconds(&claims["iat"]));
    let left = end.saturating_mul(1000).saturating_sub(now_ms);
    let whole = begin.map(|begin| end.saturating_sub(begin).saturating_mul(1000));
    Some(if left > 0 { left } else { whole? }).map(|life| life.clamp(0, LIFETIME_SECONDS_MAX * 1000))
}

impl Issued {
    /// Returns the tokens with their times. An issuer that gives no new refresh token leaves the old one valid.
    pub(super) fn tokens(self, old_refresh: Option<SecretText>, client: IssuerClient) -> (Tokens, Times) {
        let refresh = self.refresh.or(old_refresh);
        let times = times(ironclaw_state::wall_clock(), self.lifetime_ms, refresh.is_some());
        (Tokens { access: self.access, refresh, client }, times)
    }
}

/// Returns the times of tokens. Without a refresh token the login ends with the token.
fn times(now: i64, lifetime_ms: Option<i64>, has_refresh: bool) -> Times {
    let expires_at = lifetime_ms.map(|lifetime| now.saturating_add(lifetime));
    let ahead = |lifetime: i64| if has_refresh { (lifetime / 2).min(AHEAD_MS_MAX) } else { 0 };
    let renew_in = lifetime_ms.map(|lifetime| (lifetime - ahead(lifetime)).max(RENEWAL_PAUSE_MS_MIN));
    Times { made_at: now, expires_at, renew_at: renew_in.map(|pause| now.saturating_add(pause)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answer_without_a_usable_token_is_refused() {
        let good = json!({ "access_token": "zinnober", "token_type": "bearer", "expires_in": 60 });
        assert!(read(200, good.clone()).is_ok());
        for (field, value) in [
            ("access_token", json!("zinnober\n")),
            ("access_token", json!("zinnober rot")),
            ("access_token", json!("")),
            ("access_token", json!("zinnober".repeat(4000))),
            ("access_token", Value::Null),
            ("token_type", json!("mac")),
        ] {
            let mut answer = good.clone();
            answer[field] = value;
            let error = read(200, answer).err().expect("refused").to_string();
            assert!(!error.contains("zinnober"), "{error}");
        }
        assert!(matches!(read(200, Value::Null), Err(Failed::Broken(_))));
    }

    #[test]
    fn refusal_of_an_issuer_has_any_usual_form() {
        let error = |error: Value| json!({ "error": error, "error_description": "zinnober", "message": "zinnober" });
        let none = || json!({ "message": "zinnober" });
        for (status, answer, what) in [
            (400, error(json!("invalid_grant")), "invalid_grant"),
            (400, error(json!("zinnober")), "an unknown error"),
            (200, error(json!("invalid_grant")), "invalid_grant"),
            (200, error(json!("bad_refresh_token")), "an unknown error"),
            (200, error(json!({ "message": "zinnober" })), "an unknown error"),
            (200, none(), "without a token that can be sent"),
            (400, none(), "HTTP status 400"),
            (400, error(Value::Null), "HTTP status 400"),
            (400, error(json!("")), "HTTP status 400"),
            (400, Value::Null, "HTTP status 400"),
            (401, none(), "HTTP status 401"),
            (403, none(), "HTTP status 403"),
            (404, Value::Null, "HTTP status 404"),
        ] {
            assert_eq!(read(status, answer.clone()).err(), Some(Failed::Refused(what.to_owned())), "{status} {answer}");
        }
        let passing = || error(json!("temporarily_unavailable"));
        for (status, answer) in [
            (503, error(json!("invalid_grant"))),
            (429, error(json!("invalid_grant"))),
            (302, none()),
            (400, passing()),
            (200, passing()),
        ] {
            assert!(matches!(read(status, answer.clone()).err(), Some(Failed::Broken(_))), "{status} {answer}");
        }
    }

    /// Returns a token with these claims.
    fn jwt(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn life_of_a_token_has_any_usual_form() {
        let life = |token: &str, expires_in: Value| {
            let answer = json!({ "access_token": token, "expires_in": expires_in });
            read(200, answer).expect("tokens").lifetime_ms
        };
        for (expires_in, wanted) in [
            (json!(3), Some(3000)),
            (json!("3"), Some(3000)),
            (json!(" 3.0 "), Some(3000)),
            (json!(3.7), Some(3000)),
            (json!(-1), Some(0)),
            (Value::Null, None),
            (json!(""), None),
            (json!("soon"), None),
            (json!("inf"), None),
        ] {
            assert_eq!(life("zinnober", expires_in.clone()), wanted, "{expires_in}");
        }
        let now = ironclaw_state::wall_clock() / 1000;
        let left = life(&jwt(&json!({ "exp": now + 100 })), Value::Null).expect("a life");
        assert!((90_000..=100_000).contains(&left), "{left}");
        assert_eq!(life(&jwt(&json!({ "exp": now + 100 })), json!(3)), Some(3000), "the answer counts first");
        assert_eq!(life(&jwt(&json!({ "iat": now - 900, "exp": now - 600 })), Value::Null), Some(300_000));
        for token in
            [jwt(&json!({ "exp": now - 600 })), jwt(&json!({})), jwt(&json!({ "exp": "x" })), "a.b.c".to_owned()]
        {
            assert_eq!(life(&token, Value::Null), None, "{token}");
        }
    }

    #[test]
    fn token_without_a_type_is_taken() {
        for kind in [json!("Bearer"), json!("bearer"), json!(""), Value::Null] {
            assert!(read(200, json!({ "access_token": "zinnober", "token_type": kind })).is_ok(), "{kind}");
        }
        assert!(read(201, json!({ "access_token": "zinnober" })).is_ok());
    }

    #[test]
    fn token_is_renewed_ahead_of_its_end() {
        let renewed = |lifetime_s: i64, has_refresh| times(0, Some(lifetime_s * 1000), has_refresh).renew_at;
        assert_eq!(renewed(3600, true), Some(3_300_000));
        assert_eq!(renewed(60, true), Some(30_000));
        assert_eq!(renewed(0, true), Some(1000));
        assert_eq!(renewed(3600, false), Some(3_600_000));
        assert_eq!(times(0, None, true).renew_at, None);
    }
}
