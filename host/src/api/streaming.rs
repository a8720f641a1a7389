//! The partial answer of a turn and the progress of its calls, as streams for clients that follow its message.
//!
//! Never lets through a look-alike of the host's wrappers, not even in pieces. A slow client gets more text at once. See `api::chat`,
//! `turns::open_turns::streaming`.

use crate::turns::open_turns::progress::Newest;
use ironclaw_contract::ids::{CallId, TurnId};
use ironclaw_model::streaming::PartialText;
use ironclaw_operator::{CallProgress, Draft};
use ironclaw_text::lookalike;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Text that comes within this time of the last event is sent in one event.
const COALESCE_TIME: Duration = Duration::from_millis(20);

/// A reader of the partial output of one turn.
pub struct PartialOutput {
    pub turn: TurnId,
    words: watch::Receiver<PartialText>,
    neutral: Neutralizer,
    next_at: Instant,
}

impl PartialOutput {
    /// Starts at the beginning of the present text.
    pub fn new(turn: TurnId, words: watch::Receiver<PartialText>) -> Self {
        Self { turn, words, neutral: Neutralizer::default(), next_at: Instant::now() }
    }

    /// Waits for more text, forever if the turn has ended. Cancel-safe: a dropped wait loses no text.
    pub async fn next(&mut self) -> Draft {
        tokio::time::sleep_until(self.next_at).await;
        loop {
            let more = self.neutral.take(&self.words.borrow_and_update());
            if let Some(more) = more {
                self.next_at = Instant::now() + COALESCE_TIME;
                return more;
            }
            if self.words.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// A reader of the progress of the calls of one turn.
pub struct ProgressOfCalls {
    newest: watch::Receiver<Newest>,
    /// The progress that was read, of the calls that still run.
    read: HashMap<CallId, CallProgress>,
}

impl ProgressOfCalls {
    /// Starts with the present progress.
    pub fn new(newest: watch::Receiver<Newest>) -> Self {
        Self { newest, read: HashMap::new() }
    }

    /// Waits for progress of a call of this turn, which still runs then; forever without a turn. A slow reader gets the newest progress
    /// alone. Cancel-safe: a dropped wait loses none.
    pub async fn next(&mut self, turn: Option<TurnId>) -> CallProgress {
        loop {
            if let Some(progress) = self.unread(turn) {
                self.read.insert(progress.call_id, progress.clone());
                return progress;
            }
            if self.newest.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn unread(&mut self, turn: Option<TurnId>) -> Option<CallProgress> {
        let newest = self.newest.borrow_and_update();
        self.read.retain(|call, _| newest.contains_key(call));
        let mut of_turn = newest.values().filter(|(of, _)| Some(*of) == turn).map(|(_, progress)| progress);
        of_turn.find(|progress| self.read.get(&progress.call_id) != Some(progress)).cloned()
    }
}

/// The position of a client in one attempt, with the filter for look-alikes.
#[derive(Default)]
struct Neutralizer {
    attempt: u32,
    /// Bytes of the model's text that were read.
    read: usize,
    /// Bytes that were sent.
    sent: u64,
    stream: lookalike::Stream,
}

impl Neutralizer {
    /// Returns the new text that is safe to send. Holds back text that may become a look-alike.
    fn take(&mut self, words: &PartialText) -> Option<Draft> {
        if words.attempt != self.attempt {
            *self = Self { attempt: words.attempt, ..Self::default() };
        }
        let text = self.stream.push(words.text.get(self.read..).unwrap_or_default());
        self.read = words.text.len();
        if text.is_empty() {
            return None;
        }
        let from = self.sent;
        self.sent += text.len() as u64;
        Some(Draft { attempt: self.attempt, from, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::open_turns::progress::RunningCalls;
    use ironclaw_model::streaming;

    /// Returns the events for text that comes in these pieces.
    fn told(pieces: &[&str]) -> Vec<Draft> {
        let (mut neutral, mut words) = (Neutralizer::default(), PartialText { attempt: 1, text: String::new() });
        let mut told = Vec::new();
        for piece in pieces {
            words.text.push_str(piece);
            told.extend(neutral.take(&words));
        }
        told
    }

    #[test]
    fn split_look_alike_is_neutral_and_no_text_is_sent_twice() {
        let text = "a [MSG_AUTH:1] b <tool_result> c";
        let whole = lookalike::neutralise(text).into_owned();
        for at in 1..text.len() {
            let told = told(&[&text[..at], &text[at..], " end"]);
            let said: String = told.iter().map(|draft| draft.text.as_str()).collect();
            assert_eq!(said, format!("{whole} end"), "cut at {at}");
            let mut from = 0;
            for draft in told {
                assert_eq!((draft.attempt, draft.from), (1, from), "cut at {at}");
                from += draft.text.len() as u64;
            }
        }
        let undecided = told(&["a [MSG_", "AU"]);
        assert!(undecided.iter().all(|draft| !draft.text.contains('[')), "held back until it is decided");
    }

    #[tokio::test]
    async fn progress_is_read_once_and_until_the_end_of_its_call() {
        let (calls, turn) = (RunningCalls::default(), TurnId::new());
        let mut following = ProgressOfCalls::new(calls.watch());
        let (ours, other) = (CallId::new(), CallId::new());
        let (running, others) = (calls.begin(turn, ours, "a__b"), calls.begin(TurnId::new(), other, "a__b"));
        others.report(1.0, None, None);
        running.report(1.0, Some(3.0), None);
        running.report(2.0, Some(3.0), Some("words".to_owned()));
        let read = following.next(Some(turn)).await;
        assert_eq!((read.call_id, read.progress, read.words.as_deref()), (ours, 2.0, Some("words")));
        running.report(3.0, Some(3.0), None);
        drop(running);
        let nothing = tokio::time::timeout(Duration::ZERO, following.next(Some(turn))).await;
        assert!(nothing.is_err(), "the call has ended");
        assert!(following.read.is_empty());
    }

    #[tokio::test]
    async fn new_attempt_starts_over_and_slow_listener_misses_nothing() {
        let draft = streaming::PartialAnswer::default();
        draft.begin();
        draft.push("one [");
        let mut following = PartialOutput::new(TurnId::new(), draft.watch());
        assert_eq!(following.next().await, Draft { attempt: 1, from: 0, text: "one ".to_owned() });
        draft.begin();
        draft.push("two ");
        draft.push("three");
        assert_eq!(following.next().await, Draft { attempt: 2, from: 0, text: "two three".to_owned() });
        draft.push(" four");
        assert_eq!(following.next().await, Draft { attempt: 2, from: 9, text: " four".to_owned() });
        let nothing = tokio::time::timeout(Duration::ZERO, following.next()).await;
        assert!(nothing.is_err(), "there is nothing new");
    }
}
