//! The requests about the caller's conversations with an agent.
//!
//! Returns only conversations of the caller. See `commands::chat`.

use super::{Client, REQUEST_TIMEOUT, parse, segment};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{HistoryLine, Thread, UnreadReplies, UnreadReply};

impl Client {
    /// Returns the last lines of a conversation with an agent, oldest first; `speak_as` is one of the caller's identities.
    pub async fn history(
        &self,
        agent: &str,
        thread: Option<&str>,
        speak_as: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HistoryLine>, Error> {
        let thread = thread.map(|thread| format!("&thread={}", segment(thread))).unwrap_or_default();
        let speaker = speak_as.map(|who| format!("&as={}", segment(who))).unwrap_or_default();
        self.get(&format!("agents/{}/history?limit={limit}{thread}{speaker}", segment(agent))).await
    }

    /// Returns the caller's conversations with an agent, the last used first; `speak_as` is one of the caller's identities.
    pub async fn threads(&self, agent: &str, speak_as: Option<&str>) -> Result<Vec<Thread>, Error> {
        let speaker = speak_as.map(|who| format!("?as={}", segment(who))).unwrap_or_default();
        self.get(&format!("agents/{}/threads{speaker}", segment(agent))).await
    }

    /// Returns the number of unread replies of each conversation of the caller.
    pub async fn unread_counts(&self) -> Result<Vec<UnreadReplies>, Error> {
        self.get("unread").await
    }

    /// Returns the unread replies of an agent, the oldest first; they then count as read.
    pub async fn read_unread(&self, agent: &str) -> Result<Vec<UnreadReply>, Error> {
        parse(&self.ask(Method::POST, &format!("agents/{}/unread", segment(agent)), None, REQUEST_TIMEOUT).await?)
    }
}
