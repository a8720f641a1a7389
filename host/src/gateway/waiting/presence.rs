//! The people who follow a message and can decide there: clients that opened its stream with `decides=true`.
//!
//! A stream shows the requests of the turn of its message, and no others. So a person is present at this turn alone, and a turn of
//! another message of the session does not wait for them. Only in memory: a client that goes away is no longer present. Never decides.

use ironclaw_contract::ids::{MessageId, PersonId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The present people of each message, each with the number of their stream.
type People = HashMap<MessageId, Vec<(u64, PersonId)>>;

/// The present people of each message. No one is present while the host stops.
#[derive(Debug, Clone, Default)]
pub struct Presence {
    people: Arc<Mutex<People>>,
    changed: Arc<watch::Sender<u64>>,
    is_closed: Arc<AtomicBool>,
}

/// A present person. Its drop ends the presence.
#[derive(Debug)]
pub struct Present {
    presence: Presence,
    message: MessageId,
    number: u64,
}

impl Presence {
    /// Counts a person as present at a message until the answer is dropped.
    pub fn enter(&self, message: MessageId, person: PersonId) -> Present {
        let number = self.announce();
        self.lock().entry(message).or_default().push((number, person));
        self.announce();
        Present { presence: self.clone(), message, number }
    }

    /// Returns the people who are present at a message.
    pub fn people_at(&self, message: MessageId) -> Vec<PersonId> {
        if self.is_closed() {
            return Vec::new();
        }
        self.lock().get(&message).map_or_else(Vec::new, |present| present.iter().map(|(_, person)| *person).collect())
    }

    /// Ends the presence of everyone, because the host stops: no turn waits for them any longer.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.announce();
    }

    /// Returns whether the host stops.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
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
        if let Some(present) = people.get_mut(&self.message) {
            present.retain(|(number, _)| *number != self.number);
            if present.is_empty() {
                people.remove(&self.message);
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
        let (presence, message, person) = (Presence::default(), MessageId::new(), PersonId::new());
        let first = presence.enter(message, person);
        let second = presence.enter(message, person);
        assert_eq!(presence.people_at(message), [person, person]);
        assert!(presence.people_at(MessageId::new()).is_empty());
        drop(first);
        assert_eq!(presence.people_at(message), [person]);
        drop(second);
        assert!(presence.people_at(message).is_empty());
    }

    #[test]
    fn no_one_is_present_while_the_host_stops() {
        let (presence, message, person) = (Presence::default(), MessageId::new(), PersonId::new());
        let _first = presence.enter(message, person);
        let watched = presence.watch();
        presence.close();
        assert!(presence.people_at(message).is_empty() && watched.has_changed().expect("it is open"));
        let _second = presence.enter(message, person);
        assert!(presence.people_at(message).is_empty());
    }
}
