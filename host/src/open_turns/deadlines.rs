//! Until when each open turn may go on, by a clock that nobody sets.
//!
//! Holds nothing over a restart: a turn that was open then is closed by the first drain. Next: `runtime::turn_loop`.

use ironclaw_contract::ids::{SessionId, TurnId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The deadline of each session's open turn. `Instant` is `CLOCK_MONOTONIC`, which stands still while the machine sleeps: a turn
/// that slept with it goes on with the time that it had left. By `CLOCK_BOOTTIME` the night would count, and the answer that the
/// turn was about to get would be thrown away in the morning.
#[derive(Default)]
pub struct Deadlines(Mutex<HashMap<SessionId, (TurnId, Instant)>>);

impl Deadlines {
    /// Notes the deadline of a turn that was opened.
    pub(crate) fn begin(&self, session: SessionId, turn: TurnId, until: Instant) {
        self.lock().insert(session, (turn, until));
    }

    /// When this turn is over; `None` where it is not the one that its session works on.
    pub(crate) fn of(&self, session: SessionId, turn: TurnId) -> Option<Instant> {
        self.lock().get(&session).filter(|(open, _)| *open == turn).map(|(_, until)| *until)
    }

    /// The time that is left of this turn; none where it is not the one that its session works on.
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
    fn only_the_turn_that_is_worked_on_has_a_deadline() {
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
