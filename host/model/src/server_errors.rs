//! The internal errors of one endpoint: those of the server, and those that only one conversation causes.
//!
//! Knows conversations by a digest in memory, and no words of them. See [`crate::remote`].

use super::{Part, Prompt};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Conversations that are remembered; the oldest is forgotten first.
const FAILING_MAX: usize = 32;

/// The status of an internal error without a better name.
pub const INTERNAL: u16 = 500;

/// The requests to one endpoint so far.
#[derive(Debug, Default)]
pub struct ServerErrors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The last request that had an answer.
    passed: Option<Request>,
    /// Conversations whose last request ended in an internal error, oldest first.
    failing: Vec<Failing>,
}

#[derive(Debug)]
struct Failing {
    conversation: u64,
    /// The error is newer than the last answer.
    since_passed: bool,
}

/// A request, by its conversation and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    conversation: u64,
    bytes: usize,
}

/// The meaning of a second internal error in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The server may work again soon.
    Server,
    /// The server works, and not with this conversation.
    Conversation,
    /// The endpoint worked once, and the request before ended in the same way; more attempts are of no use.
    Repeated,
}

impl Request {
    /// Returns the request with this prompt. A conversation begins with its system text and its first words.
    pub fn new(prompt: &Prompt) -> Self {
        let mut hasher = DefaultHasher::new();
        prompt.system.hash(&mut hasher);
        let first = prompt.parts.iter().find_map(|part| match part {
            Part::Person { text }
            | Part::Task { text }
            | Part::Agent { text, .. }
            | Part::Context { text, .. }
            | Part::Summary { text } => Some(text),
            _ => None,
        });
        first.hash(&mut hasher);
        Self { conversation: hasher.finish(), bytes: prompt.bytes() }
    }
}

impl ServerErrors {
    /// Records an answer to a request.
    pub fn passed(&self, request: Request) {
        let mut state = self.state();
        state.passed = Some(request);
        state.failing.retain(|failing| failing.conversation != request.conversation);
        state.failing.iter_mut().for_each(|failing| failing.since_passed = false);
    }

    /// Returns the meaning of a second internal error in this request.
    pub fn meaning(&self, request: Request) -> Meaning {
        let state = self.state();
        let is_other = |failing: &Failing| failing.since_passed && failing.conversation != request.conversation;
        let is_alone = !state.failing.iter().any(is_other);
        let has_passed = |passed: Request| passed.conversation != request.conversation || passed.bytes < request.bytes;
        let has_failed = || state.failing.iter().any(|failing| failing.conversation == request.conversation);
        match state.passed {
            // An endpoint that never answered may be down.
            None => Meaning::Server,
            Some(passed) if is_alone && has_passed(passed) => Meaning::Conversation,
            Some(_) if has_failed() => Meaning::Repeated,
            Some(_) => Meaning::Server,
        }
    }

    /// Records that a request ended in an internal error.
    pub fn failed(&self, request: Request) {
        let mut state = self.state();
        state.failing.retain(|failing| failing.conversation != request.conversation);
        if state.failing.len() == FAILING_MAX {
            state.failing.remove(0);
        }
        state.failing.push(Failing { conversation: request.conversation, since_passed: true });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is harmless: the two fields are valid after each line.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_conversation_differ_from_the_servers() {
        let request = |conversation, bytes| Request { conversation, bytes };
        let errors = ServerErrors::default();
        assert_eq!(errors.meaning(request(1, 9)), Meaning::Server, "nothing is known");
        errors.failed(request(1, 9));
        assert_eq!(errors.meaning(request(1, 11)), Meaning::Server, "nothing has passed");
        errors.passed(request(2, 50));
        assert_eq!(errors.meaning(request(1, 12)), Meaning::Conversation, "another one passed");
        errors.failed(request(1, 12));
        assert_eq!(errors.meaning(request(1, 13)), Meaning::Conversation);
        assert_eq!(errors.meaning(request(2, 50)), Meaning::Server, "it did not get longer, and another one fails too");
        errors.failed(request(2, 51));
        assert_eq!(errors.meaning(request(1, 14)), Meaning::Repeated, "two conversations fail: it is the server");
        errors.passed(request(1, 5));
        assert_eq!(errors.meaning(request(1, 6)), Meaning::Conversation, "a shorter one passed");
        assert_eq!(errors.meaning(request(1, 5)), Meaning::Server);
    }

    #[test]
    fn the_remembered_conversations_are_bounded() {
        let errors = ServerErrors::default();
        for conversation in 0..100 {
            errors.failed(Request { conversation, bytes: 1 });
        }
        assert_eq!(errors.state().failing.len(), FAILING_MAX);
    }
}
