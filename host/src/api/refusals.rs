//! Puts into the ledger that somebody was not let in, so that whoever knocks often fills it no faster than rarely.
//!
//! Each reason is written when it first comes, then counted and written as a sum at the end of a window that doubles while it
//! goes on. Never says who a token belongs to and never holds what was sent. Next: `api::auth`.

use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_ledger::Entry;
use ironclaw_state::State;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The first window.
const WINDOW_MIN: Duration = Duration::from_secs(10);

/// The longest window: a day of knocking makes at most 24 entries a reason beyond the first few.
const WINDOW_MAX: Duration = Duration::from_secs(3600);

/// What was refused, and where it knocked.
pub type Reason = (DenialCode, &'static str);

/// One reason's window.
#[derive(Debug, Clone, Copy)]
struct Window {
    ends: Instant,
    length: Duration,
    counted: u64,
}

/// What to do about one refusal.
#[derive(Debug, PartialEq, Eq)]
enum Todo {
    /// Write it now; nothing of its kind came lately.
    Write,
    /// It is the first that is only counted: write the sum at this time.
    SumUpAt(Instant),
    /// It is counted.
    Nothing,
}

/// Every reason's window. The reasons are a closed set of words of our own, so this is bounded.
#[derive(Debug, Default)]
struct Windows(HashMap<Reason, Window>);

impl Windows {
    fn note(&mut self, reason: Reason, now: Instant) -> Todo {
        match self.0.get_mut(&reason) {
            Some(window) if now < window.ends => {
                window.counted += 1;
                if window.counted == 1 { Todo::SumUpAt(window.ends) } else { Todo::Nothing }
            }
            // Counted ones are summed up by whoever was told to; a window that ran out without any is over.
            _ => {
                self.0.insert(reason, Window { ends: now + WINDOW_MIN, length: WINDOW_MIN, counted: 0 });
                Todo::Write
            }
        }
    }

    /// How many were counted; the next window is twice as long.
    fn sum_up(&mut self, reason: Reason, now: Instant) -> u64 {
        let Some(window) = self.0.get_mut(&reason) else { return 0 };
        let counted = std::mem::take(&mut window.counted);
        window.length = (window.length * 2).min(WINDOW_MAX);
        window.ends = now + window.length;
        counted
    }
}

/// The notebook that every request shares.
#[derive(Clone)]
pub struct Refusals {
    state: State,
    event: LedgerEvent,
    windows: Arc<Mutex<Windows>>,
}

impl Refusals {
    /// An empty one, whose entries are called this.
    pub fn new(state: State, event: LedgerEvent) -> Self {
        Self { state, event, windows: Arc::default() }
    }

    /// Notes one refusal. When this returns, it is in the ledger or counted.
    pub async fn note(&self, reason: Reason) {
        self.state.metrics().refused(reason.0.name(), reason.1);
        let todo = self.windows().note(reason, Instant::now());
        match todo {
            Todo::Write => self.write(reason, 1).await,
            Todo::SumUpAt(time) => {
                let own = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep_until(time).await;
                    own.sum_up(reason).await;
                });
            }
            Todo::Nothing => {}
        }
    }

    /// Writes down what is counted; for the end of the host.
    pub async fn flush(&self) {
        let reasons: Vec<Reason> = self.windows().0.keys().copied().collect();
        for reason in reasons {
            self.sum_up(reason).await;
        }
    }

    async fn sum_up(&self, reason: Reason) {
        let counted = self.windows().sum_up(reason, Instant::now());
        if counted > 0 {
            self.write(reason, counted).await;
        }
    }

    fn windows(&self) -> std::sync::MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, (code, via): Reason, count: u64) {
        tracing::warn!(%code, via, count, "{}", self.event);
        let entry = Entry::new(self.event).with("code", code).with("via", via).with("count", count);
        if let Err(error) = self.state.write(move |tx| entry.append(tx)).await {
            tracing::error!(%error, "a refusal was not noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_a_kind_is_written_and_a_flood_ever_less_often() {
        let (start, reason) = (Instant::now(), (DenialCode::TokenInvalid, "loopback"));
        let mut windows = Windows::default();
        assert_eq!(windows.note(reason, start), Todo::Write);
        assert_eq!(
            windows.note((DenialCode::TokenMissing, "loopback"), start),
            Todo::Write,
            "another reason is another kind"
        );
        // A day of knocking ten times a second.
        let (mut entries, mut refused, mut due) = (1, 1, None);
        for tenth in 1..864_000_u32 {
            let now = start + Duration::from_millis(100) * tenth;
            if due.is_some_and(|due| now >= due) {
                refused += windows.sum_up(reason, now);
                (entries, due) = (entries + 1, None);
            }
            match windows.note(reason, now) {
                Todo::Write => panic!("a window is never left open"),
                Todo::SumUpAt(time) => due = Some(time),
                Todo::Nothing => {}
            }
        }
        let left = windows.sum_up(reason, start + WINDOW_MAX * 25);
        assert!(entries <= 40, "{entries} entries");
        assert_eq!(refused + left, 864_000, "each is counted once");
        let later = start + WINDOW_MAX * 30;
        assert_eq!(windows.note(reason, later), Todo::Write, "after a pause it begins anew");
    }
}
