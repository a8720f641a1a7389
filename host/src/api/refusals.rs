//! Ledger entries about refused requests, at a bounded rate.
//!
//! The first refusal of each reason is written at once. Later ones are counted, and a sum is written at the end of each window; windows
//! double while refusals continue. Never names the person of a token, and never holds content of a request. See `api::auth`.

use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_ledger::Entry;
use ironclaw_state::State;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const WINDOW_MIN: Duration = Duration::from_secs(10);

/// The longest window: a day of refusals makes at most 24 entries of each reason after the first few.
const WINDOW_MAX: Duration = Duration::from_secs(3600);

/// A code with the entrance of the request.
pub type Reason = (DenialCode, &'static str);

/// The window of one reason.
#[derive(Debug, Clone, Copy)]
struct Window {
    ends: Instant,
    length: Duration,
    counted: u64,
}

/// The next step for one refusal.
#[derive(Debug, PartialEq, Eq)]
enum Todo {
    /// Write it now: its reason has no open window.
    Write,
    /// Write a sum at this time: it is the first in its window.
    SumUpAt(Instant),
    /// Only count it.
    Nothing,
}

/// The windows of all reasons. The reasons are a closed set of the host's own words, so their number is bounded.
#[derive(Debug, Default)]
struct Windows(HashMap<Reason, Window>);

impl Windows {
    fn note(&mut self, reason: Reason, now: Instant) -> Todo {
        match self.0.get_mut(&reason) {
            Some(window) if now < window.ends => {
                window.counted += 1;
                if window.counted == 1 { Todo::SumUpAt(window.ends) } else { Todo::Nothing }
            }
            // The task of the first counted refusal writes the sum; a window that ended with none is over.
            _ => {
                self.0.insert(reason, Window { ends: now + WINDOW_MIN, length: WINDOW_MIN, counted: 0 });
                Todo::Write
            }
        }
    }

    /// Returns the count of a window, and doubles the next window.
    fn sum_up(&mut self, reason: Reason, now: Instant) -> u64 {
        let Some(window) = self.0.get_mut(&reason) else { return 0 };
        let counted = std::mem::take(&mut window.counted);
        window.length = (window.length * 2).min(WINDOW_MAX);
        window.ends = now + window.length;
        counted
    }
}

/// The counter that all requests share.
#[derive(Clone)]
pub struct Refusals {
    state: State,
    event: LedgerEvent,
    windows: Arc<Mutex<Windows>>,
}

impl Refusals {
    /// Returns an empty counter that writes entries of this event.
    pub fn new(state: State, event: LedgerEvent) -> Self {
        Self { state, event, windows: Arc::default() }
    }

    /// Counts one refusal. When this returns, the ledger has it or a sum will include it.
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

    /// Writes the open sums; called when the host ends.
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
            tracing::error!(%error, "cannot record a refusal");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_refusal_is_written_and_a_flood_in_few_sums() {
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
        assert_eq!(windows.note(reason, later), Todo::Write, "after a pause it begins again");
    }
}
