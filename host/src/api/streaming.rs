//! The partial answer of a turn, as a stream for clients that follow its message.
//!
//! Never lets through a look-alike of the host's wrappers, not even in pieces. A slow client gets more text at once. See `api::chat`,
//! `open_turns::streaming`.

use ironclaw_contract::ids::TurnId;
use ironclaw_contract::operator::Draft;
use ironclaw_model::streaming::PartialText;
use ironclaw_text::lookalike;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Text that comes within this time of the last event is sent in one event.
const COALESCE_TIME: Duration = Duration::from_millis(20);

/// A reader of the partial output of one turn.
pub struct PartialOutput {
    /// The turn.
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
