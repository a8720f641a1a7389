//! The request for tokens, and the answer of an issuer.
//!
//! Never repeats a text of the issuer but the code of a known error, because the text may contain a token. See [`super::Logins`].

use crate::registry::mcp::login::{IssuerClient, Times, Tokens};
use axum::http::HeaderValue;
use ironclaw_state::keys::SecretText;
use serde_json::Value;
use std::fmt;

const TOKEN_BYTES_MAX: usize = 16 * 1024;

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

/// Tokens as an issuer gave them.
pub(super) struct Issued {
    access: SecretText,
    refresh: Option<SecretText>,
    lifetime_ms: Option<i64>,
}

/// The reason why an issuer gave no tokens.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// It refuses, and another try has the same answer.
    Refused(&'static str),
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
            Self::Refused(code) => write!(f, "the issuer answers {code}"),
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

pub(super) fn read(status: u16, mut answer: Value) -> Result<Issued, Failed> {
    if let Some(error) = answer["error"].as_str().filter(|_| (400..500).contains(&status) && status != 429) {
        return Err(Failed::Refused(known(error)));
    }
    let broken = |why: &str| Err(Failed::Broken(why.to_owned()));
    if status != 200 {
        return Err(Failed::Broken(format!("its answer has HTTP status {status}")));
    }
    if !answer["token_type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return broken("its token is not of the type Bearer");
    }
    let mut take = |field: &str| match answer[field].take() {
        Value::String(text) => Some(SecretText::new(text)),
        _ => None,
    };
    let (access, refresh) = (take("access_token"), take("refresh_token"));
    let fits = |token: &SecretText| {
        let text = token.expose();
        (1..=TOKEN_BYTES_MAX).contains(&text.len()) && HeaderValue::from_str(text).is_ok() && !text.contains(' ')
    };
    let Some(access) = access.filter(fits) else { return broken("its answer has no token that can be sent") };
    let seconds = answer["expires_in"].as_f64().map(|seconds| seconds as i64);
    let lifetime_ms = seconds.map(|seconds| seconds.clamp(0, LIFETIME_SECONDS_MAX) * 1000);
    Ok(Issued { access, refresh: refresh.filter(|token| token.expose().len() <= TOKEN_BYTES_MAX), lifetime_ms })
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
        let refused =
            |status, error: &str| read(status, json!({ "error": error, "error_description": "zinnober" })).err();
        assert_eq!(refused(400, "invalid_grant"), Some(Failed::Refused("invalid_grant")));
        assert_eq!(refused(400, "zinnober"), Some(Failed::Refused("an unknown error")));
        assert!(matches!(refused(503, "invalid_grant"), Some(Failed::Broken(_))));
        assert!(matches!(refused(429, "invalid_grant"), Some(Failed::Broken(_))));
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
