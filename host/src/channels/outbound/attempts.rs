//! The attempts of a delivery: the bounds, the waits between them, and the decision about another one.
//!
//! Sends nothing and reads no clock. See [`super::dispatch`] and [`super::journal`].

use crate::channels::inbound::channel::outgoing;
use crate::registry::live_settings::channels::Attempts;
use ironclaw_net::backoff::{Backoff, Jitter};
use std::time::Duration;

/// Sends in flight on one channel.
pub const SENDS_AT_ONCE_MAX: i64 = 8;

/// Answers to other agents that one pass records.
pub const TO_AGENTS_MAX: i64 = 64;

/// The factor from one wait to the next.
const BACKOFF_FACTOR: u32 = 4;

/// The longest wait between two attempts, without its jitter.
const BACKOFF_MS_MAX: u64 = 6 * 60 * 60 * 1000;

/// A longer wait for an attempt is of a clock that was ahead.
pub const WAIT_MS_MAX: i64 = 8 * 60 * 60 * 1000;

/// The wait before the next try after an error of the host, such as a full disk.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The wait before a delivery is sent again whose task panicked in the host.
pub const PANIC_WAIT: Duration = Duration::from_secs(60);

/// The outcome of one attempt, or the end of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The delivery is received.
    Received,
    /// The delivery is sent again after this wait.
    Retry(String, Duration),
    /// It is unknown whether the delivery arrived.
    Unknown(String),
    /// The delivery did not arrive, and is not retried.
    Failed(String),
    /// The person of a notification has no place.
    Unplaced(String),
    /// The object of a notification ended.
    Withdrawn,
}

/// Returns the outcome of an interrupted attempt: a retry only if the channel is idempotent.
pub fn interrupted(words: &str, idempotent: bool, wait: Duration) -> Outcome {
    if idempotent { Outcome::Retry(words.to_owned(), wait) } else { Outcome::Unknown(words.to_owned()) }
}

/// Decides the outcome from the answer of the channel. A delivery that may have arrived is retried only if the channel is idempotent.
pub fn judge(sent: outgoing::Outcome, attempt: u32, idempotent: bool, attempts: Attempts, chance: u32) -> Outcome {
    use outgoing::Outcome as Sent;
    let is_last = attempt >= attempts.most;
    let wait = backoff(attempt, attempts.backoff_ms, chance);
    match sent {
        Sent::Received => Outcome::Received,
        Sent::Later(words, _) if is_last => Outcome::Failed(format!("{words}, the last of {attempt} attempts")),
        Sent::Later(words, after) => Outcome::Retry(words, wait.max(after.unwrap_or_default())),
        Sent::Unknown(words) if idempotent && !is_last => Outcome::Retry(words, wait),
        Sent::Unknown(words) => Outcome::Unknown(words),
        Sent::Refused(words) => Outcome::Failed(words),
    }
}

/// Returns the wait after this many attempts, with a jitter of up to a quarter from `chance`.
fn backoff(attempts: u32, base_ms: u64, chance: u32) -> Duration {
    let (first, longest) = (Duration::from_millis(base_ms), Duration::from_millis(BACKOFF_MS_MAX));
    Backoff { first, factor: BACKOFF_FACTOR, longest }.jittered(attempts, Jitter::Around, chance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgoing::Outcome as Sent;

    #[test]
    fn unknown_outcome_is_retried_only_if_idempotent() {
        let attempts = Attempts { most: 3, backoff_ms: 1000 };
        let unknown = || Sent::Unknown("w".to_owned());
        let judged = |sent, attempt, idempotent| judge(sent, attempt, idempotent, attempts, 0);
        for attempt in 1..=4 {
            assert_eq!(judged(unknown(), attempt, false), Outcome::Unknown("w".to_owned()));
        }
        assert!(matches!(judged(unknown(), 2, true), Outcome::Retry(..)));
        assert_eq!(
            judged(unknown(), 3, true),
            Outcome::Unknown("w".to_owned()),
            "and after the last attempt it is unknown too"
        );
        let later = |after| Sent::Later("w".to_owned(), after);
        let hour = Duration::from_secs(3600);
        assert_eq!(judged(later(Some(hour)), 1, false), Outcome::Retry("w".to_owned(), hour));
        assert_eq!(judged(later(None), 3, true), Outcome::Failed("w, the last of 3 attempts".to_owned()));
        assert_eq!(judged(Sent::Refused("w".to_owned()), 1, true), Outcome::Failed("w".to_owned()));
        assert_eq!(judged(Sent::Received, 9, false), Outcome::Received);
    }

    #[test]
    fn backoff_grows_to_its_bound_with_at_most_a_quarter_jitter() {
        let wait = |attempts, chance| backoff(attempts, 1000, chance).as_millis();
        assert_eq!((wait(1, 0), wait(1, u32::MAX)), (750, 1250));
        assert_eq!((wait(2, u32::MAX / 2) + 1) / 1000, 4);
        assert_eq!(wait(100, 0), u128::from(BACKOFF_MS_MAX) * 3 / 4);
        assert_eq!(backoff(u32::MAX, u64::MAX, u32::MAX).as_millis(), u128::from(BACKOFF_MS_MAX) * 5 / 4);
        let waits: Vec<u128> = (1..12).map(|attempts| wait(attempts, 7)).collect();
        assert!(waits.is_sorted());
    }
}
