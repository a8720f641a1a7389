//! People, their roles, and their identities on channels.
//!
//! An identity is a whole, opaque pair: never a prefix, never a display name, and never of two people. See
//! [`mod@crate::registry::tokens`] and [`crate::channels::inbound::identity`].

pub use ironclaw_store::tables::people::{
    Identity, Person, Role, SENDER_BYTES_MAX, find_person, identities, owner, people, person_by_id, person_of,
};

use super::allowances;
use super::places::ending::{self, identity_entry};
use super::suggestion::Unknown;
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables;
use ironclaw_store::tables::people::{Giver, LOOPBACK};
use ironclaw_text::excerpt::quoted;

/// Characters of a person's name.
const NAME_CHARACTERS_MAX: usize = 64;

/// People of one host: a team, not a public service.
const PEOPLE_MAX: i64 = 1000;

/// Identities of one person.
const IDENTITIES_MAX: i64 = 64;

/// Returns the name, or the id if the object was removed.
pub fn name_or_id(name: Option<String>, id: impl std::fmt::Display) -> String {
    name.unwrap_or_else(|| id.to_string())
}

/// Returns the name of a person, or the id if the person was removed.
pub fn person_name(tx: &ReadTx<'_>, id: PersonId) -> Result<String, ironclaw_state::Error> {
    Ok(name_or_id(person_by_id(tx, id)?.map(|person| person.name), id))
}

/// Returns the person of this name or id, from a request of `by`.
///
/// # Errors
/// Refuses an unknown name or id, and suggests the nearest name that `by` may see.
pub fn known_person(tx: &ReadTx<'_>, by: &Person, name_or_id: &str) -> Result<Person, Denied> {
    if let Some(person) = find_person(tx, name_or_id)? {
        return Ok(person);
    }
    let refusal = Refusal::new(DenialCode::PersonUnknown, format!("there is no person {}", quoted(name_or_id)));
    let refusal = refusal.hint("`ironctl person list` lists the people; `ironctl person add NAME` adds one");
    Err(Unknown::Person(name_or_id).suggest(tx, by, refusal)?.into())
}

/// Returns the person that an identity is linked to.
pub fn person_behind(tx: &ReadTx<'_>, identity: &Identity) -> Result<Option<Person>, ironclaw_state::Error> {
    person_of(tx, &identity.channel, &identity.sender)
}

/// Makes the owner of a new home.
pub fn create_owner(tx: &mut WriteTx<'_>, name: &str) -> Result<PersonId, ironclaw_state::Error> {
    let person = insert(tx, name.to_owned(), Role::Owner)?;
    let entry = Entry::new(LedgerEvent::PersonCreated).with("person", person.id).with("role", "owner");
    let seq = entry.append(tx)?;
    tables::people::record_role_giver(tx, person.id, seq, None)?;
    Ok(person.id)
}

/// Adds a person.
///
/// # Errors
/// Refuses a name that is malformed, taken, or similar to a taken one, and records the refusal in the ledger.
pub fn add_person(tx: &mut WriteTx<'_>, name: &str, role: Role, by: impl Into<Giver>) -> Result<Person, Denied> {
    let giver = by.into();
    let by = giver.person;
    if let Err(refusal) = check_name(name) {
        return refuse(tx, LedgerEvent::PersonRefused, by, refusal);
    }
    let people = people(tx)?;
    if people.len() as i64 >= PEOPLE_MAX {
        let remedy = "remove one: `ironctl person list`, `ironctl person remove NAME`";
        let bound = Bound::new("people of this host", PEOPLE_MAX, people.len(), remedy);
        return refuse(tx, LedgerEvent::PersonRefused, by, Refusal::over(DenialCode::PeopleTooMany, bound));
    }
    if let Some(other) = people.iter().find(|other| ironclaw_text::confusable::look_alike(&other.name, name)) {
        let code = if other.name == name { DenialCode::PersonExists } else { DenialCode::PersonLookalikeExists };
        let said = if other.name == name { "there is" } else { "it looks like" };
        let refusal = Refusal::new(code, format!("{name:?}: {said} the person {:?} ({})", other.name, other.id));
        let refusal = refusal.hint("choose a name that is not similar to another person's");
        return refuse(tx, LedgerEvent::PersonRefused, by, refusal);
    }
    let person = insert(tx, name.to_owned(), role)?;
    let seq = Entry::new(LedgerEvent::PersonCreated)
        .with("person", person.id)
        .with("role", role.name())
        .with("by", by)
        .append(tx)?;
    tables::people::record_role_giver(tx, person.id, seq, Some(&giver))?;
    Ok(person)
}

fn insert(tx: &mut WriteTx<'_>, name: String, role: Role) -> Result<Person, ironclaw_state::Error> {
    let person = Person { id: PersonId::new(), name, role, created_at: tx.now() };
    tables::people::insert_person(tx, &person)?;
    tables::people::insert_identity(tx, person.id, &Identity::own(person.id))?;
    Ok(person)
}

/// Returns the name of a person for a command in a hint, or the id if a shell would not read the name as one plain word.
fn word_for(person: &Person) -> &dyn std::fmt::Display {
    let is_plain = person.name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if is_plain && !person.name.starts_with('-') { &person.name } else { &person.id }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let characters = name.chars().count();
    let why = if !(1..=NAME_CHARACTERS_MAX).contains(&characters) {
        format!("a name has 1 to {NAME_CHARACTERS_MAX} characters")
    } else if name.trim() != name {
        "it begins or ends with a space".to_owned()
    } else if name.contains(':') || name.starts_with("per_") {
        "it would read as an identity or an id".to_owned()
    } else if name.chars().any(|c| c.is_control() || ironclaw_text::confusable::is_unseen(c)) {
        "it contains an invisible character".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::new(DenialCode::PersonName, format!("{} is not a valid name of a person: {why}", quoted(name))))
}

/// Sets the role of a person.
///
/// # Errors
/// Refuses to demote the last owner, and records the refusal in the ledger.
pub fn set_role(tx: &mut WriteTx<'_>, person: &Person, role: Role, by: impl Into<Giver>) -> Result<Person, Denied> {
    let giver = by.into();
    let by = giver.person;
    let owners = tables::people::count_owners(tx)?;
    if person.role == Role::Owner && role != Role::Owner && owners <= 1 {
        let refusal = Refusal::new(DenialCode::LastOwner, format!("{} is the last owner", person.name));
        let refusal = refusal.hint("make another person an owner first: `ironctl person set PERSON --role owner`");
        return refuse(tx, LedgerEvent::PersonRefused, by, refusal);
    }
    tables::people::set_role(tx, person.id, role)?;
    let seq = Entry::new(LedgerEvent::PersonRole)
        .with("person", person.id)
        .with("role", role.name())
        .with("was", person.role.name())
        .with("by", by)
        .append(tx)?;
    if !role.covers(person.role) {
        allowances::end_of_role(tx, person.id, None)?;
    }
    if !role.covers(Role::Admin) {
        ending::end_own_senders_of(tx, person.id)?;
    }
    // Setting the same role again changes nothing: the first giver stays recorded.
    if person.role != role {
        tables::people::record_role_giver(tx, person.id, seq, Some(&giver))?;
    }
    Ok(Person { role, ..person.clone() })
}

/// Whether an identity is linked to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// It is linked to this person.
    Already,
    /// It is linked to no person, and can be linked to this person.
    Not,
}

/// Links an identity to a person. Linking it to the same person again changes nothing.
///
/// # Errors
/// Refuses as [`check_link`] does.
pub fn link(tx: &mut WriteTx<'_>, person: &Person, identity: &Identity, by: PersonId) -> Result<(), Denied> {
    match check_link(tx, person, identity, by)? {
        Linked::Already => return Ok(()),
        Linked::Not => {}
    }
    tables::people::insert_identity(tx, person.id, identity)?;
    tables::channels::delete_waiting_sender(tx, &identity.channel, &identity.sender)?;
    ending::end_own_sender(tx, identity, by)?;
    identity_entry(LedgerEvent::IdentityLinked, person.id, identity, by).append(tx)?;
    Ok(())
}

/// Checks that an identity can be linked to a person.
///
/// # Errors
/// Refuses an identity of another person, and records the refusal in the ledger.
pub fn check_link(tx: &mut WriteTx<'_>, person: &Person, identity: &Identity, by: PersonId) -> Result<Linked, Denied> {
    match person_behind(tx, identity)? {
        Some(holder) if holder.id == person.id => return Ok(Linked::Already),
        Some(holder) => {
            let message = format!("{identity} is linked to {} ({}) already", holder.name, holder.id);
            let hint = format!(
                "an identity belongs to one person; unlink it first: `ironctl person unlink {} {identity}`",
                word_for(&holder)
            );
            let refusal = Refusal::new(DenialCode::IdentityInUse, message).hint(hint);
            return refuse(tx, LedgerEvent::IdentityRefused, by, refusal);
        }
        None => {}
    }
    if identity.channel == LOOPBACK && identity.sender.parse::<PersonId>().is_ok() {
        let message = format!("{identity} has the form of a person's own identity on this host");
        let refusal = Refusal::new(DenialCode::IdentityOwn, message);
        return refuse(tx, LedgerEvent::IdentityRefused, by, refusal.hint("it is added and removed with that person"));
    }
    let held = tables::people::count_identities(tx, person.id)?;
    if held >= IDENTITIES_MAX {
        let remedy = format!("remove one: `ironctl person unlink {} CHANNEL:NAME`", person.name);
        let bound = Bound::new(format!("identities of {}", person.name), IDENTITIES_MAX, held, remedy);
        return refuse(tx, LedgerEvent::IdentityRefused, by, Refusal::over(DenialCode::IdentitiesTooMany, bound));
    }
    Ok(Linked::Not)
}

/// Unlinks an identity from a person: messages from it then have no known sender.
///
/// # Errors
/// Refuses an identity that is not linked to the person, and the person's own identity on this host, and records the refusal in the ledger.
pub fn unlink(tx: &mut WriteTx<'_>, person: &Person, identity: &Identity, by: PersonId) -> Result<(), Denied> {
    let holder = person_behind(tx, identity)?;
    if holder.is_none_or(|holder| holder.id != person.id) {
        let message = format!("{identity} is not linked to {}", person.name);
        let hint = format!("`ironctl person show {}` shows the identities", word_for(person));
        let refusal = Refusal::new(DenialCode::IdentityUnknown, message).hint(hint);
        return refuse(tx, LedgerEvent::IdentityRefused, by, refusal);
    }
    if *identity == Identity::own(person.id) {
        let message = format!("{identity} is the identity of {} on this host; it stays with the person", person.name);
        let hint =
            format!("to lock {} out, remove the tokens: `ironctl token list`, `ironctl token remove`", person.name);
        return refuse(tx, LedgerEvent::IdentityRefused, by, Refusal::new(DenialCode::IdentityOwn, message).hint(hint));
    }
    ending::end_of_identity(tx, person.id, identity, by)?;
    tables::people::delete_identity(tx, person.id, identity)?;
    identity_entry(LedgerEvent::IdentityUnlinked, person.id, identity, by).append(tx)?;
    Ok(())
}

/// Records the refusal of a person's request, and returns it as the error.
///
/// # Errors
/// Always: the refusal, or the failure to record it.
pub fn refuse<T>(tx: &mut WriteTx<'_>, event: LedgerEvent, by: PersonId, refusal: Refusal) -> Result<T, Denied> {
    record_refusal(tx, event, by, &refusal)?;
    Err(refusal.into())
}

/// Records the refusal of a person's request.
pub fn record_refusal(
    tx: &mut WriteTx<'_>,
    event: LedgerEvent,
    by: PersonId,
    refusal: &Refusal,
) -> Result<(), ironclaw_state::Error> {
    Entry::new(event).with("code", refusal.code).with("by", by).append(tx)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_split_at_the_first_colon_only() {
        let identity: Identity = "matrix:@alice:example.org".parse().expect("an identity");
        assert_eq!((identity.channel.as_str(), identity.sender.as_str()), ("matrix", "@alice:example.org"));
        assert_eq!(identity.to_string(), "matrix:@alice:example.org");
        let spaced: Identity = "chat: Alice ".parse().expect("opaque, spaces and all");
        assert_eq!(spaced.sender, " Alice ");
        for none in ["alice", ":alice", "Chat:alice", "chat:", "ch at:x", "chat:a\nb", "chat:\u{9b}"] {
            assert!(none.parse::<Identity>().is_err(), "{none:?}");
        }
        assert!(format!("chat:{}", "x".repeat(SENDER_BYTES_MAX + 1)).parse::<Identity>().is_err());
    }

    #[test]
    fn a_role_covers_itself_and_lower_roles() {
        use Role::{Admin, Member, Owner};
        let covered = |role: Role| [Owner, Admin, Member].map(|needed| role.covers(needed));
        assert_eq!(covered(Owner), [true, true, true]);
        assert_eq!(covered(Admin), [false, true, true]);
        assert_eq!(covered(Member), [false, false, true]);
    }
}
