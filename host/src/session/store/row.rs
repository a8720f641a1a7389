//! A session as its row has it.
//!
//! Never writes one. See [`crate::session::store`].

use ironclaw_contract::ids::{AgentId, SessionId};
use ironclaw_state::keys::{self, ContentKey, SessionKeys, WrappingKey};
use rusqlite::Row;

/// Origin of a session's messages, and destination of its replies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Channel, e.g. `loopback`.
    pub channel: String,
    /// Address on it.
    pub platform_id: String,
    /// Thread there; empty where there are none.
    pub thread_id: String,
}

/// Obstacles to launching a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Live,
    /// Too many failures; a person has to look.
    Parked,
    /// Its sandbox broke the contract; a person has to release it.
    Quarantined,
    /// It is gone; only its number stays.
    Removed,
}

impl Standing {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Parked => "parked",
            Self::Quarantined => "quarantined",
            Self::Removed => "removed",
        }
    }
}

impl std::str::FromStr for Standing {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Live, Self::Parked, Self::Quarantined, Self::Removed].into_iter().find(|s| s.name() == text).ok_or(())
    }
}

ironclaw_state::stored_by_name!(Standing);

/// A session's row.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// Its origin.
    pub origin: Origin,
    /// Its place in the range of uids.
    pub uid_offset: u32,
    /// Whether it may be launched.
    pub standing: Standing,
    /// The reason.
    pub reason: Option<String>,
    /// Outbound rows up to here were taken.
    pub cursor: u64,
    /// Launches that failed in a row.
    pub failures: u32,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// Milliseconds since the epoch.
    pub last_active_at: i64,
    /// Keys as stored; gone once it is removed.
    pub wrapped: Option<[Vec<u8>; 2]>,
}

impl Session {
    /// Opens its keys.
    ///
    /// # Errors
    /// When they are gone, or belong to another master key.
    pub fn keys(&self, wrapping: &WrappingKey) -> Result<SessionKeys, keys::Error> {
        let [queue, content] = self.wrapped.as_ref().ok_or(keys::Error::Sealed("the key of a removed session"))?;
        Ok(SessionKeys { queue: wrapping.queue_key(self.id, queue)?, content: wrapping.content_key(self.id, content)? })
    }

    /// Opens the key of its bodies alone.
    ///
    /// # Errors
    /// As [`Session::keys`].
    pub fn content_key(&self, wrapping: &WrappingKey) -> Result<ContentKey, keys::Error> {
        let [_, content] = self.wrapped.as_ref().ok_or(keys::Error::Sealed("the key of a removed session"))?;
        wrapping.content_key(self.id, content)
    }
}

/// Reads a row of the table.
pub(super) fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    let queue: Option<Vec<u8>> = row.get("queue_key")?;
    let content: Option<Vec<u8>> = row.get("content_key")?;
    Ok(Session {
        id: row.get("id")?,
        agent: row.get("agent_id")?,
        origin: Origin {
            channel: row.get("channel")?,
            platform_id: row.get("platform_id")?,
            thread_id: row.get("thread_id")?,
        },
        uid_offset: row.get("uid_offset")?,
        standing: row.get("state")?,
        reason: row.get("reason")?,
        cursor: row.get::<_, i64>("cursor")? as u64,
        failures: row.get("failures")?,
        created_at: row.get("created_at")?,
        last_active_at: row.get("last_active_at")?,
        wrapped: queue.zip(content).map(|(queue, content)| [queue, content]),
    })
}
