//! The memory of an agent: notes for later conversations, found by their words.
//!
//! Never shares a note between agents, and always keeps the author and the labels of a note. See `turns::calls::run`.

use crate::registry::tools::REMEMBERED_BYTES_MAX;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, MemoryId, PersonId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::provenance::Labelled;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::memories::{self as table, NewNote, Numbered};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

pub use ironclaw_store::tables::memories::{
    Note, count, delete_of_agent as erase_of_agent, delete_of_session as erase_of_session, find, list,
};

/// Notes of one agent: 16 MiB at 4 KiB each.
pub const NOTES_MAX: usize = 4096;

/// Words of a query that a search uses; it ignores the rest.
const WORDS_MAX: usize = 16;

/// Characters of the shortest word that also matches as the beginning of a word; shorter words match only whole words.
const PREFIX_CHARACTERS_MIN: usize = 3;

/// Time of one search; a longer search ends with the notes that it found until then.
pub const SEARCH_TIME_MAX: Duration = Duration::from_millis(250);

/// Notes that one transaction adds to the index.
const INDEXED_AT_ONCE_MAX: usize = 64;

/// A note to keep.
#[derive(Debug, Clone)]
pub struct NewMemory {
    pub author: Author,
    /// The person on whose behalf it is kept.
    pub principal: PersonId,
    /// The conversation and the turn in which it is kept, if any.
    pub source: Option<(SessionId, TurnId)>,
    /// 1 to [`REMEMBERED_BYTES_MAX`] bytes, with the labels of its sources.
    pub text: Labelled<String>,
}

/// The outcome of keeping a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The note is new.
    New(MemoryId),
    /// A note with the same text existed already.
    Existing(MemoryId),
}

/// Keeps a note for an agent.
///
/// # Errors
/// Refuses an empty or too long text, and a new note if the memory is full.
pub fn keep(tx: &mut WriteTx<'_>, agent: AgentId, new: NewMemory) -> Result<Kept, Denied> {
    let refuse = |code, text: String| Err(Refusal::new(code, text).into());
    if new.text.value.trim().is_empty() || new.text.value.len() > REMEMBERED_BYTES_MAX {
        return refuse(DenialCode::NoteLength, format!("a note has 1 to {REMEMBERED_BYTES_MAX} bytes"));
    }
    let digest = Digest::of(new.text.value.as_bytes());
    let by_person = matches!(new.author, Author::Person { .. });
    if let Some(Numbered { ordinal, id }) = table::same(tx, agent, digest)? {
        keep_again(tx, ordinal, &new)?;
        return Ok(Kept::Existing(id));
    }
    let held = count(tx, agent)?;
    if held >= NOTES_MAX {
        let bound =
            Bound::new("notes in the memory of the agent", NOTES_MAX, held, "`ironctl memory remove` makes room");
        return Err(Refusal::over(DenialCode::MemoryFull, bound).into());
    }
    let (id, created_at) = (MemoryId::new(), tx.now());
    let NewMemory { author, principal, source, text } = &new;
    let row = NewNote {
        id,
        agent,
        source: *source,
        author,
        principal: *principal,
        labels: text.labels,
        digest,
        text: &text.value,
        by_person,
        created_at,
    };
    let ordinal = table::insert(tx, &row)?;
    if let Some((session, _)) = new.source {
        table::add_source(tx, ordinal, session)?;
    }
    let entry = match new.author {
        Author::Person { .. } => Entry::new(LedgerEvent::MemoryKept),
        _ => Entry::with_kind(LedgerEvent::MemoryKept, Kind::Claim),
    };
    let entry = entry.with("agent", agent).with("note", id).with("digest", digest);
    match new.source {
        Some((session, turn)) => entry.session(session).turn(turn).append(tx)?,
        None => entry.with("by", new.principal).append(tx)?,
    };
    Ok(Kept::New(id))
}

/// Keeps a text that exists already: adds its conversation to the note, or makes the person who wrote it down the author.
fn keep_again(tx: &mut WriteTx<'_>, ordinal: i64, new: &NewMemory) -> Result<(), ironclaw_state::Error> {
    if let Some((session, _)) = new.source {
        return table::add_source(tx, ordinal, session);
    }
    table::set_author(tx, ordinal, &new.author, new.principal, new.text.labels)
}

/// The notes that a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matches {
    /// Numbers of the notes, best match first.
    ordinals: Vec<i64>,
    /// True if the search used every word of the query before its time was over.
    pub is_whole: bool,
}

/// Finds the notes of an agent that contain words of the query: most words first, then newest first. Must run in
/// [`ironclaw_state::State::search`].
///
/// The order depends on this agent's notes alone, because a rank over all notes would disclose words of other agents. The work also
/// depends on them alone, because each word in the index begins with its agent.
pub fn search(tx: &ReadTx<'_>, agent: AgentId, query: &str, limit: usize) -> Result<Matches, ironclaw_state::Error> {
    let mut found = Matches { ordinals: Vec::new(), is_whole: true };
    if count(tx, agent)? == 0 {
        return Ok(found);
    }
    let mut hits: HashMap<i64, usize> = HashMap::new();
    for word in words(query) {
        let is_beginning = word.chars().count() >= PREFIX_CHARACTERS_MIN;
        let mut hit = |ordinal| *hits.entry(ordinal).or_default() += 1;
        if tx.is_out_of_time() || !table::each_with_word(tx, agent, &word, is_beginning, &mut hit)? {
            found.is_whole = false;
            break;
        }
    }
    let mut hits: Vec<(usize, i64)> = hits.into_iter().map(|(ordinal, words)| (words, ordinal)).collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    found.ordinals = hits.into_iter().take(limit).map(|(_, ordinal)| ordinal).collect();
    Ok(found)
}

/// Returns the notes that a search found, without those that were erased since.
pub fn notes(tx: &ReadTx<'_>, agent: AgentId, found: &Matches) -> Result<Vec<Note>, ironclaw_state::Error> {
    let notes = found.ordinals.iter().map(|ordinal| table::numbered(tx, agent, *ordinal));
    notes.filter_map(Result::transpose).collect()
}

/// Adds notes to the index that are older than the index. Returns whether more are left.
pub fn index_some(tx: &mut WriteTx<'_>) -> Result<bool, ironclaw_state::Error> {
    let missing = table::unindexed(tx, INDEXED_AT_ONCE_MAX)?;
    for words in &missing {
        table::index(tx, words)?;
    }
    Ok(missing.len() == INDEXED_AT_ONCE_MAX)
}

fn words(query: &str) -> BTreeSet<String> {
    table::split(query).take(WORDS_MAX).map(str::to_lowercase).collect()
}

/// Erases one note of an agent.
///
/// # Errors
/// Refuses if the agent has no such note.
pub fn forget(tx: &mut WriteTx<'_>, agent: AgentId, id: MemoryId, by: PersonId) -> Result<(), Denied> {
    if table::delete(tx, agent, id)? == 0 {
        return Err(Refusal::new(DenialCode::NoteUnknown, format!("the agent has no note {id}")).into());
    }
    Entry::new(LedgerEvent::MemoryForgotten).with("agent", agent).with("note", id).with("by", by).append(tx)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::seam::crypt::SessionKey;
    use ironclaw_judge::provenance::Provenance;
    use ironclaw_state::State;
    use ironclaw_store::refusal::Decide;

    fn new_note(text: String) -> NewMemory {
        let person = PersonId::new();
        NewMemory {
            author: Author::Person { person },
            principal: person,
            source: None,
            text: Labelled::new(text, Provenance::Person),
        }
    }

    async fn opened(directory: &tempfile::TempDir) -> State {
        let path = directory.path().join("state.db");
        State::create(&path).expect("made");
        let state = State::open(&path, &SessionKey::new([7; 32])).expect("opened");
        state.write(|tx| Entry::new(LedgerEvent::LedgerOpened).append(tx).map(drop)).await.expect("begun");
        state
    }

    /// Returns the work of one search of an agent, and the text of the notes that it found.
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
                    keep(tx, agent, new_note(format!("note {n}: {words}")))?;
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
        // A larger index has a few more segments. Each segment costs one step, and the notes of other agents cost none.
        assert!(found.len() == 1 && work <= alone.1 + 4, "{work} after {}", alone.1);
        let own = searched(&state, rich, QUERY).await.0;
        assert!(own > 4 * work, "a search costs work for the agent's own notes: {own}, {work}");
        state.close().await;
    }

    #[tokio::test]
    async fn search_without_time_ends_early_and_reports_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = opened(&directory).await;
        let agent = AgentId::new();
        let keep = state.decide(move |tx| keep(tx, agent, new_note("Straße Café naïve".to_owned())).map(drop));
        keep.await.expect("kept");
        let search_in = |time| state.search(time, move |tx| search(tx, agent, "cafe NAI strasse", 5));
        assert_eq!(search_in(Duration::ZERO).await.expect("searched"), Matches::default());
        let found = search_in(Duration::from_secs(60)).await.expect("searched");
        assert_eq!((found.ordinals.len(), found.is_whole), (1, true), "case and accents are folded");
        let id = state.read(move |tx| list(tx, agent, 1)).await.expect("listed")[0].id;
        state.decide(move |tx| forget(tx, agent, id, PersonId::new())).await.expect("forgotten");
        assert_eq!(search_in(Duration::from_secs(60)).await.expect("searched").ordinals.len(), 0);
        state.close().await;
    }
}
