//! The partial text of an output while a model streams it, for watchers.
//!
//! Never the answer: a reply names a sealed output. A slow watcher misses intermediate steps, but no words. See
//! [`crate::endpoint`].

use tokio::sync::watch;

/// The text so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialText {
    /// Number of the attempt. A new attempt discards the text of the failed one.
    pub attempt: u32,
    /// Text of the attempt so far, as the model sent it.
    pub text: String,
}

/// Sink for the words that an endpoint streams.
#[derive(Debug, Clone, Default)]
pub struct PartialAnswer(watch::Sender<PartialText>);

impl PartialAnswer {
    /// Begins a new attempt, and discards the text of the one before.
    pub fn begin(&self) {
        self.0.send_modify(|words| *words = PartialText { attempt: words.attempt + 1, text: String::new() });
    }

    pub fn push(&self, text: &str) {
        self.0.send_modify(|words| words.text.push_str(text));
    }

    /// Replaces the text. One that continues what is there begins no new attempt.
    pub fn replace(&self, text: &str) {
        self.0.send_if_modified(|words| {
            match text.strip_prefix(words.text.as_str()) {
                Some("") => return false,
                Some(more) => words.text.push_str(more),
                None => *words = PartialText { attempt: words.attempt + 1, text: text.to_owned() },
            }
            true
        });
    }

    /// Subscribes to the text; the receiver sees the text so far.
    pub fn watch(&self) -> watch::Receiver<PartialText> {
        self.0.subscribe()
    }
}
