//! The states of sessions: makes, halts, releases and erases them, and opens their keys.
//!
//! Never starts or stops a process; the actor does that. The rows are in [`ironclaw_store::tables::sessions`].

pub use ironclaw_store::tables::sessions::{
    Origin, OriginKind, ScheduleRuns, Session, SessionState, all, count_failure, find, find_by_origin, find_own,
    give_uid_back, list_for_agent, list_for_person, recently_active, removed, reset_failures, touch, was_of,
};

use crate::registry::{self, Agent, Person, Role};
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::keys::WrappingKey;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::sessions::NewSession;
use ironclaw_store::tables::{deliveries, endpoint_words, items, messages, sessions, turns};
use ironclaw_text::excerpt::quoted;
use std::fmt::Display;

/// Returns the sessions that a person may see: an operator sees all, a member their own.
pub fn seen_by(tx: &ReadTx<'_>, person: &Person) -> Result<Vec<Session>, ironclaw_state::Error> {
    match person.role {
        Role::Owner | Role::Admin => all(tx),
        Role::Member => sessions::own(tx, person.id),
    }
}

/// Returns the session of this id, if this person may see it.
pub fn find_seen_by(tx: &ReadTx<'_>, person: &Person, id: SessionId) -> Result<Option<Session>, ironclaw_state::Error> {
    match person.role {
        Role::Owner | Role::Admin => find(tx, id),
        Role::Member => find_own(tx, person.id, id),
    }
}

/// Returns the refusal of a session that does not exist, or that the person may not see. The two have one refusal, so a member does not
/// learn of the sessions of others.
pub fn unknown(session: impl Display) -> Refusal {
    let refusal = Refusal::new(DenialCode::SessionUnknown, format!("there is no session {}", quoted(session)));
    refusal.hint("`ironctl session list` shows the sessions that you may see")
}

/// Returns the session of this agent and origin, and makes it if it does not exist: for this person, or for no single one. Its uid offset
/// is below `numbers`.
///
/// # Errors
/// Refuses a session if all offsets are taken. Fails on an error of the keys or the record.
pub fn find_or_create(
    tx: &mut WriteTx<'_>,
    agent: &Agent,
    origin: &Origin,
    person: impl Into<Option<PersonId>>,
    numbers: u32,
    wrapping: &WrappingKey,
) -> Result<Session, Denied<Error>> {
    if let Some(session) = find_by_origin(tx, agent.id, origin)? {
        return Ok(session);
    }
    let uid_offset = free_number(tx, numbers)?.ok_or_else(|| full(numbers))?;
    let id = SessionId::new();
    let (_, wrapped) = wrapping.make(id)?;
    let person = person.into();
    sessions::insert(tx, &NewSession { id, agent: agent.id, origin, uid_offset, wrapped, person })?;
    Entry::new(LedgerEvent::SessionCreated)
        .session(id)
        .with("agent", agent.id)
        .with("channel", origin.channel.clone())
        .append(tx)?;
    let made = find(tx, id)?;
    Ok(made.ok_or_else(|| ironclaw_state::Error::Stored(format!("{id} vanished while it was made")))?)
}

/// Returns the refusal of a session for which the host has none of its uids left.
pub fn full(numbers: u32) -> Refusal {
    let remedy = "an admin removes conversations with `ironctl session remove`";
    let bound = Bound::new("uids of this host for conversations are taken", numbers, numbers, remedy);
    Refusal::over(DenialCode::ConversationsFull, bound.setting_at_start("jail.uid_count"))
}

/// Returns a uid offset for a new session: an unused one first, and then one of a removed session. So an offset that was given back
/// rests as long as possible.
fn free_number(tx: &mut WriteTx<'_>, numbers: u32) -> Result<Option<u32>, ironclaw_state::Error> {
    let next = sessions::next_uid(tx)?;
    if next < numbers {
        return Ok(Some(next));
    }
    sessions::take_free_uid(tx, numbers)
}

/// Wraps the keys of every session with another key, and returns the number of sessions.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<u64, Error> {
    let mut count = 0;
    for session in all(tx)? {
        let Some(stored) = &session.wrapped else { continue };
        sessions::set_keys(tx, session.id, &old.rewrap(new, session.id, stored)?)?;
        count += 1;
    }
    Ok(count)
}

/// The reason that a session is halted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureReason {
    /// The reason in the host's own words, for the ledger and for the person.
    pub words: String,
    /// Details for the operator, shown as a quote, because they may be words of a stranger.
    pub detail: String,
}

impl FailureReason {
    /// Makes a reason without details.
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), detail: String::new() }
    }

    /// Returns the reason for the operator: the words, and the details as a quote.
    pub fn shown(&self) -> String {
        if self.detail.is_empty() { self.words.clone() } else { format!("{}: {:?}", self.words, self.detail) }
    }
}

/// Moves a session to another state; `by` is the operator who did it.
pub fn set_session_state(
    tx: &mut WriteTx<'_>,
    id: SessionId,
    standing: SessionState,
    why: Option<&FailureReason>,
    by: Option<PersonId>,
) -> Result<(), ironclaw_state::Error> {
    sessions::set_session_state(tx, id, standing, why.map(FailureReason::shown).as_deref())?;
    let entry = match standing {
        SessionState::Active => Entry::new(LedgerEvent::SessionReleased),
        SessionState::Parked => Entry::new(LedgerEvent::SessionParked),
        SessionState::Quarantined => {
            Entry::new(LedgerEvent::SessionQuarantined).fault(ironclaw_operator::Fault::Sandbox)
        }
        SessionState::Removed => Entry::new(LedgerEvent::SessionRemoved),
    };
    let entry = entry.session(id).reason(why.map_or("", |why| why.words.as_str()));
    match by {
        Some(by) => entry.with("by", by).append(tx)?,
        None => entry.append(tx)?,
    };
    Ok(())
}

/// Returns the agent of a session.
///
/// # Errors
/// Errors of the record, and a session without an agent.
pub fn agent_of(tx: &ReadTx<'_>, session: SessionId) -> Result<Agent, ironclaw_state::Error> {
    let gone = || ironclaw_state::Error::Stored(format!("{session} has no agent"));
    let session = find(tx, session)?.ok_or_else(gone)?;
    registry::agent_by_id(tx, session.agent)?.ok_or_else(gone)
}

/// Erases a session: its keys, which makes every body unreadable, and then its rows. Its uid stays taken until [`give_uid_back`].
pub fn erase(tx: &mut WriteTx<'_>, id: SessionId, by: PersonId) -> Result<(), ironclaw_state::Error> {
    set_session_state(tx, id, SessionState::Removed, None, Some(by))?;
    sessions::delete_keys(tx, id)?;
    items::delete_of(tx, id)?;
    items::delete_summaries_of(tx, id)?;
    messages::delete_of(tx, id)?;
    turns::delete_of(tx, id)?;
    turns::delete_calls_of(tx, id)?;
    sessions::delete_outbound_rows_of(tx, id)?;
    deliveries::delete_of(tx, id)?;
    endpoint_words::delete_of_session(tx, id)?;
    // The ids of its events stay, so that a repeated event makes no new session. The digests of their text do not.
    sessions::delete_event_digests_of(tx, id)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::gateway::decide::proof::{Approved, Direct};
    use crate::gateway::writers::{self, agents::create_agent};
    use crate::registry::mounts::Mount;
    use crate::registry::people::create_owner;
    use crate::registry::quota;
    use crate::registry::{self, AgentDraft};
    use ironclaw_contract::seam::change::Access;
    use ironclaw_store::record;

    fn granted(read_only: bool) -> Mount {
        Mount { source: "/srv/data".into(), target: "/data".to_owned(), read_only, mine: None }
    }

    fn origin(thread: usize) -> Origin {
        Origin::from_sender("desk".to_owned(), "x".to_owned(), thread.to_string())
    }

    /// Returns an agent for everyone, without a persona and tools.
    pub(crate) fn draft(name: &str) -> AgentDraft {
        let (persona, access) = (String::new(), Access::Everyone);
        AgentDraft { name: name.to_owned(), model: None, persona, enabled_tools: Vec::new(), access }
    }

    /// Opens the ledger of a new record, and makes its owner.
    pub(crate) fn make_owner(tx: &mut WriteTx<'_>) -> Person {
        Entry::new(LedgerEvent::LedgerOpened).append(tx).expect("written");
        let owner = create_owner(tx, "Olga").expect("written");
        registry::person_by_id(tx, owner).expect("read").expect("a person")
    }

    /// Runs a test on a record with an owner and an agent.
    fn on_record(test: impl FnOnce(&mut WriteTx<'_>, PersonId, &Agent, &WrappingKey) + Send + 'static) {
        record::in_a_new_one(|tx, key| {
            let owner = make_owner(tx).id;
            let agent = create_agent(tx, &Direct::by_test(owner), draft("a")).expect("a name");
            test(tx, owner, &agent, &key.wrapping_key());
        });
    }

    fn is_full(made: Result<Session, Denied<Error>>) -> bool {
        matches!(made, Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ConversationsFull)
    }

    /// Runs a test with a session of the owner of a new record.
    pub(crate) fn with_session(test: impl FnOnce(&mut WriteTx<'_>, PersonId, &Session) + Send + 'static) {
        on_record(|tx, owner, agent, wrapping| {
            let own = registry::Identity::own(owner);
            let origin = Origin::from_sender(own.channel, own.sender, String::new());
            let session = find_or_create(tx, agent, &origin, owner, 1, wrapping).expect("made");
            test(tx, owner, &session);
        });
    }

    #[test]
    fn uid_of_a_removed_session_is_used_again_once_files_are_gone() {
        on_record(|tx, owner, agent, wrapping| {
            let make = |tx: &mut WriteTx<'_>, n: usize| find_or_create(tx, agent, &origin(n), owner, 3, wrapping);
            let made: Vec<Session> = (0..3).map(|n| make(tx, n).expect("there is a uid")).collect();
            assert_eq!(made.iter().map(|session| session.uid_offset).collect::<Vec<_>>(), [0, 1, 2]);
            assert!(is_full(make(tx, 3)), "no session gets a uid beyond the range");
            assert_eq!(make(tx, 1).expect("it is there").id, made[1].id);
            erase(tx, made[1].id, owner).expect("erased");
            assert!(is_full(make(tx, 3)), "a file of it may still exist");
            assert_eq!(removed(tx).expect("read"), [made[1].id]);
            give_uid_back(tx, made[1].id).expect("given back");
            give_uid_back(tx, made[1].id).expect("once");
            assert_eq!(removed(tx).expect("read"), [], "there is nothing left to remove");
            assert_eq!(make(tx, 3).expect("there is a uid again").uid_offset, 1);
            assert!(is_full(make(tx, 4)));
        });
    }

    #[test]
    fn uid_that_may_own_granted_files_is_not_reused() {
        type End = fn(&mut WriteTx<'_>, &Approved, &Agent);
        let ends: [End; 4] = [
            // The grant is still there.
            |_, _, _| {},
            |tx, yes, agent| writers::mounts::set(tx, yes, agent.id, &[]).expect("revoked"),
            |tx, yes, agent| writers::mounts::set(tx, yes, agent.id, &[granted(true)]).expect("made read-only"),
            |tx, yes, agent| writers::agents::remove_agent(tx, yes, agent).expect("removed"),
        ];
        for end in ends {
            on_record(move |tx, owner, agent, wrapping| {
                let yes = Approved::by_test(owner);
                let other = create_agent(tx, &Direct::by_test(owner), draft("b")).expect("a name");
                writers::mounts::set(tx, &yes, agent.id, &[granted(false)]).expect("granted");
                let made = find_or_create(tx, agent, &origin(0), owner, 1, wrapping).expect("there is a uid");
                erase(tx, made.id, owner).expect("erased");
                end(tx, &yes, agent);
                give_uid_back(tx, made.id).expect("noted");
                let next = find_or_create(tx, &other, &origin(1), owner, 1, wrapping);
                assert!(is_full(next), "the uid is used again");
            });
        }
    }

    #[test]
    fn uid_of_a_session_made_after_a_grant_is_used_again() {
        on_record(|tx, owner, agent, wrapping| {
            let yes = Approved::by_test(owner);
            writers::mounts::set(tx, &yes, agent.id, &[granted(false)]).expect("granted");
            writers::mounts::set(tx, &yes, agent.id, &[]).expect("revoked");
            let made = find_or_create(tx, agent, &origin(0), owner, 1, wrapping).expect("there is a uid");
            writers::mounts::set(tx, &yes, agent.id, &[granted(true)]).expect("granted to read");
            erase(tx, made.id, owner).expect("erased");
            give_uid_back(tx, made.id).expect("noted");
            assert_eq!(find_or_create(tx, agent, &origin(1), owner, 1, wrapping).expect("a uid").uid_offset, 0);
        });
    }

    #[test]
    fn member_sees_only_own_sessions_of_linked_identities() {
        on_record(|tx, owner, agent, wrapping| {
            let [bob, eve] =
                ["Bob", "Eve"].map(|name| registry::add_person(tx, name, Role::Member, owner).expect("a good name"));
            let identity = "desk:bob".parse().expect("an identity");
            registry::people::link(tx, &bob, &identity, owner).expect("a free identity");
            let mut begin = |address: &str, person: &Person| {
                let origin = Origin { platform_id: address.to_owned(), ..origin(0) };
                find_or_create(tx, agent, &origin, person.id, 9, wrapping).expect("there is a uid").id
            };
            let (own, other) = (begin("bob", &bob), begin("eve", &eve));
            let seen = |tx: &ReadTx<'_>, by: &Person| -> Vec<SessionId> {
                let mut ids: Vec<_> = seen_by(tx, by).expect("read").into_iter().map(|session| session.id).collect();
                ids.sort();
                ids
            };
            let finds = |tx: &ReadTx<'_>, by: &Person, id| find_seen_by(tx, by, id).expect("read").is_some();
            assert_eq!(seen(tx, &bob), [own]);
            assert!(finds(tx, &bob, own) && !finds(tx, &bob, other) && !finds(tx, &bob, SessionId::new()));
            assert!(!finds(tx, &eve, other), "the address is linked to no person");
            let owner = registry::person_by_id(tx, owner).expect("read").expect("a person");
            let mut both = [own, other];
            both.sort();
            assert_eq!(seen(tx, &owner), both);
            registry::people::unlink(tx, &bob, &identity, owner.id).expect("a linked identity");
            assert_eq!(seen(tx, &bob), []);
            assert_eq!(list_for_person(tx, bob.id).expect("read").len(), 1);
            erase(tx, own, owner.id).expect("erased");
            assert_eq!(seen(tx, &owner), [other]);
            assert!(was_of(tx, bob.id, own).expect("read") && !was_of(tx, eve.id, own).expect("read"));
        });
    }

    #[test]
    fn conversation_over_the_bound_is_refused_for_its_person() {
        on_record(|tx, owner, agent, wrapping| {
            let other = PersonId::new();
            let config =
                quota::Config { conversations_per_person: 2, conversations_per_channel: 3, ..quota::Config::default() };
            let code = |tx: &ReadTx<'_>, person, channel| match config.admit_conversation(tx, person, channel) {
                Ok(()) => Ok(()),
                Err(Denied::Refused(refusal)) => Err(refusal.code),
                Err(Denied::Failed(error)) => panic!("read: {error}"),
            };
            for n in 0..2 {
                assert_eq!(code(tx, owner, "desk"), Ok(()));
                find_or_create(tx, agent, &origin(n), owner, 9, wrapping).expect("made");
            }
            assert_eq!(code(tx, owner, "desk"), Err(DenialCode::TooManyConversations));
            assert_eq!(code(tx, other, "desk"), Ok(()), "another person has their own");
            find_or_create(tx, agent, &origin(2), other, 9, wrapping).expect("made");
            assert_eq!(
                code(tx, other, "desk"),
                Err(DenialCode::TooManyConversations),
                "the channel has as many as it may"
            );
            assert_eq!(code(tx, other, crate::registry::LOOPBACK), Ok(()));
        });
    }
}
