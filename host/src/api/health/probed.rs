//! The time of the last probe of the record for writability.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Shortest interval between two probes of the record after a failed commit.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// The time of the last probe of the record for writability.
#[derive(Debug, Default)]
pub struct Probed(Mutex<Option<Instant>>);

impl Probed {
    pub fn is_due(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| now.saturating_duration_since(last) >= PROBE_EVERY);
        if due {
            *last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_probes_write_no_more_often_than_the_bound() {
        let (probed, start) = (Probed::default(), Instant::now());
        let asked = (0..1000).filter(|n| probed.is_due(start + PROBE_EVERY * *n / 100)).count();
        assert_eq!(asked, 10);
    }
}
