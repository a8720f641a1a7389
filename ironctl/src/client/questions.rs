//! The requests about questions of agents.
//!
//! Never decides what an answer means: the host does. See `commands::question`.

use super::{Client, segment};
use crate::failure::Error;
use ironclaw_contract::operator::{InboxEntry, NewAnswer, QuestionWhy, Recorded, Rejection};

impl Client {
    /// Returns the questions with these statuses that the caller may see, the oldest first.
    pub async fn questions(&self, status: Option<&str>, agent: Option<&str>) -> Result<Vec<InboxEntry>, Error> {
        let named = [("status", status), ("agent", agent)];
        let query = named.iter().filter_map(|(name, value)| value.map(|value| format!("{name}={}", segment(value))));
        self.get(&format!("questions?{}", query.collect::<Vec<_>>().join("&"))).await
    }

    /// Returns a question.
    pub async fn question(&self, id: &str) -> Result<InboxEntry, Error> {
        self.get(&format!("questions/{}", segment(id))).await
    }

    /// Returns the origin of a question, and its answer or end.
    pub async fn why_question(&self, id: &str) -> Result<QuestionWhy, Error> {
        self.get(&format!("questions/{}/why", segment(id))).await
    }

    /// Answers a question, and returns the message with the answer.
    pub async fn answer_question(&self, id: &str, answer: &NewAnswer) -> Result<Recorded, Error> {
        self.post(&format!("questions/{}/answer", segment(id)), answer).await
    }

    /// Cancels a question.
    pub async fn reject_question(&self, id: &str, reason: String) -> Result<InboxEntry, Error> {
        self.post(&format!("questions/{}/reject", segment(id)), &Rejection { reason }).await
    }
}
