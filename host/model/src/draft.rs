//! The words of an output while it is being made, for watchers.
//!
//! Never the answer: what counts is the sealed output that a reply names. A watcher that is slow misses steps, not words. See
//! [`crate::endpoint`].

use tokio::sync::watch;

/// The words so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// Number of the attempt; an attempt that failed half-way took its words with it.
    pub attempt: u32,
    /// Its words so far, as the model gave them.
    pub text: String,
}

/// Sink of an endpoint for the words as they come.
#[derive(Debug, Clone, Default)]
pub struct Draft(watch::Sender<Words>);

impl Draft {
    /// Begins a further attempt: the words of the one before are gone.
    pub fn begin(&self) {
        self.0.send_modify(|words| *words = Words { attempt: words.attempt + 1, text: String::new() });
    }

    /// Adds more words.
    pub fn push(&self, text: &str) {
        self.0.send_modify(|words| words.text.push_str(text));
    }

    /// Watches; sees the words so far.
    pub fn watch(&self) -> watch::Receiver<Words> {
        self.0.subscribe()
    }
}
