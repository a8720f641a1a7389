//! Ledger entries about refused requests, at a bounded rate.
//!
//! The first refusal of each reason is written at once. Later ones are counted, and a sum is written at the end of each window; windows
//! double while refusals continue. Never names the person of a token, and never holds content of a request. See `api::auth`.

use super::hooks::Cause;
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent, SignatureRule};
use ironclaw_state::State;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const WINDOW_MIN: Duration = Duration::from_secs(10);

/// The longest window: a day of refusals makes at most 24 entries of each reason after the first few.
const WINDOW_MAX: Duration = Duration::from_secs(3600);

/// Channels and rules that one sum names; further ones count without a name.
const CAUSES_MAX: usize = 16;

/// A code with the entrance of the request.
pub type Reason = (DenialCode, &'static str);

/// The window of one reason.
#[derive(Debug, Clone)]
struct Window {
    ends: Instant,
    length: Duration,
    counted: Counts,
}

/// Refusals by their causes, at most [`CAUSES_MAX`] of these.
type Counts = HashMap<Cause, u64>;

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
    fn note(&mut self, reason: Reason, cause: &Cause, now: Instant) -> Todo {
        match self.0.get_mut(&reason) {
            Some(window) if now < window.ends => {
                let is_first = window.counted.is_empty();
                let is_named = window.counted.len() < CAUSES_MAX || window.counted.contains_key(cause);
                let cause = if is_named { cause.clone() } else { Cause::default() };
                *window.counted.entry(cause).or_default() += 1;
                if is_first { Todo::SumUpAt(window.ends) } else { Todo::Nothing }
            }
            // The task of the first counted refusal writes the sum; a window that ended with none is over.
            _ => {
                self.0.insert(reason, Window { ends: now + WINDOW_MIN, length: WINDOW_MIN, counted: Counts::new() });
                Todo::Write
            }
        }
    }

    /// Returns the counts of a window, and doubles the next window.
    fn sum_up(&mut self, reason: Reason, now: Instant) -> Counts {
        let Some(window) = self.0.get_mut(&reason) else { return Counts::new() };
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
        self.record_cause(reason, Cause::default()).await;
    }

    /// Counts one refusal with its channel and rule.
    pub async fn record_cause(&self, reason: Reason, cause: Cause) {
        self.state.metrics().refused(reason.0.name(), reason.1);
        let todo = self.windows().note(reason, &cause, Instant::now());
        match todo {
            Todo::Write => self.write(reason, Counts::from([(cause, 1)])).await,
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
        if !counted.is_empty() {
            self.write(reason, counted).await;
        }
    }

    fn windows(&self) -> std::sync::MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, reason: Reason, counted: Counts) {
        let count: u64 = counted.values().sum();
        let refused = by_cause(counted);
        let (code, via) = reason;
        tracing::warn!(%code, via, count, ?refused, "{}", self.event);
        let mut entry = Entry::new(self.event).with("code", code).with("via", via).with("count", count);
        match refused.as_slice() {
            [] => {}
            [(Cause { channel, rule }, _)] => {
                if let Some(channel) = channel {
                    entry = entry.with("channel", channel.as_str());
                }
                if let Some(rule) = rule {
                    entry = entry.with("rule", rule.name());
                }
            }
            several => {
                let lines: Vec<String> = several.iter().map(line).collect();
                entry = entry.with("refused", lines);
            }
        }
        if let Err(error) = self.state.write(move |tx| entry.append(tx)).await {
            tracing::error!(%error, "cannot record a refusal");
        }
    }
}

/// Returns the counts with a channel or a rule, the most frequent first.
fn by_cause(counted: Counts) -> Vec<(Cause, u64)> {
    let mut refused: Vec<_> = counted.into_iter().filter(|(cause, _)| *cause != Cause::default()).collect();
    refused.sort_by(|a, b| (b.1, &a.0.channel).cmp(&(a.1, &b.0.channel)));
    refused
}

/// Returns one count as `CHANNEL RULE COUNT`, with a dash for what is not known.
fn line(counted: &(Cause, u64)) -> String {
    let (Cause { channel, rule }, count) = counted;
    format!("{} {} {count}", channel.as_deref().unwrap_or("-"), rule.map_or("-", SignatureRule::name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_refusal_is_written_and_a_flood_in_few_sums() {
        let (start, reason) = (Instant::now(), (DenialCode::TokenInvalid, "loopback"));
        let cause = Cause::default();
        let mut windows = Windows::default();
        assert_eq!(windows.note(reason, &cause, start), Todo::Write);
        assert_eq!(
            windows.note((DenialCode::TokenMissing, "loopback"), &cause, start),
            Todo::Write,
            "another reason is another kind"
        );
        // A day of knocking ten times a second.
        let (mut entries, mut refused, mut due) = (1, 1, None);
        for tenth in 1..864_000_u32 {
            let now = start + Duration::from_millis(100) * tenth;
            if due.is_some_and(|due| now >= due) {
                refused += windows.sum_up(reason, now).values().sum::<u64>();
                (entries, due) = (entries + 1, None);
            }
            match windows.note(reason, &cause, now) {
                Todo::Write => panic!("a window is never left open"),
                Todo::SumUpAt(time) => due = Some(time),
                Todo::Nothing => {}
            }
        }
        let left: u64 = windows.sum_up(reason, start + WINDOW_MAX * 25).values().sum();
        assert!(entries <= 40, "{entries} entries");
        assert_eq!(refused + left, 864_000, "each is counted once");
        let later = start + WINDOW_MAX * 30;
        assert_eq!(windows.note(reason, &cause, later), Todo::Write, "after a pause it begins again");
    }
    #[test]
    fn sum_names_channels_and_rules_up_to_a_bound() {
        let (start, reason) = (Instant::now(), (DenialCode::SignatureInvalid, "webhook"));
        let mut windows = Windows::default();
        let cause = |channel: &str, rule| Cause { channel: Some(channel.to_owned()), rule: Some(rule) };
        windows.note(reason, &Cause::default(), start);
        for _ in 0..2 {
            windows.note(reason, &cause("shop", SignatureRule::Wrong), start);
        }
        windows.note(reason, &cause("desk", SignatureRule::Missing), start);
        windows.note(reason, &Cause { channel: None, rule: Some(SignatureRule::Wrong) }, start);
        let lines: Vec<String> = by_cause(windows.sum_up(reason, start)).iter().map(line).collect();
        assert_eq!(lines, ["shop signature_wrong 2", "- signature_wrong 1", "desk signature_missing 1"]);
        for number in 0..3 * CAUSES_MAX {
            windows.note(reason, &cause(&format!("c{number}"), SignatureRule::Wrong), start);
        }
        let counted = windows.sum_up(reason, start);
        assert_eq!((counted.len(), counted.values().sum::<u64>()), (CAUSES_MAX + 1, 3 * CAUSES_MAX as u64));
    }
}
