//! The principal of a turn, and the policy of an agent about the classes that each kind of principal may ask for.
//!
//! Never finds out who a principal is: the host knows it from the sealed message.

pub use ironclaw_operator::Principal;

use crate::class::{Class, Classes};
use crate::provenance::spans::Telling;
use crate::scope::Source;
use crate::scope::recorded::Recorded;
use serde::{Deserialize, Serialize};

/// The classes that one kind of principal may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// The classes that a request may declare at all.
    pub may: Classes,
    /// The classes of a request that declares nothing.
    pub unasked: Classes,
}

impl Allowed {
    /// Returns the classes of a recorded scope, such as `declared:read send`. Reading is a part of every request. A declaration is all
    /// of it unless it adds, and so are the scope of an earlier turn and the classes of a text that may not be typed. A text without an
    /// origin, such as that of an earlier version, has the classes that need no word.
    pub fn asked(self, recorded: &str) -> Classes {
        let Ok(scope) = recorded.parse::<Recorded>() else { return self.unasked.and(self.may) };
        let is_all = match scope.source {
            Source::Declared | Source::Carried => true,
            Source::Added | Source::Lexicon | Source::Default => scope.telling == Telling::Nothing,
        };
        let reading = Classes::new(&[Class::Read, Class::Ask]);
        scope.classes.or(if is_all { reading } else { self.unasked }).and(self.may)
    }
}

/// The classes for each kind of principal, for one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverPolicy {
    pub person: Allowed,
    /// Strangers of a public channel.
    pub guest: Allowed,
    pub agent: Allowed,
    pub schedule: Allowed,
}

/// The classes of an agent's own policy for one kind of principal. Without a field the default holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnAllowed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Classes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unasked: Option<Classes>,
}

impl OwnAllowed {
    fn over(self, usual: Allowed) -> Allowed {
        let may = self.may.unwrap_or(usual.may);
        Allowed { may, unasked: self.unasked.unwrap_or(usual.unasked).and(may) }
    }
}

/// The own policy of an agent, for each kind of principal that it names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnReceiver {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<OwnAllowed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<OwnAllowed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<OwnAllowed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<OwnAllowed>,
}

impl OwnReceiver {
    /// Returns the entry for a kind of principal; `None` for a text without a seal, for which there is no policy.
    pub const fn entry(&mut self, principal: Principal) -> Option<&mut Option<OwnAllowed>> {
        Some(match principal {
            Principal::Person => &mut self.person,
            Principal::Guest => &mut self.guest,
            Principal::Agent => &mut self.agent,
            Principal::Schedule => &mut self.schedule,
            Principal::Unsigned => return None,
        })
    }

    /// Returns the policy with the defaults where the own one names nothing.
    pub fn policy(&self) -> ReceiverPolicy {
        let usual = ReceiverPolicy::default();
        let with = |own: Option<OwnAllowed>, usual: Allowed| own.unwrap_or_default().over(usual);
        ReceiverPolicy {
            person: with(self.person, usual.person),
            guest: with(self.guest, usual.guest),
            agent: with(self.agent, usual.agent),
            schedule: with(self.schedule, usual.schedule),
        }
    }
}

const NOTHING: Allowed = Allowed { may: Classes::NONE, unasked: Classes::NONE };
const READING: Allowed =
    Allowed { may: Classes::new(&[Class::Read, Class::Ask]), unasked: Classes::new(&[Class::Read, Class::Ask]) };

impl Default for ReceiverPolicy {
    fn default() -> Self {
        let all = Classes::new(&Class::ALL);
        let unasked = Classes::new(&[Class::Read, Class::Write, Class::Ask]);
        Self { person: Allowed { may: all, unasked }, guest: NOTHING, agent: NOTHING, schedule: READING }
    }
}

impl ReceiverPolicy {
    /// Returns the policy within the bound of the host, which has the classes that each kind of principal may ever ask for.
    #[must_use]
    pub const fn within(self, bound: &Self) -> Self {
        const fn both(own: Allowed, bound: Allowed) -> Allowed {
            let may = own.may.and(bound.may);
            Allowed { may, unasked: own.unasked.and(may) }
        }
        Self {
            person: both(self.person, bound.person),
            guest: both(self.guest, bound.guest),
            agent: both(self.agent, bound.agent),
            schedule: both(self.schedule, bound.schedule),
        }
    }

    /// Returns the classes for a kind of principal. A text without a seal has none, by any policy.
    pub const fn allowed(&self, principal: Principal) -> Allowed {
        match principal {
            Principal::Person => self.person,
            Principal::Guest => self.guest,
            Principal::Agent => self.agent,
            Principal::Schedule => self.schedule,
            Principal::Unsigned => NOTHING,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_that_is_no_kind_of_principal_is_refused() {
        for kind in Principal::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        for word in ["", "Person", "host", "persons"] {
            assert!(word.parse::<Principal>().is_err(), "{word}");
        }
    }

    #[test]
    fn unsigned_guests_and_agents_may_ask_for_nothing() {
        let policy = ReceiverPolicy::default();
        for principal in [Principal::Unsigned, Principal::Guest, Principal::Agent] {
            assert!(policy.allowed(principal).may.is_empty(), "{}", principal.name());
        }
        let open = Allowed { may: Classes::new(&Class::ALL), unasked: Classes::new(&Class::ALL) };
        let policy = ReceiverPolicy { person: open, guest: open, agent: open, schedule: open };
        assert_eq!(policy.allowed(Principal::Unsigned), NOTHING);
    }

    #[test]
    fn own_policy_holds_within_the_bound_of_the_host() {
        let all = Classes::new(&Class::ALL);
        let text = r#"{"guest":{"may":["read","write"],"unasked":["read","send"]},"person":{"may":["read"]}}"#;
        let own: OwnReceiver = serde_json::from_str(text).expect("a policy");
        let policy = own.policy();
        assert_eq!(policy.person.unasked, Classes::new(&[Class::Read]), "it never exceeds what may be asked for");
        assert_eq!(policy.guest.unasked, Classes::new(&[Class::Read]));
        assert_eq!(policy.schedule, READING);
        let usual = ReceiverPolicy::default();
        assert!(policy.within(&usual).guest.may.is_empty(), "the host admits no guest");
        let open = Allowed { may: all, unasked: all };
        assert_eq!(policy.within(&ReceiverPolicy { guest: open, ..usual }).guest, policy.guest);
        assert!(serde_json::from_str::<OwnReceiver>(r#"{"unsigned":{}}"#).is_err());
        assert_eq!(serde_json::to_string(&OwnReceiver::default()).expect("text"), "{}");
    }

    #[test]
    fn default_needs_a_word_beyond_reading_and_writing() {
        let policy = ReceiverPolicy::default();
        for class in [Class::Send, Class::Exec, Class::Trade] {
            assert!(policy.person.may.has(class) && !policy.person.unasked.has(class), "{class}");
            assert!(!policy.agent.may.has(class) && !policy.schedule.may.has(class), "{class}");
        }
    }

    #[test]
    fn declared_scope_is_all_and_others_add_to_the_default() {
        let person = ReceiverPolicy::default().person;
        assert_eq!(person.asked("declared:send"), Classes::new(&[Class::Read, Class::Send, Class::Ask]));
        assert_eq!(person.asked("default:"), person.unasked);
        assert_eq!(person.asked("lexicon:send"), person.unasked.with(Class::Send));
        assert_eq!(person.asked("added:exec"), person.unasked.with(Class::Exec));
        assert_eq!(person.asked("carried:send"), person.asked("declared:send"));
        assert_eq!(person.asked("untyped-added:read send"), person.asked("declared:send"));
        assert_eq!(person.asked("untyped-default:read"), Classes::new(&[Class::Read, Class::Ask]));
        assert_eq!(person.asked("untyped-declared:write"), Classes::new(&[Class::Read, Class::Write, Class::Ask]));
        for old in ["", "read write", "declared", "other:everything"] {
            assert_eq!(person.asked(old), person.unasked, "{old:?}");
        }
        assert!(ReceiverPolicy::default().guest.asked("declared:send trade").is_empty());
    }
}
