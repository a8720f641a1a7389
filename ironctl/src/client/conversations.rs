//! The requests about the caller's conversations with an agent.
//!
//! Returns only conversations of the caller. See `commands::chat`.

use super::{Client, segment};
use crate::failure::Error;
use ironclaw_contract::operator::{HistoryLine, Thread};

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
}
