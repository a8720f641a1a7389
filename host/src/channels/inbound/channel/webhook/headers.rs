//! The headers of a signed request: those of the Standard Webhooks specification, and the same three under the names of Svix.
//!
//! Looks at the names of headers alone, so its refusals are the same for each channel and for none. See [`super::signature`].

use super::signature::Claimed;
use super::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER};
use axum::http::HeaderMap;
use ironclaw_operator::SignatureRule;
use ironclaw_text::excerpt::start;

/// The names of the three headers: id, time and signatures. The first set with a signature counts.
const SETS: [[&str; 3]; 2] =
    [[ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER], ["svix-id", "svix-timestamp", "svix-signature"]];

/// Headers with which other products sign, and the product.
const PRODUCTS: [(&str, &str); 16] = [
    ("x-hub-signature-256", "GitHub or Meta"),
    ("x-hub-signature", "GitHub or Meta"),
    ("x-gitlab-token", "GitLab"),
    ("x-gitea-signature", "Gitea"),
    ("x-gogs-signature", "Gogs"),
    ("stripe-signature", "Stripe"),
    ("x-slack-signature", "Slack"),
    ("x-shopify-hmac-sha256", "Shopify"),
    ("x-twilio-signature", "Twilio"),
    ("x-signature-ed25519", "Discord"),
    ("x-line-signature", "LINE"),
    ("x-zm-signature", "Zoom"),
    ("x-telegram-bot-api-secret-token", "Telegram"),
    ("linear-signature", "Linear"),
    ("sentry-hook-signature", "Sentry"),
    ("paypal-transmission-sig", "PayPal"),
];

/// Words in the names of other headers with signatures.
const SIGNATURE_WORDS: [&str; 2] = ["signature", "hmac"];

/// Characters of the name of a header in a sentence.
const NAME_CHARACTERS_SHOWN: usize = 64;

/// Returns the claims of a request's headers.
///
/// # Errors
/// The rule, and a sentence that names the header.
pub fn claimed(headers: &HeaderMap) -> Result<Claimed<'_>, (SignatureRule, String)> {
    if let Some([id, timestamp, signatures]) = SETS.iter().find(|names| headers.contains_key(names[2])) {
        let one = |name| one(headers, name).map_err(|words| (SignatureRule::HeadersIncomplete, words));
        return Ok(Claimed { id: one(id)?, timestamp: one(timestamp)?, signatures: one(signatures)? });
    }
    if let Some(names) = SETS.iter().find(|names| names.iter().any(|name| headers.contains_key(*name))) {
        return Err((SignatureRule::HeadersIncomplete, format!("the header {} is missing", names[2])));
    }
    if let Some((name, product)) = PRODUCTS.iter().find(|(name, _)| headers.contains_key(*name)) {
        let words = format!("the request has the signature header of {product} ({name})");
        return Err((SignatureRule::OtherProduct, words));
    }
    let names = || headers.keys().map(|name| name.as_str());
    match names().find(|name| SIGNATURE_WORDS.iter().any(|word| name.contains(word))) {
        Some(name) => {
            let name = start(name, NAME_CHARACTERS_SHOWN);
            Err((SignatureRule::OtherProduct, format!("the request has its signature in the header {name}")))
        }
        None => Err((SignatureRule::Missing, "the request has no signature".to_owned())),
    }
}

/// Returns the text of a header that is there once.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, String> {
    let mut all = headers.get_all(name).iter();
    let first = all.next().ok_or_else(|| format!("the header {name} is missing"))?;
    match all.next() {
        Some(_) => Err(format!("the header {name} is there twice")),
        None => first.to_str().map_err(|_| format!("the header {name} has characters other than ASCII")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn headers(names: &[&str]) -> HeaderMap {
        let header = |name: &&str| (HeaderName::try_from(*name).expect("a name"), HeaderValue::from_static("1"));
        names.iter().map(header).fold(HeaderMap::new(), |mut all, (name, value)| {
            all.append(name, value);
            all
        })
    }

    #[test]
    fn three_headers_are_taken_under_their_two_names() {
        for names in [
            &["webhook-id", "webhook-timestamp", "webhook-signature"][..],
            &["svix-id", "svix-timestamp", "svix-signature"],
            &["svix-id", "svix-timestamp", "svix-signature", "webhook-id", "webhook-timestamp", "webhook-signature"],
            &["webhook-id", "webhook-timestamp", "webhook-signature", "x-hub-signature-256"],
        ] {
            assert!(claimed(&headers(names)).is_ok(), "{names:?}");
        }
    }

    #[test]
    fn other_headers_are_refused_by_their_rule_and_name() {
        use SignatureRule::{HeadersIncomplete, Missing, OtherProduct};
        for (names, rule, word) in [
            (&[][..], Missing, "no signature"),
            (&["authorization", "x-request-id"], Missing, "no signature"),
            (&["webhook-signature"], HeadersIncomplete, "webhook-id is missing"),
            (&["webhook-id", "webhook-timestamp"], HeadersIncomplete, "webhook-signature is missing"),
            (&["webhook-id", "webhook-signature"], HeadersIncomplete, "webhook-timestamp is missing"),
            (&["webhook-id", "webhook-id", "webhook-timestamp", "webhook-signature"], HeadersIncomplete, "twice"),
            (&["svix-id", "svix-signature"], HeadersIncomplete, "svix-timestamp is missing"),
            (&["svix-id", "webhook-timestamp", "webhook-signature"], HeadersIncomplete, "webhook-id is missing"),
            (&["x-hub-signature-256", "x-github-delivery"], OtherProduct, "GitHub"),
            (&["stripe-signature"], OtherProduct, "Stripe"),
            (&["x-slack-signature", "x-slack-request-timestamp"], OtherProduct, "Slack"),
            (&["x-gitlab-token"], OtherProduct, "GitLab"),
            (&["acme-id", "acme-timestamp", "acme-signature"], OtherProduct, "acme-signature"),
            (&["x-shop-hmac"], OtherProduct, "x-shop-hmac"),
        ] {
            let (found, words) = claimed(&headers(names)).expect_err("refused");
            assert_eq!(found, rule, "{names:?}");
            assert!(words.contains(word), "{names:?}: {words}");
        }
    }
}
