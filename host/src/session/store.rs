//! The rows of sessions: origin, state, counter, cursor and wrapped keys.
//!
//! Never starts or stops a process; that is the actor's. Next: `session::actor`.

use crate::custody::{self, ContentKey, SessionKeys, WrappingKey};
use crate::ledger::Entry;
use crate::refusal::Fault;
use crate::registry::Agent;
use crate::state::{self, Tx, stored};
use ironclaw_contract::ids::{AgentId, PersonId, SessionId};
use rusqlite::{OptionalExtension, Row, params};

/// Where a session's messages come from and its replies go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Channel, e.g. `loopback`.
    pub channel: String,
    /// Address on it.
    pub platform_id: String,
    /// Thread there; empty where there are none.
    pub thread_id: String,
}

/// What stands in the way of launching a session.
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
    const fn name(self) -> &'static str {
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
    /// Why not.
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
    pub fn keys(&self, wrapping: &WrappingKey) -> Result<SessionKeys, custody::Error> {
        let [queue, content] = self.wrapped.as_ref().ok_or(custody::Error::Sealed("the key of a removed session"))?;
        Ok(SessionKeys { queue: wrapping.queue_key(self.id, queue)?, content: wrapping.content_key(self.id, content)? })
    }

    /// Opens the key of its bodies alone.
    ///
    /// # Errors
    /// As [`Session::keys`].
    pub fn content_key(&self, wrapping: &WrappingKey) -> Result<ContentKey, custody::Error> {
        let [_, content] = self.wrapped.as_ref().ok_or(custody::Error::Sealed("the key of a removed session"))?;
        wrapping.content_key(self.id, content)
    }
}

fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    let queue: Option<Vec<u8>> = row.get("queue_key")?;
    let content: Option<Vec<u8>> = row.get("content_key")?;
    Ok(Session {
        id: stored(row, "id")?,
        agent: stored(row, "agent_id")?,
        origin: Origin {
            channel: row.get("channel")?,
            platform_id: row.get("platform_id")?,
            thread_id: row.get("thread_id")?,
        },
        uid_offset: row.get("uid_offset")?,
        standing: stored(row, "state")?,
        reason: row.get("reason")?,
        cursor: row.get::<_, i64>("cursor")? as u64,
        failures: row.get("failures")?,
        created_at: row.get("created_at")?,
        last_active_at: row.get("last_active_at")?,
        wrapped: queue.zip(content).map(|(queue, content)| [queue, content]),
    })
}

/// Every session that is not removed, oldest first.
pub fn all(tx: &Tx<'_>) -> Result<Vec<Session>, state::Error> {
    let mut statement =
        tx.db().prepare_cached("SELECT * FROM sessions WHERE state <> 'removed' ORDER BY created_at, id")?;
    let sessions = statement.query_map([], session)?.collect::<rusqlite::Result<_>>()?;
    Ok(sessions)
}

/// The sessions of an agent that are not removed, oldest first.
pub fn of_agent(tx: &Tx<'_>, agent: AgentId) -> Result<Vec<Session>, state::Error> {
    let sql = "SELECT * FROM sessions WHERE agent_id = ?1 AND state <> 'removed' ORDER BY created_at, id";
    let mut statement = tx.db().prepare_cached(sql)?;
    let sessions = statement.query_map([agent.to_string()], session)?.collect::<rusqlite::Result<_>>()?;
    Ok(sessions)
}

/// Every session that is removed.
pub fn removed(tx: &Tx<'_>) -> Result<Vec<SessionId>, state::Error> {
    let mut statement = tx.db().prepare_cached("SELECT id FROM sessions WHERE state = 'removed'")?;
    let sessions = statement.query_map([], |row| stored(row, "id"))?.collect::<rusqlite::Result<_>>()?;
    Ok(sessions)
}

/// The session of this id, unless it is removed.
pub fn find(tx: &Tx<'_>, id: SessionId) -> Result<Option<Session>, state::Error> {
    let sql = "SELECT * FROM sessions WHERE id = ?1 AND state <> 'removed'";
    Ok(tx.db().prepare_cached(sql)?.query_row([id.to_string()], session).optional()?)
}

/// The session of this agent and origin.
pub fn of_origin(tx: &Tx<'_>, agent: AgentId, origin: &Origin) -> Result<Option<Session>, state::Error> {
    let sql = "SELECT * FROM sessions WHERE agent_id = ?1 AND channel = ?2 AND platform_id = ?3 AND thread_id = ?4 AND state <> 'removed'";
    let found = tx
        .db()
        .prepare_cached(sql)?
        .query_row(params![agent.to_string(), origin.channel, origin.platform_id, origin.thread_id], session)
        .optional()?;
    Ok(found)
}

/// The session of this agent and origin, made if there is none.
pub fn of_origin_or_new(
    tx: &mut Tx<'_>,
    agent: &Agent,
    origin: &Origin,
    wrapping: &WrappingKey,
) -> Result<Session, NewError> {
    if let Some(session) = of_origin(tx, agent.id, origin)? {
        return Ok(session);
    }
    let id = SessionId::new();
    let (_, [queue, content]) = wrapping.make(id)?;
    let now = tx.now();
    let db = tx.db();
    // Numbers of removed sessions are never used again: a file of theirs may still be about.
    let uid_offset: u32 =
        db.query_row("SELECT coalesce(max(uid_offset) + 1, 0) FROM sessions", [], |row| row.get(0))?;
    db.execute(
        "INSERT INTO sessions (id, agent_id, channel, platform_id, thread_id, uid_offset, state, reason, last_seq, cursor, failures, \
         queue_key, content_key, created_at, last_active_at) VALUES (?1,?2,?3,?4,?5,?6,'live',NULL,0,0,0,?7,?8,?9,?9)",
        params![id.to_string(), agent.id.to_string(), origin.channel, origin.platform_id, origin.thread_id, uid_offset, queue, content, now],
    )?;
    Entry::meta("session.created")
        .session(id)
        .with("agent", agent.id.to_string())
        .with("channel", origin.channel.clone())
        .append(tx)?;
    let made = find(tx, id)?;
    Ok(made.ok_or_else(|| state::Error::Stored(format!("{id} vanished while it was made")))?)
}

/// Wraps the keys of every session under another key instead; returns how many sessions there are.
pub fn rewrap(tx: &Tx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<u64, NewError> {
    let mut count = 0;
    for session in all(tx)? {
        let Some(stored) = &session.wrapped else { continue };
        let [queue, content] = old.rewrap(new, session.id, stored)?;
        tx.db().execute(
            "UPDATE sessions SET queue_key = ?2, content_key = ?3 WHERE id = ?1",
            params![session.id.to_string(), queue, content],
        )?;
        count += 1;
    }
    Ok(count)
}

/// Why no session could be made.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The state.
    #[error(transparent)]
    State(#[from] state::Error),
    /// Its keys.
    #[error(transparent)]
    Key(#[from] custody::Error),
}

impl From<rusqlite::Error> for NewError {
    fn from(error: rusqlite::Error) -> Self {
        Self::State(error.into())
    }
}

/// Why a session is halted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// In the host's own words: for the ledger and for the person.
    pub words: String,
    /// What exactly, which may quote a stranger: for the operator who looks, as a quote.
    pub detail: String,
}

impl Why {
    /// A reason that its words say all about.
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), detail: String::new() }
    }

    /// For the operator: the words, and the detail as a quote.
    pub fn shown(&self) -> String {
        if self.detail.is_empty() { self.words.clone() } else { format!("{}: {:?}", self.words, self.detail) }
    }
}

/// Moves a session to another standing; `by` names the operator who did.
pub fn set_standing(
    tx: &mut Tx<'_>,
    id: SessionId,
    standing: Standing,
    why: Option<&Why>,
    by: Option<PersonId>,
) -> Result<(), state::Error> {
    tx.db().execute(
        "UPDATE sessions SET state = ?2, reason = ?3, failures = CASE WHEN ?2 = 'live' THEN 0 ELSE failures END WHERE id = ?1",
        params![id.to_string(), standing.name(), why.map(Why::shown)],
    )?;
    let entry = match standing {
        Standing::Live => Entry::meta("session.released"),
        Standing::Parked => Entry::retract("session.parked"),
        Standing::Quarantined => Entry::retract("session.quarantined").fault(Fault::Sandbox),
        Standing::Removed => Entry::meta("session.removed"),
    };
    let entry = entry.session(id).reason(why.map_or("", |why| why.words.as_str()));
    match by {
        Some(by) => entry.with("by", by.to_string()).append(tx)?,
        None => entry.append(tx)?,
    };
    Ok(())
}

/// Notes that a launch failed (`true`) or that a turn came to its end; returns the failures in a row.
pub fn note_failure(tx: &mut Tx<'_>, id: SessionId, failed: bool) -> Result<u32, state::Error> {
    let sql =
        "UPDATE sessions SET failures = CASE WHEN ?2 THEN failures + 1 ELSE 0 END WHERE id = ?1 RETURNING failures";
    Ok(tx.db().prepare_cached(sql)?.query_row(params![id.to_string(), failed], |row| row.get(0))?)
}

/// Notes activity.
pub fn touch(tx: &mut Tx<'_>, id: SessionId) -> Result<(), state::Error> {
    let now = tx.wall();
    tx.db()
        .prepare_cached("UPDATE sessions SET last_active_at = ?2 WHERE id = ?1")?
        .execute(params![id.to_string(), now])?;
    Ok(())
}

/// Erases a session: its keys, and with them every body, then its rows. Its number stays taken.
pub fn erase(tx: &mut Tx<'_>, id: SessionId, by: PersonId) -> Result<(), state::Error> {
    set_standing(tx, id, Standing::Removed, None, Some(by))?;
    let text = id.to_string();
    let db = tx.db();
    db.execute("UPDATE sessions SET queue_key = NULL, content_key = NULL WHERE id = ?1", [&text])?;
    for table in ["items", "summaries", "messages", "turns", "calls", "outbound_rows", "deliveries"] {
        db.execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [&text])?;
    }
    // That an event came stays known, so that nobody repeats it into a new session; what it said does not.
    db.execute("UPDATE events SET digest = '' WHERE session_id = ?1", [&text])?;
    Ok(())
}
