//! The deadlines of open turns, by a monotonic clock.
//!
//! No deadline survives a restart: the first drain closes a turn that was open then. See [`crate::runtime::turn_loop`].

use ironclaw_contract::ids::{SessionId, TurnId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The deadline of the open turn of each session. `Instant` is `CLOCK_MONOTONIC`, which pauses while the machine sleeps. After the sleep
/// a turn continues with the time that it had left. With `CLOCK_BOOTTIME` a night of sleep would count, and the host would discard an
/// answer that arrives in the morning.
#[derive(Default)]
pub struct Deadlines(Mutex<HashMap<SessionId, Deadline>>);

/// The deadline of one open turn.
struct Deadline {
    turn: TurnId,
    until: Instant,
    /// The moves so far.
    moved: watch::Sender<Moves>,
    /// The number of the move that the sandbox can read.
    projected: watch::Sender<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// Their number.
    pub count: u64,
    /// The milliseconds by which the sandbox's deadline is later. The host's own deadline may be earlier than that.
    pub ms: u64,
}

impl Deadlines {
    /// Records the deadline of a turn that was opened.
    pub(crate) fn begin(&self, session: SessionId, turn: TurnId, until: Instant) {
        let deadline = Deadline { turn, until, moved: watch::Sender::default(), projected: watch::Sender::default() };
        self.lock().insert(session, deadline);
    }

    /// Returns the deadline of this turn; `None` if it is not the open turn of its session.
    pub(crate) fn for_turn(&self, session: SessionId, turn: TurnId) -> Option<Instant> {
        self.lock().get(&session).filter(|open| open.turn == turn).map(|open| open.until)
    }

    /// Returns the time left of this turn; zero if it is not the open turn of its session.
    pub(crate) fn left(&self, session: SessionId, turn: TurnId) -> Duration {
        self.for_turn(session, turn).map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Moves the deadline of this turn back. Returns the wait until its sandbox can read it; `None` if the turn is not open.
    pub(crate) fn extend(
        &self,
        session: SessionId,
        turn: TurnId,
        by: Duration,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let mut all = self.lock();
        let open = all.get_mut(&session).filter(|open| open.turn == turn)?;
        open.until += by;
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        open.moved.send_modify(|moves| *moves = Moves { count: moves.count + 1, ms: moves.ms + ms });
        let (wanted, mut projected) = (open.moved.borrow().count, open.projected.subscribe());
        Some(async move {
            // An error means that the turn ended.
            let _ = projected.wait_for(|projected| *projected >= wanted).await;
        })
    }

    /// Moves the deadline of this turn forward again, for the host alone.
    pub(crate) fn shorten(&self, session: SessionId, turn: TurnId, by: Duration) {
        if let Some(open) = self.lock().get_mut(&session).filter(|open| open.turn == turn) {
            open.until -= by;
            open.moved.send_modify(|moves| moves.count += 1);
        }
    }

    /// Waits until the deadline of the session's open turn moved and its actor does not know that yet. Returns all moves, and the present
    /// deadline.
    pub(crate) async fn moved(&self, session: SessionId) -> (Moves, Instant) {
        let watched = self.lock().get(&session).map(|open| (open.moved.subscribe(), *open.projected.borrow()));
        if let Some((mut moved, projected)) = watched
            && let Ok(moved) = moved.wait_for(|moves| moves.count > projected).await.map(|moves| *moves)
            && let Some(until) = self.lock().get(&session).map(|open| open.until)
        {
            return (moved, until);
        }
        std::future::pending().await
    }

    /// Records that the sandbox can read these moves.
    pub(crate) fn mark_projected(&self, session: SessionId, moves: Moves) {
        if let Some(open) = self.lock().get(&session) {
            open.projected.send_replace(moves.count);
        }
    }

    /// Forgets the deadline of a session that goes to sleep.
    pub(crate) fn end(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Deadline>> {
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
        assert_eq!(deadlines.for_turn(session, first), Some(until));
        assert_eq!(deadlines.for_turn(SessionId::new(), first), None, "it is another session's");
        deadlines.begin(session, second, until);
        assert_eq!(deadlines.for_turn(session, first), None);
        deadlines.end(session);
        assert_eq!(deadlines.for_turn(session, second), None);
    }

    #[tokio::test]
    async fn moved_deadline_waits_for_its_projection() {
        let (deadlines, session, turn) = (Deadlines::default(), SessionId::new(), TurnId::new());
        let until = Instant::now() + Duration::from_secs(300);
        deadlines.begin(session, turn, until);
        assert!(deadlines.extend(session, TurnId::new(), Duration::from_secs(1)).is_none(), "it is another turn");
        let shown = deadlines.extend(session, turn, Duration::from_secs(10)).expect("it is open");
        assert_eq!(deadlines.for_turn(session, turn), Some(until + Duration::from_secs(10)));
        let (moves, _) = deadlines.moved(session).await;
        assert_eq!(moves, Moves { count: 1, ms: 10_000 });
        deadlines.mark_projected(session, moves);
        shown.await;
        deadlines.shorten(session, turn, Duration::from_secs(4));
        let (moves, now) = deadlines.moved(session).await;
        assert_eq!((moves, now), (Moves { count: 2, ms: 10_000 }, until + Duration::from_secs(6)));
    }
}
