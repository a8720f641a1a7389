//! The time for which a person waits for an answer.
//!
//! Never passes while the turn waits for people. See [`super::follow`].

use std::time::Duration;
use tokio::time::Instant;

/// The time until which the person waits for the answer. It does not pass while the turn waits for people.
pub struct Patience {
    deadline: Instant,
    /// The start of the pause.
    since: Option<Instant>,
}

impl Patience {
    pub fn new(wait: Duration) -> Self {
        Self { deadline: Instant::now() + wait, since: None }
    }

    /// Returns the end of the wait, unless it is paused.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns whether the wait is paused.
    pub fn is_paused(&self) -> bool {
        self.since.is_some()
    }

    /// Starts or ends a pause.
    pub fn pause(&mut self, is_paused: bool, now: Instant) {
        match (is_paused, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.deadline += now.saturating_duration_since(since);
                self.since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_pause_does_not_count() {
        let mut patience = Patience::new(Duration::from_secs(10));
        let (deadline, now) = (patience.deadline(), Instant::now());
        let at = |second| now + Duration::from_secs(second);
        patience.pause(false, at(1));
        assert!(!patience.is_paused());
        for second in [2, 3] {
            patience.pause(true, at(second));
            assert!(patience.is_paused());
        }
        patience.pause(false, at(90));
        assert_eq!((patience.is_paused(), patience.deadline()), (false, deadline + Duration::from_secs(88)));
        patience.pause(true, at(91));
        patience.pause(false, at(92));
        assert_eq!(patience.deadline(), deadline + Duration::from_secs(89));
    }
}
