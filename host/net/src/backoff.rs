//! The backoff of retries: of model requests, launches, deliveries, and heads of the ledger.
//!
//! Pure: the caller counts the attempts, draws the random number, and waits. It is in this crate because the model endpoints use it,
//! and the host depends on this crate.

use std::time::Duration;

/// Pauses that grow with each failed attempt, up to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failed attempt.
    pub first: Duration,
    /// Factor between a pause and the one before it.
    pub factor: u32,
    /// The longest pause; jitter may exceed it.
    pub longest: Duration,
}

/// The random share of a pause, so that many callers do not retry at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// A pause between 75 % and 125 %.
    Around,
    /// A pause between 100 % and 200 %.
    Above,
}

impl Backoff {
    /// Returns the pause after this number of failed attempts; after 0 it is the first pause.
    pub fn pause(self, attempts: u32) -> Duration {
        let grown = self.factor.saturating_pow(attempts.saturating_sub(1));
        self.first.saturating_mul(grown).min(self.longest)
    }

    /// Returns the pause after this number of failed attempts with jitter, in whole milliseconds. `chance` 0 gives the shortest
    /// pause, [`u32::MAX`] the longest.
    pub fn jittered(self, attempts: u32, jitter: Jitter, chance: u32) -> Duration {
        let pause = self.pause(attempts).as_millis();
        let (least, spread) = match jitter {
            Jitter::Around => (pause - pause / 4, pause / 2),
            Jitter::Above => (pause, pause),
        };
        let ms = least + spread * u128::from(chance) / u128::from(u32::MAX);
        Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn each_pause_grows_by_the_factor_up_to_the_bound() {
        let launches = Backoff { first: ms(200), factor: 2, longest: ms(30_000) };
        let pauses = [0, 1, 2, 3, 8, 9, 40, u32::MAX].map(|attempts| launches.pause(attempts).as_millis());
        assert_eq!(pauses, [200, 200, 400, 800, 25_600, 30_000, 30_000, 30_000]);
        let deliveries = Backoff { first: ms(1000), factor: 4, longest: ms(21_600_000) };
        let pauses = [1, 2, 3, 8, 9].map(|attempts| deliveries.pause(attempts).as_millis());
        assert_eq!(pauses, [1000, 4000, 16_000, 16_384_000, 21_600_000]);
        assert_eq!(Backoff { first: ms(60_000), ..launches }.pause(1), ms(30_000), "the first is bounded as well");
        assert_eq!(Backoff { first: Duration::ZERO, ..launches }.pause(9), Duration::ZERO);
    }

    #[test]
    fn jitter_moves_a_pause_within_its_share() {
        let endpoint = Backoff { first: ms(500), factor: 2, longest: ms(20_000) };
        let pause = |attempts, jitter, chance| endpoint.jittered(attempts, jitter, chance).as_millis();
        assert_eq!([0, u32::MAX].map(|chance| pause(1, Jitter::Above, chance)), [500, 1000]);
        assert_eq!([0, u32::MAX].map(|chance| pause(100, Jitter::Above, chance)), [20_000, 40_000]);
        assert_eq!([0, u32::MAX].map(|chance| pause(2, Jitter::Around, chance)), [750, 1250]);
        let endless = Backoff { first: Duration::MAX, factor: u32::MAX, longest: Duration::MAX };
        assert_eq!(endless.jittered(u32::MAX, Jitter::Above, u32::MAX), ms(u64::MAX));
    }
}
