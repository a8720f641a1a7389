//! The people who follow a session and can decide there: clients that opened the stream of a message with `decides=true`.
//!
//! Only in memory: a client that goes away is no longer present. Never decides.

use ironclaw_contract::ids::{PersonId, SessionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The present people of each session, each with the number of their stream.
type People = HashMap<SessionId, Vec<(u64, PersonId)>>;

/// The present people of each session.
#[derive(Debug, Clone, Default)]
pub struct Presence {
    people: Arc<Mutex<People>>,
    changed: Arc<watch::Sender<u64>>,
}

/// A present person. Its drop ends the presence.
#[derive(Debug)]
pub struct Present {
    presence: Presence,
    session: SessionId,
    number: u64,
}

impl Presence {
    /// Counts a person as present in a session until the answer is dropped.
    pub fn enter(&self, session: SessionId, person: PersonId) -> Present {
        let number = self.announce();
        self.lock().entry(session).or_default().push((number, person));
        self.announce();
        Present { presence: self.clone(), session, number }
    }

    /// Returns the people who are present in a session.
    pub fn of(&self, session: SessionId) -> Vec<PersonId> {
        self.lock().get(&session).map_or_else(Vec::new, |present| present.iter().map(|(_, person)| *person).collect())
    }

    /// Watches for people who come or go.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn announce(&self) -> u64 {
        let mut number = 0;
        self.changed.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        number
    }

    fn lock(&self) -> MutexGuard<'_, People> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut people = self.presence.lock();
        if let Some(present) = people.get_mut(&self.session) {
            present.retain(|(number, _)| *number != self.number);
            if present.is_empty() {
                people.remove(&self.session);
            }
        }
        drop(people);
        self.presence.announce();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn person_is_present_until_the_last_client_leaves() {
        let (presence, session, person) = (Presence::default(), SessionId::new(), PersonId::new());
        let first = presence.enter(session, person);
        let second = presence.enter(session, person);
        assert_eq!(presence.of(session), [person, person]);
        assert!(presence.of(SessionId::new()).is_empty());
        drop(first);
        assert_eq!(presence.of(session), [person]);
        drop(second);
        assert!(presence.of(session).is_empty());
    }
}
