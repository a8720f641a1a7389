//! The codes that sign a person in, once each, within a minute.
//!
//! Only in memory: a restart ends them all. Never says which part of a wrong code is right. See `api::console::sign_in`.

use crate::registry::{Giver, Person};
use ironclaw_contract::canonical::Digest;
use ironclaw_state::keys;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The time for which a code is valid.
pub const VALID: Duration = Duration::from_secs(60);

/// Codes of one person at once; an older one gives way.
const OF_PERSON_MAX: usize = 8;

/// The characters of a code: 32 that a person does not confuse.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Characters of a code, five random bits each.
const CHARACTERS: usize = 16;

/// Characters of a group, which are shown with a dash between.
const GROUP: usize = 4;

/// A code as a person gets it.
pub struct Code(String);

impl Code {
    fn random() -> Result<Self, keys::Error> {
        let bytes: [u8; CHARACTERS] = keys::random()?;
        Ok(Self(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()))
    }

    /// Reads a typed code: in any case, with or without dashes and spaces.
    fn digest(typed: &str) -> Digest {
        let plain: String = typed.chars().filter(char::is_ascii_alphanumeric).collect();
        Digest::of(plain.to_ascii_uppercase().as_bytes())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<&str> = (0..CHARACTERS).step_by(GROUP).map(|at| &self.0[at..at + GROUP]).collect();
        f.write_str(&groups.join("-"))
    }
}

/// The holder of a code: the person, and the token with which they asked for it.
#[derive(Debug, Clone)]
pub struct Holder {
    pub person: Person,
    pub giver: Giver,
}

struct Issued {
    digest: Digest,
    holder: Holder,
    until: Instant,
}

/// The codes that are valid.
#[derive(Default)]
pub struct Codes(Mutex<Vec<Issued>>);

impl Codes {
    /// Makes a code for its holder.
    ///
    /// # Errors
    /// Fails if the system gives no random bytes.
    pub fn issue(&self, holder: Holder, now: Instant) -> Result<Code, keys::Error> {
        let code = Code::random()?;
        let mut issued = self.valid(now);
        let is_theirs = |of: &Issued| of.holder.person.id == holder.person.id;
        if issued.iter().filter(|of| is_theirs(of)).count() >= OF_PERSON_MAX
            && let Some(oldest) = issued.iter().position(is_theirs)
        {
            issued.remove(oldest);
        }
        issued.push(Issued { digest: Code::digest(&code.0), holder, until: now + VALID });
        Ok(code)
    }

    /// Returns the holder of a code and leaves the code valid.
    pub fn peek(&self, typed: &str, now: Instant) -> Option<Holder> {
        let digest = Code::digest(typed);
        self.valid(now).iter().find(|of| of.digest == digest).map(|of| of.holder.clone())
    }

    /// Uses a code up, and returns its holder.
    pub fn take(&self, typed: &str, now: Instant) -> Option<Holder> {
        let digest = Code::digest(typed);
        let mut issued = self.valid(now);
        let at = issued.iter().position(|of| of.digest == digest)?;
        Some(issued.remove(at).holder)
    }

    /// Ends every code.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the valid codes; forgets the others.
    fn valid(&self, now: Instant) -> std::sync::MutexGuard<'_, Vec<Issued>> {
        let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        issued.retain(|of| now < of.until);
        issued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Role;
    use ironclaw_contract::ids::PersonId;

    fn holder() -> Holder {
        let person = Person { id: PersonId::new(), name: "Ann".to_owned(), role: Role::Owner, created_at: 0 };
        Holder { giver: person.id.into(), person }
    }

    #[test]
    fn used_late_guessed_or_cut_code_signs_no_person_in() {
        let (codes, now) = (Codes::default(), Instant::now());
        let code = codes.issue(holder(), now).expect("random bytes").to_string();
        assert_eq!((code.len(), code.matches('-').count()), (19, 3));
        for wrong in ["", "0000-0000-0000-0000", &code[..18], &format!("{code}0"), "ict_"] {
            assert!(codes.take(wrong, now).is_none(), "{wrong}");
        }
        assert!(codes.peek(&code, now).is_some() && codes.peek(&code, now).is_some(), "a look uses nothing up");
        assert!(codes.take(&code.to_lowercase().replace('-', " "), now).is_some(), "as a person types it");
        assert!(codes.take(&code, now).is_none(), "used");
        let late = codes.issue(holder(), now).expect("random bytes").to_string();
        assert!(codes.take(&late, now + VALID).is_none(), "late");
    }

    #[test]
    fn person_has_few_codes_at_once() {
        let (codes, now, holder) = (Codes::default(), Instant::now(), holder());
        let made: Vec<String> =
            (0..=OF_PERSON_MAX).map(|_| codes.issue(holder.clone(), now).expect("random bytes").to_string()).collect();
        let valid = made.iter().filter(|code| codes.peek(code, now).is_some()).count();
        assert_eq!((valid, codes.peek(&made[0], now).is_some()), (OF_PERSON_MAX, false), "the oldest gave way");
    }
}
