//! An agent's memory: notes that are kept for later conversations and found by their words.
//!
//! Never crosses from one agent to another, and never forgets who wrote a note and what it was made of. Next: `turns::calls::run`.

use crate::refusal::{Denied, Refusal};
use crate::tools::REMEMBERED_BYTES_MAX;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, MemoryId, PersonId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::Label;
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx, stored_json};
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use unicode_normalization::char::is_combining_mark;

/// Notes of one agent; at 4 KiB each that is 16 MiB.
pub const NOTES_MAX: usize = 4096;

/// Words of a query that are looked for; the rest adds nothing.
const WORDS_MAX: usize = 16;

/// Shorter words are looked for as they are, longer ones as beginnings of words too.
const PREFIX_CHARACTERS_MIN: usize = 3;

/// A search that takes longer ends with what was found by then.
pub const SEARCH_TIME_MAX: Duration = Duration::from_millis(250);

/// Notes that are put into the index in one transaction.
const INDEXED_AT_ONCE_MAX: usize = 64;

/// What is to be kept.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Who wrote it.
    pub author: Author,
    /// On whose behalf.
    pub principal: PersonId,
    /// The conversation in which it was kept, if it was in one.
    pub source: Option<(SessionId, TurnId)>,
    /// The labels of what it was made of.
    pub labels: Vec<Label>,
    /// 1 to [`REMEMBERED_BYTES_MAX`] bytes.
    pub text: String,
}

/// A note that is kept.
#[derive(Debug, Clone)]
pub struct Note {
    /// Its id.
    pub id: MemoryId,
    /// The conversation in which it was kept, if it was in one.
    pub session: Option<SessionId>,
    /// Who wrote it.
    pub author: Author,
    /// On whose behalf.
    pub principal: PersonId,
    /// The labels of what it was made of.
    pub labels: Vec<Label>,
    /// Its words.
    pub text: String,
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

fn note(row: &Row<'_>) -> rusqlite::Result<Note> {
    Ok(Note {
        id: row.get("id")?,
        session: row.get("session_id")?,
        author: stored_json(row, "author")?,
        principal: row.get("principal")?,
        labels: stored_json(row, "labels")?,
        text: row.get("text")?,
        created_at: row.get("created_at")?,
    })
}

/// What came of keeping a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is new.
    New(MemoryId),
    /// The same words were there, and stay as they are.
    Known(MemoryId),
}

/// Keeps a note for an agent.
///
/// # Errors
/// Refuses an empty or too long text, and another note for a memory that is full.
pub fn keep(tx: &mut WriteTx<'_>, agent: AgentId, draft: Draft) -> Result<Kept, Denied> {
    let refuse = |code, text: String| Err(Refusal::new(code, text).into());
    if draft.text.trim().is_empty() || draft.text.len() > REMEMBERED_BYTES_MAX {
        return refuse(DenialCode::NoteLength, format!("a note has 1 to {REMEMBERED_BYTES_MAX} bytes"));
    }
    let digest = Digest::of(draft.text.as_bytes());
    let by_person = matches!(draft.author, Author::Person { .. });
    let db = tx.db();
    let known: Option<(i64, MemoryId)> = db
        .prepare_cached("SELECT ordinal, id FROM memories WHERE agent_id = ?1 AND digest = ?2")?
        .query_row(params![agent, digest], |row| Ok((row.get(0)?, row.get("id")?)))
        .optional()?;
    if let Some((ordinal, known)) = known {
        again(tx, ordinal, &draft)?;
        return Ok(Kept::Known(known));
    }
    if count(tx, agent)? >= NOTES_MAX {
        let full = format!("the memory is full with {NOTES_MAX} notes");
        return Err(Refusal::new(DenialCode::MemoryFull, full).hint("`ironctl memory forget` makes room").into());
    }
    let id = MemoryId::new();
    let (session, turn) = draft.source.unzip();
    let now = tx.now();
    let ordinal: i64 = db
        .prepare_cached(
            "INSERT INTO memories (id, agent_id, session_id, turn_id, author, principal, labels, digest, text, by_person, created_at, \
             indexed) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,1) RETURNING ordinal",
        )?
        .query_row(
            params![
                id,
                agent,
                session,
                turn,
                canonical::to_string(&draft.author),
                draft.principal,
                canonical::to_string(&draft.labels),
                digest,
                draft.text,
                by_person,
                now
            ],
            |row| row.get(0),
        )?;
    db.prepare_cached(INDEX)?.execute(params![ordinal, indexed(agent, &draft.text)])?;
    if let Some(session) = session {
        add_source(tx, ordinal, session)?;
    }
    let entry = match draft.author {
        Author::Person { .. } => Entry::new(LedgerEvent::MemoryKept),
        _ => Entry::of_kind(LedgerEvent::MemoryKept, Kind::Claim),
    };
    let entry = entry.with("agent", agent).with("note", id).with("digest", digest);
    match draft.source {
        Some((session, turn)) => entry.session(session).turn(turn).append(tx)?,
        None => entry.with("by", draft.principal).append(tx)?,
    };
    Ok(Kept::New(id))
}

/// The same words once more: another conversation holds them too, or a person has made them their own.
fn again(tx: &mut WriteTx<'_>, ordinal: i64, draft: &Draft) -> Result<(), ironclaw_state::Error> {
    if let Some((session, _)) = draft.source {
        return add_source(tx, ordinal, session);
    }
    let sql = "UPDATE memories SET by_person = 1, author = ?2, principal = ?3, labels = ?4 WHERE ordinal = ?1";
    let (author, labels) = (canonical::to_string(&draft.author), canonical::to_string(&draft.labels));
    tx.db().prepare_cached(sql)?.execute(params![ordinal, author, draft.principal, labels])?;
    Ok(())
}

fn add_source(tx: &mut WriteTx<'_>, ordinal: i64, session: SessionId) -> Result<(), ironclaw_state::Error> {
    let sql = "INSERT OR IGNORE INTO memory_sources (session_id, ordinal) VALUES (?1,?2)";
    tx.db().prepare_cached(sql)?.execute(params![session, ordinal])?;
    Ok(())
}

/// How many notes an agent has.
pub fn count(tx: &ReadTx<'_>, agent: AgentId) -> Result<usize, ironclaw_state::Error> {
    let sql = "SELECT count(*) FROM memories WHERE agent_id = ?1";
    Ok(tx.db().prepare_cached(sql)?.query_row([agent], |row| row.get::<_, i64>(0))? as usize)
}

/// What a search came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Numbers of notes, the best first.
    ordinals: Vec<i64>,
    /// Whether every word of the query was looked for before the time was over.
    pub is_whole: bool,
}

/// Finds the notes of an agent in which words of the query stand: those with the most of them first, then the newest. To be called in
/// `state::State::search`.
///
/// The order depends on this agent's notes alone: a rank over all of them would tell one agent of the other's words. So does the work:
/// each word in the index begins with its agent.
pub fn search(tx: &ReadTx<'_>, agent: AgentId, query: &str, limit: usize) -> Result<Found, ironclaw_state::Error> {
    let mut found = Found { ordinals: Vec::new(), is_whole: true };
    if count(tx, agent)? == 0 {
        return Ok(found);
    }
    let mut hits: HashMap<i64, usize> = HashMap::new();
    for word in words(query) {
        if tx.is_out_of_time() || !hits_of(tx, agent, &word, &mut hits)? {
            found.is_whole = false;
            break;
        }
    }
    let mut hits: Vec<(usize, i64)> = hits.into_iter().map(|(ordinal, words)| (words, ordinal)).collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    found.ordinals = hits.into_iter().take(limit).map(|(_, ordinal)| ordinal).collect();
    Ok(found)
}

/// Counts the notes in which a word stands; whether it came to the end before the time was over.
fn hits_of(
    tx: &ReadTx<'_>,
    agent: AgentId,
    word: &str,
    hits: &mut HashMap<i64, usize>,
) -> Result<bool, ironclaw_state::Error> {
    let mut look = tx.db().prepare_cached("SELECT rowid FROM memories_text WHERE memories_text MATCH ?1")?;
    // Letters, digits and their marks alone, in quotes: nothing of the query language is left in it.
    let star = if word.chars().count() >= PREFIX_CHARACTERS_MIN { "*" } else { "" };
    let mut rows = look.query([format!("\"{}{word}\"{star}", key(agent))])?;
    loop {
        match rows.next() {
            Ok(Some(row)) => *hits.entry(row.get(0)?).or_default() += 1,
            Ok(None) => return Ok(true),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The notes that a search found, without those that were forgotten since.
pub fn notes(tx: &ReadTx<'_>, agent: AgentId, found: &Found) -> Result<Vec<Note>, ironclaw_state::Error> {
    let sql = "SELECT * FROM memories WHERE ordinal = ?1 AND agent_id = ?2";
    let mut find = tx.db().prepare_cached(sql)?;
    let notes = found.ordinals.iter().map(|ordinal| find.query_row(params![ordinal, agent], note).optional());
    Ok(notes.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()?)
}

/// Puts notes into the index that were kept before it was made; whether more are left.
pub fn index_some(tx: &mut WriteTx<'_>) -> Result<bool, ironclaw_state::Error> {
    let db = tx.db();
    let sql = "SELECT ordinal, agent_id, text FROM memories WHERE indexed = 0 ORDER BY ordinal LIMIT ?1";
    let mut look = db.prepare_cached(sql)?;
    let read =
        |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, AgentId>("agent_id")?, row.get::<_, String>(2)?));
    let missing: Vec<(i64, AgentId, String)> =
        look.query_map([INDEXED_AT_ONCE_MAX as i64], read)?.collect::<rusqlite::Result<_>>()?;
    for (ordinal, agent, text) in &missing {
        db.prepare_cached(INDEX)?.execute(params![ordinal, indexed(*agent, text)])?;
        db.prepare_cached("UPDATE memories SET indexed = 1 WHERE ordinal = ?1")?.execute([ordinal])?;
    }
    Ok(missing.len() == INDEXED_AT_ONCE_MAX)
}

const INDEX: &str = "INSERT INTO memories_text (rowid, words) VALUES (?1,?2)";

/// The words of a note as they stand in the index.
fn indexed(agent: AgentId, text: &str) -> String {
    let key = key(agent);
    split(text).map(|word| format!("{key}{word} ")).collect()
}

/// What each word of an agent begins with in the index: letters and digits, as many for each agent.
fn key(agent: AgentId) -> String {
    let id = agent.to_string();
    id.rsplit('_').next().unwrap_or_default().to_owned()
}

/// Words as the index takes them: it folds case and drops accents.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && !is_combining_mark(character))
        .filter(|word| !word.is_empty())
}

fn words(query: &str) -> BTreeSet<String> {
    split(query).take(WORDS_MAX).map(str::to_lowercase).collect()
}

/// The note of an agent.
pub fn find(tx: &ReadTx<'_>, agent: AgentId, id: MemoryId) -> Result<Option<Note>, ironclaw_state::Error> {
    let sql = "SELECT * FROM memories WHERE agent_id = ?1 AND id = ?2";
    Ok(tx.db().prepare_cached(sql)?.query_row(params![agent, id], note).optional()?)
}

/// The notes of an agent, newest first, at most `limit`.
pub fn list(tx: &ReadTx<'_>, agent: AgentId, limit: usize) -> Result<Vec<Note>, ironclaw_state::Error> {
    let sql = "SELECT * FROM memories WHERE agent_id = ?1 ORDER BY ordinal DESC LIMIT ?2";
    let mut statement = tx.db().prepare_cached(sql)?;
    let notes = statement.query_map(params![agent, limit as i64], note)?.collect::<rusqlite::Result<_>>()?;
    Ok(notes)
}

/// Erases one note of an agent.
///
/// # Errors
/// Refuses if the agent has no such note.
pub fn forget(tx: &mut WriteTx<'_>, agent: AgentId, id: MemoryId, by: PersonId) -> Result<(), Denied> {
    let erased = erase(tx, "id = ?1 AND agent_id = ?2", &[&id, &agent])?;
    if erased == 0 {
        return Err(Refusal::new(DenialCode::NoteUnknown, format!("the agent has no note {id}")).into());
    }
    Entry::new(LedgerEvent::MemoryForgotten).with("agent", agent).with("note", id).with("by", by).append(tx)?;
    Ok(())
}

/// Erases what was kept in a conversation, and in no other, and that nobody has written down by themselves.
pub fn erase_of_session(tx: &mut WriteTx<'_>, session: SessionId) -> Result<usize, ironclaw_state::Error> {
    let only = "by_person = 0 AND ordinal IN (SELECT ordinal FROM memory_sources WHERE session_id = ?1) \
                AND NOT EXISTS (SELECT 1 FROM memory_sources WHERE ordinal = memories.ordinal AND session_id <> ?1)";
    let erased = erase(tx, only, &[&session])?;
    tx.db().execute("DELETE FROM memory_sources WHERE session_id = ?1", [session])?;
    tx.db().execute("UPDATE memories SET session_id = NULL, turn_id = NULL WHERE session_id = ?1", [session])?;
    Ok(erased)
}

/// Erases the memory of an agent.
pub fn erase_of_agent(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<usize, ironclaw_state::Error> {
    erase(tx, "agent_id = ?1", &[&agent])
}

fn erase(tx: &mut WriteTx<'_>, which: &str, values: &[&dyn rusqlite::ToSql]) -> Result<usize, ironclaw_state::Error> {
    let db = tx.db();
    // The index first: it is told the words that it has to drop.
    let mut look =
        db.prepare(&format!("SELECT ordinal, agent_id, text FROM memories WHERE indexed = 1 AND ({which})"))?;
    let mut rows = look.query(values)?;
    while let Some(row) = rows.next()? {
        let words = indexed(row.get("agent_id")?, &row.get::<_, String>(2)?);
        db.prepare_cached("INSERT INTO memories_text (memories_text, rowid, words) VALUES ('delete', ?1, ?2)")?
            .execute(params![row.get::<_, i64>(0)?, words])?;
    }
    Ok(db.execute(&format!("DELETE FROM memories WHERE {which}"), values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Decide;
    use ironclaw_contract::seam::crypt::SessionKey;
    use ironclaw_state::State;

    fn draft(text: String) -> Draft {
        let person = PersonId::new();
        Draft { author: Author::Person { person }, principal: person, source: None, labels: Vec::new(), text }
    }

    async fn opened(directory: &tempfile::TempDir) -> State {
        let path = directory.path().join("state.db");
        State::create(&path).expect("made");
        let state = State::open(&path, &SessionKey::new([7; 32])).expect("opened");
        state.write(|tx| Entry::new(LedgerEvent::LedgerOpened).append(tx).map(drop)).await.expect("begun");
        state
    }

    /// The work of one search of an agent, and what it found.
    async fn searched(state: &State, agent: AgentId, query: &'static str) -> (u64, Vec<String>) {
        let search = state.search(Duration::from_secs(60), move |tx| {
            let before = tx.work();
            let found = search(tx, agent, query, 5)?;
            let work = tx.work() - before;
            Ok::<_, ironclaw_state::Error>((
                work,
                notes(tx, agent, &found)?.into_iter().map(|note| note.text).collect(),
            ))
        });
        search.await.expect("searched")
    }

    #[tokio::test]
    async fn recall_costs_nothing_for_the_notes_of_other_agents() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = opened(&directory).await;
        let (rich, poor, one) = (AgentId::new(), AgentId::new(), AgentId::new());
        let keep = |agent, from: u32, to: u32| {
            let words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi";
            state.decide(move |tx| {
                for n in from..to {
                    keep(tx, agent, draft(format!("note {n}: {words}")))?;
                }
                Ok::<_, Denied>(())
            })
        };
        const QUERY: &str = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi";
        keep(one, 0, 1).await.expect("kept");
        let alone = (searched(&state, poor, QUERY).await.0, searched(&state, one, QUERY).await.0);
        keep(rich, 0, 500).await.expect("kept");
        let (work, found) = searched(&state, poor, QUERY).await;
        assert!(found.is_empty() && work <= alone.0, "{work} after {}", alone.0);
        let (work, found) = searched(&state, one, QUERY).await;
        // A larger index has some more segments to look into; each of them is a step, and no note of another agent is.
        assert!(found.len() == 1 && work <= alone.1 + 4, "{work} after {}", alone.1);
        let own = searched(&state, rich, QUERY).await.0;
        assert!(own > 4 * work, "its own notes are what an agent's search costs: {own}, {work}");
        state.close().await;
    }

    #[tokio::test]
    async fn search_without_time_is_cut_short_and_says_so() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = opened(&directory).await;
        let agent = AgentId::new();
        let keep = state.decide(move |tx| keep(tx, agent, draft("Straße Café naïve".to_owned())).map(drop));
        keep.await.expect("kept");
        let search_in = |time| state.search(time, move |tx| search(tx, agent, "cafe NAI strasse", 5));
        assert_eq!(search_in(Duration::ZERO).await.expect("searched"), Found::default());
        let found = search_in(Duration::from_secs(60)).await.expect("searched");
        assert_eq!((found.ordinals.len(), found.is_whole), (1, true), "case and accents are folded");
        let id = state.read(move |tx| list(tx, agent, 1)).await.expect("listed")[0].id;
        state.decide(move |tx| forget(tx, agent, id, PersonId::new())).await.expect("forgotten");
        assert_eq!(search_in(Duration::from_secs(60)).await.expect("searched").ordinals.len(), 0);
        state.close().await;
    }
}
