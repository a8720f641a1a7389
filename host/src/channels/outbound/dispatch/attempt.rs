//! The outcome of an attempt to send: it decides if there is another one.

use crate::channels::inbound::channel::outgoing;
use crate::channels::outbound::delivery::journal::{self, Outcome};
use crate::registry::live_settings::channels::Attempts;
use std::time::Duration;

/// Returns the outcome of an interrupted attempt: a retry only if the channel is idempotent.
pub(super) fn interrupted(words: String, idempotent: bool, wait: Duration) -> Outcome {
    if idempotent { Outcome::Retry(words, wait) } else { Outcome::Unknown(words) }
}

/// Decides the outcome from the answer of the channel. A delivery that may have arrived is retried only if the channel is idempotent.
pub(super) fn judge(
    sent: outgoing::Outcome,
    attempt: u32,
    idempotent: bool,
    attempts: Attempts,
    chance: u32,
) -> Outcome {
    use outgoing::Outcome as Sent;
    let is_last = attempt >= attempts.most;
    let wait = journal::backoff(attempt, attempts.backoff_ms, chance);
    match sent {
        Sent::Received => Outcome::Received,
        Sent::Later(words, _) if is_last => Outcome::Failed(format!("{words}, the last of {attempt} attempts")),
        Sent::Later(words, after) => Outcome::Retry(words, wait.max(after.unwrap_or_default())),
        Sent::Unknown(words) if idempotent && !is_last => Outcome::Retry(words, wait),
        Sent::Unknown(words) => Outcome::Unknown(words),
        Sent::Refused(words) => Outcome::Failed(words),
    }
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
}
