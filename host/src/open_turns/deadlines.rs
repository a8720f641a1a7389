//! The deadlines of open turns, by a monotonic clock.
//!
//! No deadline survives a restart: the first drain closes a turn that was open then. See [`crate::runtime::turn_loop`].

use ironclaw_contract::ids::{SessionId, TurnId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The deadline of the open turn of each session. `Instant` is `CLOCK_MONOTONIC`, which pauses while the machine sleeps. After the sleep
/// a turn continues with the time that it had left. With `CLOCK_BOOTTIME` a night of sleep would count, and the host would discard an
/// answer that arrives in the morning.
#[derive(Default)]
pub struct Deadlines(Mutex<HashMap<SessionId, (TurnId, Instant)>>);

impl Deadlines {
    /// Records the deadline of a turn that was opened.
    pub(crate) fn begin(&self, session: SessionId, turn: TurnId, until: Instant) {
        self.lock().insert(session, (turn, until));
    }

    /// Returns the deadline of this turn; `None` if it is not the open turn of its session.
    pub(crate) fn of(&self, session: SessionId, turn: TurnId) -> Option<Instant> {
        self.lock().get(&session).filter(|(open, _)| *open == turn).map(|(_, until)| *until)
    }

    /// Returns the time left of this turn; zero if it is not the open turn of its session.
    pub(crate) fn left(&self, session: SessionId, turn: TurnId) -> Duration {
        self.of(session, turn).map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Forgets the deadline of a session that goes to sleep.
    pub(crate) fn end(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, (TurnId, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_open_turn_of_a_session_has_a_deadline() {
        let (deadlines, session) = (Deadlines::default(), SessionId::new());
        let (first, second) = (TurnId::new(), TurnId::new());
        let until = Instant::now() + Duration::from_secs(300);
        deadlines.begin(session, first, until);
        assert_eq!(deadlines.of(session, first), Some(until));
        assert_eq!(deadlines.of(SessionId::new(), first), None, "it is another session's");
        deadlines.begin(session, second, until);
        assert_eq!(deadlines.of(session, first), None);
        deadlines.end(session);
        assert_eq!(deadlines.of(session, second), None);
    }
}
