//! Notes of agents, and their sources. Tables: `memories`, `memories_text`, `memory_sources`.
//!
//! Each word in the index begins with the agent of its note, so a search does no work for the notes of other agents.

use crate::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, MemoryId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::provenance::Labels;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{ErrorCode, ToSql, params};
use unicode_normalization::char::is_combining_mark;

rows! {
    #[derive(Debug, Clone)]
    pub struct Note {
        pub id: MemoryId,
        /// The conversation in which it was kept, if any.
        pub session: Option<SessionId> = "session_id",
        pub author: Author as json,
        /// The person on whose behalf it is kept.
        pub principal: PersonId,
        /// The labels of its sources.
        pub labels: Labels as json,
        pub text: String,
        /// Milliseconds since the epoch.
        pub created_at: i64,
    }
}

/// The columns of a new note.
#[derive(Debug)]
pub struct NewNote<'a> {
    pub id: MemoryId,
    /// The agent that keeps it.
    pub agent: AgentId,
    /// The conversation and the turn in which it is kept, if any.
    pub source: Option<(SessionId, TurnId)>,
    pub author: &'a Author,
    /// The person on whose behalf it is kept.
    pub principal: PersonId,
    /// The labels of its sources.
    pub labels: Labels,
    /// Digest of its text.
    pub digest: Digest,
    pub text: &'a str,
    /// True if a person wrote it down; then no erasure of a conversation removes it.
    pub by_person: bool,
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

rows! {
    /// The number and the id of a note.
    #[derive(Debug, Clone, Copy)]
    pub struct Numbered {
        pub ordinal: i64,
        pub id: MemoryId,
    }

    /// The text of a note, for the index.
    #[derive(Debug)]
    pub struct Words {
        ordinal: i64,
        agent: AgentId = "agent_id",
        text: String,
    }
}

/// Returns the note of an agent with this digest.
pub fn same(tx: &ReadTx<'_>, agent: AgentId, digest: Digest) -> Result<Option<Numbered>, Error> {
    let sql = "SELECT ordinal, id FROM memories WHERE agent_id = ?1 AND digest = ?2";
    tx.find(sql, params![agent, digest], Numbered::read)
}

/// Inserts a note, puts its words into the index, and returns its number.
pub fn insert(tx: &mut WriteTx<'_>, new: &NewNote<'_>) -> Result<i64, Error> {
    let (session, turn) = new.source.unzip();
    let ordinal = tx.returning_one(
        "INSERT INTO memories (id, agent_id, session_id, turn_id, author, principal, labels, digest, text, by_person, created_at, \
         indexed) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,1) RETURNING ordinal",
        params![
            new.id,
            new.agent,
            session,
            turn,
            canonical::to_string(new.author),
            new.principal,
            canonical::to_string(&new.labels),
            new.digest,
            new.text,
            new.by_person,
            new.created_at
        ],
        |row| row.get(0),
    )?;
    insert_words(tx, ordinal, new.agent, new.text)?;
    Ok(ordinal)
}

/// Replaces the author of a note by a person who wrote it down, so that no erasure of a conversation removes it.
pub fn set_author(
    tx: &mut WriteTx<'_>,
    ordinal: i64,
    author: &Author,
    principal: PersonId,
    labels: Labels,
) -> Result<(), Error> {
    tx.execute(
        "UPDATE memories SET by_person = 1, author = ?2, principal = ?3, labels = ?4 WHERE ordinal = ?1",
        params![ordinal, canonical::to_string(author), principal, canonical::to_string(&labels)],
    )?;
    Ok(())
}

/// Inserts a conversation in which a note was kept, unless the table has it.
pub fn add_source(tx: &mut WriteTx<'_>, ordinal: i64, session: SessionId) -> Result<(), Error> {
    tx.execute("INSERT OR IGNORE INTO memory_sources (session_id, ordinal) VALUES (?1,?2)", params![session, ordinal])
        .map(drop)
}

/// Returns the number of an agent's notes.
pub fn count(tx: &ReadTx<'_>, agent: AgentId) -> Result<usize, Error> {
    let sql = "SELECT count(*) FROM memories WHERE agent_id = ?1";
    tx.get(sql, [agent], |row| row.get(0))
}

/// Returns the number of notes of all agents that were kept on behalf of a person.
pub fn count_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM memories WHERE principal = ?1";
    tx.get(sql, [person], |row| row.get(0))
}

/// Returns the note of an agent with this id.
pub fn find(tx: &ReadTx<'_>, agent: AgentId, id: MemoryId) -> Result<Option<Note>, Error> {
    tx.find("SELECT * FROM memories WHERE agent_id = ?1 AND id = ?2", params![agent, id], Note::read)
}

/// Returns the note of an agent with this number.
pub fn numbered(tx: &ReadTx<'_>, agent: AgentId, ordinal: i64) -> Result<Option<Note>, Error> {
    tx.find("SELECT * FROM memories WHERE ordinal = ?1 AND agent_id = ?2", params![ordinal, agent], Note::read)
}

/// Returns at most `limit` notes of an agent, the newest first.
pub fn list(tx: &ReadTx<'_>, agent: AgentId, limit: usize) -> Result<Vec<Note>, Error> {
    let sql = "SELECT * FROM memories WHERE agent_id = ?1 ORDER BY ordinal DESC LIMIT ?2";
    tx.list(sql, params![agent, limit as i64], Note::read)
}

/// Calls `each` with the numbers of an agent's notes that contain this word of [`split`], or with `is_beginning` a word that begins
/// with it. Returns false if the time of the search was over first.
pub fn each_with_word(
    tx: &ReadTx<'_>,
    agent: AgentId,
    word: &str,
    is_beginning: bool,
    mut each: impl FnMut(i64),
) -> Result<bool, Error> {
    // Only letters, digits and combining marks, in quotes: the word contains no syntax of the query language.
    let star = if is_beginning { "*" } else { "" };
    let looked = format!("\"{}{word}\"{star}", key(agent));
    let sql = "SELECT rowid FROM memories_text WHERE memories_text MATCH ?1";
    let came = tx.each(sql, [looked], |row| {
        each(row.get(0)?);
        Ok::<_, Error>(true)
    });
    match came {
        Ok(()) => Ok(true),
        Err(Error::Sqlite(error)) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns at most `limit` notes that are older than the index and not in it, in the order of their numbers.
pub fn unindexed(tx: &ReadTx<'_>, limit: usize) -> Result<Vec<Words>, Error> {
    let sql = "SELECT ordinal, agent_id, text FROM memories WHERE indexed = 0 ORDER BY ordinal LIMIT ?1";
    tx.list(sql, [limit as i64], Words::read)
}

/// Adds a note to the index.
pub fn index(tx: &mut WriteTx<'_>, words: &Words) -> Result<(), Error> {
    insert_words(tx, words.ordinal, words.agent, &words.text)?;
    tx.execute("UPDATE memories SET indexed = 1 WHERE ordinal = ?1", [words.ordinal]).map(drop)
}

fn insert_words(tx: &mut WriteTx<'_>, ordinal: i64, agent: AgentId, text: &str) -> Result<(), Error> {
    let sql = "INSERT INTO memories_text (rowid, words) VALUES (?1,?2)";
    tx.execute(sql, params![ordinal, indexed(agent, text)]).map(drop)
}

/// Returns the words of a note in the form of the index.
fn indexed(agent: AgentId, text: &str) -> String {
    let key = key(agent);
    split(text).map(|word| format!("{key}{word} ")).collect()
}

/// Returns the prefix of each word of an agent in the index: letters and digits, of the same length for each agent.
fn key(agent: AgentId) -> String {
    let id = agent.to_string();
    id.rsplit('_').next().unwrap_or_default().to_owned()
}

/// Splits a text into words for the index, which itself folds case and drops accents.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && !is_combining_mark(character))
        .filter(|word| !word.is_empty())
}

/// Deletes a note of an agent, and returns the number of deleted notes.
pub fn delete(tx: &mut WriteTx<'_>, agent: AgentId, id: MemoryId) -> Result<usize, Error> {
    erase(tx, "id = ?1 AND agent_id = ?2", &[&id, &agent])
}

/// Deletes the notes that were kept only in this conversation and that no person wrote down. Returns the number of deleted notes. Other
/// notes lose their reference to the conversation.
pub fn delete_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<usize, Error> {
    let only = "by_person = 0 AND ordinal IN (SELECT ordinal FROM memory_sources WHERE session_id = ?1) \
                AND NOT EXISTS (SELECT 1 FROM memory_sources WHERE ordinal = memories.ordinal AND session_id <> ?1)";
    let erased = erase(tx, only, &[&session])?;
    tx.execute("DELETE FROM memory_sources WHERE session_id = ?1", [session])?;
    tx.execute("UPDATE memories SET session_id = NULL, turn_id = NULL WHERE session_id = ?1", [session])?;
    Ok(erased)
}

/// Deletes the notes of an agent, and returns their number.
pub fn delete_of_agent(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<usize, Error> {
    erase(tx, "agent_id = ?1", &[&agent])
}

fn erase(tx: &mut WriteTx<'_>, which: &str, values: &[&dyn ToSql]) -> Result<usize, Error> {
    // First the index, because it needs the words of a deleted row. All words are read at once; the notes of one agent bound them.
    let look = format!("SELECT ordinal, agent_id, text FROM memories WHERE indexed = 1 AND ({which})");
    let known: Vec<Words> = tx.list(&look, values, Words::read)?;
    for Words { ordinal, agent, text } in known {
        let sql = "INSERT INTO memories_text (memories_text, rowid, words) VALUES ('delete', ?1, ?2)";
        tx.execute(sql, params![ordinal, indexed(agent, &text)])?;
    }
    tx.execute(&format!("DELETE FROM memories WHERE {which}"), values)
}
