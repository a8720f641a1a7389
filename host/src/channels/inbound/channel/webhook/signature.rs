//! Signatures of the Standard Webhooks specification: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.
//!
//! Never leaks by its timing how much of a signature is right, and never checks an event's age before its signature. See
//! [`crate::channels::inbound::channel::webhook::incoming`].

pub use super::secret::Secret;

use super::headers;
use super::secret::{KEYS_MAX, READINGS_MAX};
use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hmac::{Hmac, Mac};
use ironclaw_operator::{DenialCode, SignatureRule};
use ironclaw_store::refusal::Refusal;
use sha2::Sha256;

/// Signatures of one event that are checked; a sender sends more than one while it replaces a secret.
const SIGNATURES_MAX: usize = 8;

/// Version of a signature that is checked.
const VERSION: &str = "v1,";

/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 32;

/// Bytes of an event's id.
const ID_BYTES_MAX: usize = 256;

/// Digits from which a time is one in milliseconds.
const MILLISECOND_DIGITS: usize = 13;

/// Most seconds between an event's time and ours, in either direction.
pub const WINDOW_SECONDS: i64 = 300;

/// The remedy for a request that no channel can take.
const HOW_TO_SIGN: &str = "send webhook-id, webhook-timestamp and webhook-signature, and sign `ID.TIMESTAMP.BODY` as the Standard Webhooks \
                           specification says; for a product that signs in another way, run a program between that signs anew";

/// The claims of a request's headers.
#[derive(Debug, Clone, Copy)]
pub struct Claimed<'a> {
    /// Id of the event.
    pub id: &'a str,
    /// When this attempt was made, seconds since the epoch.
    pub timestamp: &'a str,
    /// The signatures, separated by spaces.
    pub signatures: &'a str,
}

/// A refused signature.
#[derive(Debug)]
pub struct Refused {
    pub rule: SignatureRule,
    pub refusal: Refusal,
}

impl Refused {
    fn new(rule: SignatureRule, words: impl Into<String>, hint: &str) -> Self {
        Self { rule, refusal: Refusal::new(DenialCode::SignatureInvalid, words).hint(hint) }
    }
}

impl Claimed<'_> {
    /// Reads the claims of a request, and refuses headers that no channel can take. The result depends on the headers alone.
    ///
    /// # Errors
    /// The rule with its sentence.
    pub fn read(headers: &HeaderMap) -> Result<Claimed<'_>, Refused> {
        let claimed = headers::claimed(headers).map_err(|(rule, words)| Refused::new(rule, words, HOW_TO_SIGN))?;
        match claimed.signatures().next() {
            Some(_) => Ok(claimed),
            None => Err(Refused::new(SignatureRule::Malformed, claimed.fault_of_form(), HOW_TO_SIGN)),
        }
    }

    /// Returns the signatures that have the form of one.
    fn signatures(&self) -> impl Iterator<Item = Vec<u8>> {
        let written = self.signatures.split(' ').take(SIGNATURES_MAX);
        written.filter_map(|signature| decoded(signature.strip_prefix(VERSION)?))
    }

    /// Returns a sentence about signatures of which none has the form.
    fn fault_of_form(&self) -> &'static str {
        let written = || self.signatures.split(' ').take(SIGNATURES_MAX);
        let is_hex =
            |text: &str| text.len() == 2 * SIGNATURE_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if written().any(|one| one.starts_with("v1a,")) {
            "the signature is of the asymmetric scheme (v1a), and a channel takes v1"
        } else if written().any(|one| is_hex(one.rsplit([',', '=']).next().unwrap_or_default())) {
            "the signature is hex, and a channel takes `v1,` and base64"
        } else if written().any(|one| decoded(one).is_some()) {
            "the signature has no `v1,` in front"
        } else {
            "no signature has the form `v1,` and the base64 of 32 bytes"
        }
    }

    /// Returns a MAC over the signed bytes, from one under a key.
    fn signed(&self, mut mac: Hmac<Sha256>, body: &[u8]) -> Hmac<Sha256> {
        for part in [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }

    /// Returns whether one of the signatures is this MAC.
    fn has(&self, mac: &Hmac<Sha256>) -> bool {
        // `verify_slice` compares in constant time.
        self.signatures().any(|signature| mac.clone().verify_slice(&signature).is_ok())
    }
}

/// Decodes a signature: base64 of either alphabet, with or without padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    STANDARD_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == SIGNATURE_BYTES)
}

impl Secret {
    /// Returns the signatures of a body under this id and time, one of each key.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let timestamp = timestamp.to_string();
        let claimed = Claimed { id, timestamp: &timestamp, signatures: "" };
        let signed = self.keys().iter().map(|key| claimed.signed(key.mac(), body).finalize().into_bytes());
        signed.map(|bytes| format!("{VERSION}{}", STANDARD.encode(bytes))).collect::<Vec<_>>().join(" ")
    }

    /// Returns whether one of the signatures is right. The work is the same for each number of keys.
    fn verifies(&self, claimed: &Claimed<'_>, body: &[u8]) -> bool {
        let place = |place: usize| self.keys().get(place).or(self.keys().last());
        let keys = (0..KEYS_MAX).filter_map(place);
        keys.fold(false, |found, key| claimed.has(&claimed.signed(key.mac(), body)) | found)
    }

    /// Returns the rule that a wrong signature breaks: another reading of the secret signed, or none of this secret.
    fn broken_rule(&self, claimed: &Claimed<'_>, body: &[u8]) -> SignatureRule {
        let mut rule = SignatureRule::Wrong;
        for key in (0..KEYS_MAX).filter_map(|place| self.keys().get(place).or(self.keys().last())) {
            let others: [_; READINGS_MAX] = key.other_macs();
            for (mac, is_reading) in others {
                if claimed.has(&claimed.signed(mac, body)) & is_reading {
                    rule = if key.is_text { SignatureRule::SecretDecoded } else { SignatureRule::SecretAsText };
                }
            }
        }
        rule
    }
}

/// Checks that the holder of the secret made this event. [`check_time`] checks its age.
///
/// # Errors
/// The same refusal for each error: a sender without the secret learns nothing, not even which channels exist. [`diagnose`] finds the
/// rule.
pub fn check(secret: Option<&Secret>, claimed: &Claimed<'_>, body: &[u8]) -> Result<(), Refused> {
    let placeholder = Secret::placeholder();
    let verified = secret.unwrap_or(&placeholder).verifies(claimed, body);
    match verified && secret.is_some() {
        true => Ok(()),
        false => Err(Refused::new(
            SignatureRule::Wrong,
            "no channel has this name and this signature",
            "compare the name and the secret of the channel, and sign `ID.TIMESTAMP.BODY` with the body as it is sent",
        )),
    }
}

/// Returns the refusal of a wrong signature, with its rule if the sender holds the secret and uses it in another way.
pub fn diagnose(refused: Refused, secret: Option<&Secret>, claimed: &Claimed<'_>, body: &[u8]) -> Refused {
    let placeholder = Secret::placeholder();
    match secret.unwrap_or(&placeholder).broken_rule(claimed, body) {
        rule @ SignatureRule::SecretAsText if secret.is_some() => Refused::new(
            rule,
            "the sender signs with the text of the secret, not with the bytes that it encodes",
            "decode the base64 after whsec_ and sign with those bytes",
        ),
        rule @ SignatureRule::SecretDecoded if secret.is_some() => Refused::new(
            rule,
            "the sender decodes the secret, and the channel has it as text",
            "remove the channel and add it again with whsec_ and the base64 of the secret",
        ),
        _ => refused,
    }
}

/// Checks whether a signed event is recent, `now` in milliseconds. An older event may be a replay of an intercepted one.
///
/// # Errors
/// Refuses a malformed time, a time too far away, and a malformed id.
pub fn check_time(claimed: &Claimed<'_>, now: i64) -> Result<(), Refusal> {
    let refuse = |code, text: String| Err(Refusal::new(code, text));
    let digits = (1..=12).contains(&claimed.timestamp.len()) && claimed.timestamp.bytes().all(|b| b.is_ascii_digit());
    let Some(at) = claimed.timestamp.parse::<i64>().ok().filter(|_| digits) else {
        let is_in_milliseconds = claimed.timestamp.len() == MILLISECOND_DIGITS
            && claimed.timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let as_what = if is_in_milliseconds { "; it is one of milliseconds" } else { "" };
        let words = format!("the time of the event is not a number of seconds since 1970{as_what}");
        return refuse(DenialCode::TimestampMalformed, words);
    };
    let late = now / 1000 - at;
    if late.abs() > WINDOW_SECONDS {
        let side = if late > 0 { "in the past" } else { "in the future" };
        let why = format!("the event is {} seconds {side}; at most {WINDOW_SECONDS} are allowed", late.abs());
        return refuse(DenialCode::TimestampOutside, why);
    }
    if !(1..=ID_BYTES_MAX).contains(&claimed.id.len()) || !claimed.id.bytes().all(|b| b.is_ascii_graphic()) {
        let why = format!("an event's id has 1 to {ID_BYTES_MAX} printable characters without spaces");
        return refuse(DenialCode::EventId, why);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use ironclaw_state::keys::SecretText;

    fn secret(text: &str) -> Secret {
        Secret::read(&SecretText::new(text.to_owned())).expect("a secret")
    }

    /// Checks an event as the port does: headers, signature, and the cause of a wrong one.
    fn rule(key: Option<&Secret>, claimed: &Claimed<'_>, body: &[u8]) -> Result<(), SignatureRule> {
        let mut headers = HeaderMap::new();
        for (name, value) in super::super::HEADERS.iter().zip([claimed.id, claimed.timestamp, claimed.signatures]) {
            headers.insert(*name, HeaderValue::from_str(value).expect("a value"));
        }
        let claimed = Claimed::read(&headers).map_err(|refused| refused.rule)?;
        check(key, &claimed, body).map_err(|refused| {
            assert_eq!(refused.refusal.code, DenialCode::SignatureInvalid);
            diagnose(refused, key, &claimed, body).rule
        })
    }

    #[test]
    fn the_example_of_the_specification_is_signed_alike() {
        let secret = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let body = br#"{"test": 2432232314}"#;
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn only_own_signature_over_all_three_parts_is_accepted() {
        use SignatureRule::{Malformed, Wrong};
        let own = secret(Secret::fresh().expect("random").expose());
        let (id, at, body) = ("evt_1", 1_800_000_000, b"{}".as_slice());
        let signature = own.sign(id, at, body);
        let claimed = Claimed { id, timestamp: "1800000000", signatures: &signature };
        let unpadded = signature.trim_end_matches('=').to_owned();
        let urlsafe = unpadded.replace('+', "-").replace('/', "_");
        let many = format!("v1a,AAAA v1,AAAA {signature}");
        for signatures in [&signature, &unpadded, &urlsafe, &many] {
            assert_eq!(rule(Some(&own), &Claimed { signatures, ..claimed }, body), Ok(()), "{signatures}");
        }
        let late = format!("{}{signature}", "v1,AAAA ".repeat(SIGNATURES_MAX));
        let other = secret(Secret::fresh().expect("random").expose());
        let hex = format!("v1,{}", "0f".repeat(32));
        // The placeholder of an absent secret is public, and a signature with it is refused.
        let with_placeholder = Secret::placeholder().sign(id, at, body);
        for (case, key, claimed, body, expected) in [
            ("another id", Some(&own), Claimed { id: "evt_2", ..claimed }, body, Wrong),
            ("another time", Some(&own), Claimed { timestamp: "1800000001", ..claimed }, body, Wrong),
            ("another body", Some(&own), claimed, b"{} ".as_slice(), Wrong),
            ("another secret", Some(&other), claimed, body, Wrong),
            ("no channel", None, claimed, body, Wrong),
            ("the placeholder", None, Claimed { signatures: &with_placeholder, ..claimed }, body, Wrong),
            ("no signature", Some(&own), Claimed { signatures: "", ..claimed }, body, Malformed),
            ("no version", Some(&own), Claimed { signatures: &signature[3..], ..claimed }, body, Malformed),
            ("half of one", Some(&own), Claimed { signatures: &signature[..20], ..claimed }, body, Malformed),
            ("hex", Some(&own), Claimed { signatures: &hex, ..claimed }, body, Malformed),
            ("asymmetric", None, Claimed { signatures: "v1a,AAAA", ..claimed }, body, Malformed),
            ("too many", Some(&own), Claimed { signatures: &late, ..claimed }, body, Malformed),
        ] {
            assert_eq!(rule(key, &claimed, body), Err(expected), "{case}");
        }
    }

    #[test]
    fn event_that_is_signed_with_another_reading_names_it() {
        use SignatureRule::{SecretAsText, SecretDecoded, Wrong};
        let (id, at, body) = ("evt_1", 1_800_000_000, b"{}".as_slice());
        let signed = |with: &str| {
            let mut text = with.to_owned();
            // A secret of this test that is too short for text is padded in neither reading.
            text.truncate(128);
            secret(&text).sign(id, at, body)
        };
        let base64 = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let encoded = format!("whsec_{base64}");
        let hex = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
        let hex_bytes = format!(
            "whsec_{}",
            STANDARD.encode(
                (0..32).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).expect("hex")).collect::<Vec<_>>()
            )
        );
        // The text with its prefix is one of the readings, and no secret by itself has those bytes.
        let whole_text = {
            use hmac::KeyInit;
            let mac = Hmac::<Sha256>::new_from_slice(encoded.as_bytes()).expect("a key");
            let claimed = Claimed { id, timestamp: "1800000000", signatures: "" };
            format!("v1,{}", STANDARD.encode(claimed.signed(mac, body).finalize().into_bytes()))
        };
        for (case, key, signatures, expected) in [
            ("the text after the prefix", encoded.as_str(), signed(base64), SecretAsText),
            ("the whole text", &encoded, whole_text, SecretAsText),
            ("base64 of a text", base64, signed(&encoded), SecretDecoded),
            ("hex of a text", hex, signed(&hex_bytes), SecretDecoded),
            ("another secret", &encoded, signed("correct-horse-battery-staple"), Wrong),
        ] {
            let claimed = Claimed { id, timestamp: "1800000000", signatures: &signatures };
            assert_eq!(rule(Some(&secret(key)), &claimed, body), Err(expected), "{case}");
            assert_eq!(rule(None, &claimed, body), Err(Wrong), "{case}, without a channel");
        }
    }

    #[test]
    fn both_secrets_of_a_list_verify_and_sign() {
        let (old, new) = (Secret::fresh().expect("random"), Secret::fresh().expect("random"));
        let list = secret(&format!("v1,{}|v1,{}", old.expose(), new.expose()));
        let (id, at, body) = ("evt_1", 1_800_000_000, b"{}".as_slice());
        for one in [old, new] {
            let one = secret(one.expose());
            for (key, by) in [(&list, &one), (&one, &list)] {
                let claimed = Claimed { id, timestamp: "1800000000", signatures: &by.sign(id, at, body) };
                assert_eq!(rule(Some(key), &claimed, body), Ok(()));
            }
        }
    }

    #[test]
    fn an_event_is_accepted_within_five_minutes_of_now() {
        let now = 1_800_000_000;
        let at = |timestamp: &str, id: &str| {
            let claimed = Claimed { id, timestamp, signatures: "" };
            check_time(&claimed, now * 1000 + 999).map_err(|refusal| refusal.code)
        };
        for seconds in [-WINDOW_SECONDS, 0, WINDOW_SECONDS] {
            assert_eq!(at(&(now + seconds).to_string(), "e"), Ok(()), "{seconds}");
        }
        for seconds in [-WINDOW_SECONDS - 1, WINDOW_SECONDS + 1, -now] {
            assert_eq!(at(&(now + seconds).to_string(), "e"), Err(DenialCode::TimestampOutside), "{seconds}");
        }
        for none in ["", "now", "-1800000000", "+1800000000", "1800000000.5", " 1800000000", "9999999999999"] {
            assert_eq!(at(none, "e"), Err(DenialCode::TimestampMalformed), "{none}");
        }
        for none in ["", "a b", "a\n", "é", &"x".repeat(ID_BYTES_MAX + 1)] {
            assert_eq!(at("1800000000", none), Err(DenialCode::EventId), "{none}");
        }
    }
}
