//! Signatures of the Standard Webhooks specification: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.
//!
//! Never leaks by its timing how much of a signature is right, and never checks an event's age before its signature. See
//! [`crate::channels::inbound::channel::webhook::incoming`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::keys::{self, SecretText};
use ironclaw_store::refusal::Refusal;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Prefix of a secret in its text form.
pub const PREFIX: &str = "whsec_";

/// Bytes of a fresh secret.
const FRESH_BYTES: usize = 32;

/// Bytes of a secret, as in the specification.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Signatures of one event that are checked; a sender sends more than one while it replaces a secret.
const SIGNATURES_MAX: usize = 8;

/// Bytes of an event's id.
const ID_BYTES_MAX: usize = 256;

/// Most seconds between an event's time and ours, in either direction.
pub const WINDOW_SECONDS: i64 = 300;

/// A signing secret: does not print, does not clone, wipes itself.
pub struct Secret(Zeroizing<Vec<u8>>);

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

impl Secret {
    /// Makes a fresh secret in its text form.
    pub fn fresh() -> Result<SecretText, keys::Error> {
        let bytes = Zeroizing::new(keys::random::<FRESH_BYTES>()?);
        let text = Zeroizing::new(STANDARD.encode(bytes.as_slice()));
        Ok(SecretText::new(format!("{PREFIX}{}", text.as_str())))
    }

    /// Parses a secret from its text form.
    ///
    /// # Errors
    /// A sentence that names the error and nothing of the secret.
    pub fn read(text: &SecretText) -> Result<Self, String> {
        let (low, high) = (SECRET_BYTES.start(), SECRET_BYTES.end());
        let malformed = || format!("a signing secret is {PREFIX} and the base64 of {low} to {high} bytes");
        let encoded = text.expose().strip_prefix(PREFIX).ok_or_else(malformed)?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| malformed())?);
        if SECRET_BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(malformed()) }
    }

    /// Returns a secret for a channel that does not exist: its check takes as long as the check of a wrong signature, and always fails.
    pub fn placeholder() -> Self {
        Self(Zeroizing::new(vec![0; FRESH_BYTES]))
    }

    /// Returns the signature of a body under this id and time.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mac = self.mac(id, &timestamp.to_string(), body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }

    /// Returns whether one of the signatures is right.
    fn verifies(&self, claimed: &Claimed<'_>, body: &[u8]) -> bool {
        let mac = self.mac(claimed.id, claimed.timestamp, body);
        let is_right = |signature: &str| {
            let decoded = signature.strip_prefix("v1,").and_then(|encoded| STANDARD.decode(encoded).ok());
            // `verify_slice` compares in constant time.
            decoded.is_some_and(|decoded| mac.clone().verify_slice(&decoded).is_ok())
        };
        claimed.signatures.split(' ').take(SIGNATURES_MAX).any(is_right)
    }

    fn mac(&self, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac
    }
}

/// Checks that the holder of the secret made this event. [`check_time`] checks its age.
///
/// # Errors
/// The same refusal for every error: a sender without the secret learns nothing, not even which channels exist.
pub fn check(secret: Option<&Secret>, claimed: Option<&Claimed<'_>>, body: &[u8]) -> Result<(), Refusal> {
    let placeholder = Secret::placeholder();
    let empty = Claimed { id: "", timestamp: "", signatures: "v1," };
    let verified = secret.unwrap_or(&placeholder).verifies(claimed.unwrap_or(&empty), body);
    if verified && secret.is_some() && claimed.is_some() {
        return Ok(());
    }
    let refusal = Refusal::new(DenialCode::SignatureInvalid, "no channel has this name and this signature");
    Err(refusal
        .hint("sign `ID.TIMESTAMP.BODY` as the Standard Webhooks specification says, with the channel's own secret"))
}

/// Checks whether a signed event is recent, `now` in milliseconds. An older event may be a replay of an intercepted one.
///
/// # Errors
/// Refuses a malformed time, a time too far away, and a malformed id.
pub fn check_time(claimed: &Claimed<'_>, now: i64) -> Result<(), Refusal> {
    let refuse = |code, text: String| Err(Refusal::new(code, text));
    let digits = (1..=12).contains(&claimed.timestamp.len()) && claimed.timestamp.bytes().all(|b| b.is_ascii_digit());
    let Some(at) = claimed.timestamp.parse::<i64>().ok().filter(|_| digits) else {
        return refuse(DenialCode::TimestampMalformed, format!("{TIMESTAMP} is not a number of seconds since 1970"));
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

const TIMESTAMP: &str = super::TIMESTAMP_HEADER;

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::read(&SecretText::new(text.to_owned())).expect("a secret")
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
        let own = secret(Secret::fresh().expect("random").expose());
        let (id, at, body) = ("evt_1", 1_800_000_000, b"{}".as_slice());
        let signature = own.sign(id, at, body);
        let claimed = Claimed { id, timestamp: "1800000000", signatures: &signature };
        assert!(check(Some(&own), Some(&claimed), body).is_ok());
        let many = format!("v1a,AAAA v1,AAAA {signature}");
        assert!(check(Some(&own), Some(&Claimed { signatures: &many, ..claimed }), body).is_ok(), "one of several");
        let late = format!("{}{signature}", "v1,AAAA ".repeat(SIGNATURES_MAX));
        let other = secret(Secret::fresh().expect("random").expose());
        for (what, key, claimed, body) in [
            ("another id", Some(&own), Claimed { id: "evt_2", ..claimed }, body),
            ("another time", Some(&own), Claimed { timestamp: "1800000001", ..claimed }, body),
            ("another body", Some(&own), claimed, b"{} ".as_slice()),
            ("another secret", Some(&other), claimed, body),
            ("no channel", None, claimed, body),
            ("no signature", Some(&own), Claimed { signatures: "", ..claimed }, body),
            ("no version", Some(&own), Claimed { signatures: &signature[3..], ..claimed }, body),
            ("half of one", Some(&own), Claimed { signatures: &signature[..20], ..claimed }, body),
            ("too many", Some(&own), Claimed { signatures: &late, ..claimed }, body),
        ] {
            let refusal = check(key, Some(&claimed), body).expect_err(what);
            assert_eq!(refusal.code, DenialCode::SignatureInvalid, "{what}");
        }
        assert!(check(Some(&own), None, body).is_err(), "no headers");
        // The placeholder of an absent secret is public, and a signature with it is refused.
        let with_placeholder = Secret::placeholder().sign(id, at, body);
        assert!(check(None, Some(&Claimed { signatures: &with_placeholder, ..claimed }), body).is_err());
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

    #[test]
    fn a_malformed_secret_is_refused_and_not_repeated() {
        for text in [
            "",
            "whsec_",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_!!!!",
            "whsec_AAAA",
            &format!("whsec_{}", "A".repeat(120)),
        ] {
            let Err(words) = Secret::read(&SecretText::new(text.to_owned())) else { panic!("{text}") };
            assert!(words.starts_with("a signing secret is whsec_ and the base64 of 24 to 64 bytes"), "{words}");
        }
    }
}
