//! People over the API: names, roles and identities.
//!
//! Never gives an identity to a second person while the first has a conversation under it. See `registry::people`.

mod page;

use super::auth::Current;
use super::handler::{Answer, Api, Body, Caller, Reply};
use super::tokens;
use crate::channels::inbound::inbox;
use crate::gateway::changes::person_removal::{Removal, check_no_sessions};
use crate::gateway::requests;
use crate::registry::people::{Linked, record_refusal, refuse};
use crate::registry::person_removal::{self, LostAccess};
use crate::registry::{self, Giver, Identity, Person, Role, TokenId};
use axum::Json;
use axum::extract::{Path, Query};
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::DenialCode;
use ironclaw_operator::{
    self as operator, KeptOfPerson, LedgerEvent, NewIdentity, NewPerson, NewPlace, NewRole, PersonPage, RemovedPerson,
    Whoami,
};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::tables;
use ironclaw_text::confusable;
use serde::Deserialize;
use std::sync::Arc;

/// `GET /v1/whoami`
pub async fn whoami(Caller { api, person, current: Current(current), .. }: Caller) -> Reply<Whoami> {
    let caller = api.state().read(move |tx| {
        let gone = || Refusal::new(DenialCode::TokenInvalid, format!("the token {current} is gone"));
        let token = registry::tokens::find_token(tx, &current)?.ok_or_else(gone)?;
        let identities = tables::people::identities_of(tx, person.id)?;
        Ok::<_, Denied>(Whoami {
            id: person.id,
            name: person.name,
            role: person.role,
            // Without marks: a mark names other people.
            identities: identities.iter().map(Identity::to_string).collect(),
            notify: registry::places::place_of(tx, person.id)?.map(|place| place.identity.to_string()),
            token: tokens::view(&token, &current),
        })
    });
    Ok(Json(caller.await?))
}

/// `GET /v1/people`
pub async fn list(Caller { api, current: Current(current), .. }: Caller) -> Reply<Vec<operator::Person>> {
    let people = api
        .state()
        .read(move |tx| {
            let directory = Directory::read(tx)?;
            Ok::<_, ironclaw_state::Error>(
                directory.people.iter().map(|person| directory.view(person, &current)).collect(),
            )
        })
        .await?;
    Ok(Json(people))
}

/// `GET /v1/people/{person}`
pub async fn show(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path(person): Path<String>,
) -> Reply<operator::Person> {
    let found = api
        .state()
        .read(move |tx| {
            let person = registry::known_person(tx, &by, &person)?;
            Ok::<_, Denied>(Directory::read(tx)?.view(&person, &current))
        })
        .await?;
    Ok(Json(found))
}

/// `POST /v1/people`
pub async fn add(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Body(new): Body<NewPerson>,
) -> Reply<operator::Person> {
    let role: Role = new.role.parse().map_err(|why: String| Refusal::new(DenialCode::RoleMalformed, why))?;
    let giver = Giver { person: by.id, token: Some(current.clone()) };
    change(&api, current, move |tx| registry::add_person(tx, &new.name, role, giver)).await
}

/// `POST /v1/people/{person}/role`
pub async fn set_role(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path(person): Path<String>,
    Body(new): Body<NewRole>,
) -> Reply<operator::Person> {
    let (role, shown) = (change_of_role(&new)?, new.shown);
    let giver = Giver { person: by.id, token: Some(current.clone()) };
    change(&api, current, move |tx| {
        with_known_person(tx, &person, &by, |tx, person| {
            // A role that the present one covers gives nothing more.
            if !person.role.covers(role) {
                page::check_seen(&page::role(person, role), shown.as_ref())?;
            }
            registry::people::set_role(tx, person, role, giver)
        })
    })
    .await
}

/// `POST /v1/people/{person}/identities/review`: the page of a new identity. Links nothing.
pub async fn review_link(
    Caller { api, person: by, .. }: Caller,
    Path(person): Path<String>,
    Body(new): Body<NewIdentity>,
) -> Reply<PersonPage> {
    let shown = api.state().decide(move |tx| {
        with_known_person(tx, &person, &by, |tx, person| {
            let identity = read_identity(tx, &new.identity, by.id)?;
            Ok(page::link(tx, person, &identity)?)
        })
    });
    let shown = shown.await.map_err(|denied: Denied| Answer::from(denied))?;
    Ok(Json(super::page::view(shown)))
}

/// `POST /v1/people/{person}/role/review`: the page of another role. Sets nothing.
pub async fn review_role(
    Caller { api, person: by, .. }: Caller,
    Path(person): Path<String>,
    Body(new): Body<NewRole>,
) -> Reply<PersonPage> {
    let wanted = change_of_role(&new)?;
    let shown =
        api.state().decide(move |tx| with_known_person(tx, &person, &by, |_, person| Ok(page::role(person, wanted))));
    let shown = shown.await.map_err(|denied: Denied| Answer::from(denied))?;
    Ok(Json(super::page::view(shown)))
}

/// Reads the role of a request.
fn change_of_role(new: &NewRole) -> Result<Role, Refusal> {
    new.role.parse().map_err(|why: String| Refusal::new(DenialCode::RoleMalformed, why))
}

/// `POST /v1/people/{person}/notify`; a member only their own.
pub async fn set_place(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path(person): Path<String>,
    Body(new): Body<NewPlace>,
) -> Reply<operator::Person> {
    let is_own = person == by.name || person.parse() == Ok(by.id);
    if !is_own && !by.role.covers(Role::Admin) {
        let refusal = Refusal::new(DenialCode::RoleTooLow, "a member sets only their own place");
        return Err(refusal.hint("ask an admin, or name yourself: `ironctl whoami`").into());
    }
    change(&api, current, move |tx| {
        with_known_person(tx, &person, &by, |tx, person| {
            registry::places::set(tx, person, &by, &new.notify).map_err(|denied| {
                denied.noted(|refusal| record_refusal(tx, LedgerEvent::PersonRefused, by.id, refusal))
            })?;
            Ok(person.clone())
        })
    })
    .await
}

/// `POST /v1/people/{person}/identities`
pub async fn link(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path(person): Path<String>,
    Body(new): Body<NewIdentity>,
) -> Reply<operator::Person> {
    change(&api, current, move |tx| {
        with_known_person(tx, &person, &by, |tx, person| {
            let identity = read_identity(tx, &new.identity, by.id)?;
            if let Some(session) = inbox::session_of_another(tx, &identity.channel, &identity.sender, person.id)? {
                let message = format!("{identity} still has another person's conversation, {session}");
                let hint = format!(
                    "its new person would see that conversation; remove it first: `ironctl session remove {session}`"
                );
                let refusal = Refusal::new(DenialCode::IdentityInUse, message).hint(hint);
                return refuse(tx, LedgerEvent::IdentityRefused, by.id, refusal);
            }
            if registry::people::check_link(tx, person, &identity, by.id)? == Linked::Not {
                page::check_seen(&page::link(tx, person, &identity)?, new.shown.as_ref())?;
            }
            registry::people::link(tx, person, &identity, by.id)?;
            Ok(person.clone())
        })
    })
    .await
}

/// `DELETE /v1/people/{person}/identities/{identity}`: also withdraws the requests that wait on behalf of this identity.
pub async fn unlink(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path((person, text)): Path<(String, String)>,
) -> Reply<operator::Person> {
    let gateway = Arc::clone(&api.gateway);
    let changed = api.state().decide(move |tx| {
        let unlinked = with_known_person(tx, &person, &by, |tx, person| {
            let identity = read_identity(tx, &text, by.id)?;
            registry::people::unlink(tx, person, &identity, by.id)?;
            Ok((person.clone(), identity))
        });
        let (person, identity) = unlinked.map_err(Denied::widen::<Error>)?;
        requests::end_of_sender(tx, &gateway, &identity)?;
        Ok::<_, Denied<Error>>(Directory::read(tx)?.view(&person, &current))
    });
    let changed = changed.await?;
    api.people_changed();
    Ok(Json(changed))
}

/// Query of `DELETE /v1/people/{person}`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Removing {
    /// True to erase the sessions of the person. Without it, a person with sessions is not removed.
    #[serde(default)]
    erase: bool,
}

/// `DELETE /v1/people/{person}?erase=B`: with `erase`, the access of the person ends first, then the sessions are erased, and then the person
/// is removed. If a session cannot be erased, the person stays without access, and the request can be repeated.
pub async fn remove(
    Caller { api, person: by, .. }: Caller,
    Path(person): Path<String>,
    Query(Removing { erase }): Query<Removing>,
) -> Reply<RemovedPerson> {
    let asking = by.clone();
    let begun = api.state().decide(move |tx| {
        let found = removable(tx, &asking, &person, erase).map_err(|denied| refused(tx, &asking, denied))?;
        let access = if erase { person_removal::end_access(tx, &found, asking.id)? } else { LostAccess::default() };
        Ok::<_, Denied>((found.id, access))
    });
    let (person, before) = begun.await?;
    api.people_changed();
    let sessions = match erase {
        true => api.sessions.remove_of_person(person, by.id).await.map_err(mention_ended_access)?,
        false => 0,
    };
    let gateway = Arc::clone(&api.gateway);
    let removed = api.state().decide(move |tx| {
        gateway.remove_person(tx, &by, person).map_err(|denied: Denied<Error>| refused(tx, &by, denied))
    });
    let removed = removed.await?;
    api.people_changed();
    api.gateway.announce();
    Ok::<_, Answer>(Json(removed_view(removed, before, sessions)))
}

/// Returns the person of this name or id, if `by` may remove them.
fn removable(tx: &ReadTx<'_>, by: &Person, named: &str, erase: bool) -> Result<Person, Denied> {
    let person = registry::known_person(tx, by, named)?;
    person_removal::check(tx, &person, by.id)?;
    if !erase {
        check_no_sessions(tx, &person)?;
    }
    Ok(person)
}

/// Adds to the refusal of an erasure that the access of the person has ended.
fn mention_ended_access(denied: Denied<Error>) -> Denied<Error> {
    match denied {
        Denied::Refused(refusal) => Denied::Refused(
            refusal.hint("the tokens of the person are revoked and the identities unlinked; repeat the command"),
        ),
        Denied::Failed(error) => Denied::Failed(error),
    }
}

/// Records the refusal of a removal in the ledger.
fn refused<E: From<ironclaw_state::Error>>(tx: &mut WriteTx<'_>, by: &Person, denied: Denied<E>) -> Denied<E> {
    denied.noted(|refusal| Ok(record_refusal(tx, LedgerEvent::PersonRefused, by.id, refusal)?))
}

fn removed_view(removed: Removal, before: LostAccess, sessions: u64) -> RemovedPerson {
    let Removal { person, access, agents, withdrawn, kept_changes, kept_notes } = removed;
    let identities = before.identities.iter().chain(&access.identities);
    RemovedPerson {
        id: person.id,
        name: person.name,
        role: person.role,
        identities: identities.map(Identity::to_string).collect(),
        tokens: before.tokens.into_iter().chain(access.tokens).collect(),
        agents,
        changes: withdrawn,
        sessions,
        kept: KeptOfPerson { changes: kept_changes, notes: kept_notes },
    }
}

/// Reads an identity, and records the refusal of a malformed one in the ledger.
pub(super) fn read_identity(tx: &mut WriteTx<'_>, text: &str, by: PersonId) -> Result<Identity, Denied> {
    text.parse().or_else(|refusal| refuse(tx, LedgerEvent::IdentityRefused, by, refusal))
}

/// Applies a change to a known person, and records the refusal of an unknown one in the ledger.
fn with_known_person<T>(
    tx: &mut WriteTx<'_>,
    person: &str,
    by: &Person,
    act: impl FnOnce(&mut WriteTx<'_>, &Person) -> Result<T, Denied>,
) -> Result<T, Denied> {
    let person = registry::known_person(tx, by, person)
        .map_err(|denied| denied.noted(|refusal| record_refusal(tx, LedgerEvent::PersonRefused, by.id, refusal)))?;
    act(tx, &person)
}

/// Applies one change with its entry, and returns the changed person.
async fn change(
    api: &Api,
    current: TokenId,
    act: impl FnOnce(&mut WriteTx<'_>) -> Result<Person, Denied> + Send + 'static,
) -> Reply<operator::Person> {
    let changed = api
        .state()
        .decide(move |tx| {
            let person = act(tx)?;
            Ok::<_, Denied>(Directory::read(tx)?.view(&person, &current))
        })
        .await?;
    api.people_changed();
    Ok(Json(changed))
}

/// All people, identities and tokens: a look-alike is only visible beside the others.
struct Directory {
    people: Vec<Person>,
    identities: Vec<(Identity, PersonId)>,
    tokens: Vec<registry::Token>,
    places: Vec<(PersonId, Identity)>,
}

impl Directory {
    fn read(tx: &ReadTx<'_>) -> Result<Self, ironclaw_state::Error> {
        Ok(Self {
            people: registry::people(tx)?,
            identities: registry::identities(tx)?,
            tokens: registry::tokens(tx)?,
            places: registry::places::places(tx)?,
        })
    }

    fn view(&self, person: &Person, current: &TokenId) -> operator::Person {
        let whose = |id: PersonId| {
            let holder = self.people.iter().find(|person| person.id == id);
            registry::name_or_id(holder.map(|holder| format!("{} ({id})", holder.name)), id)
        };
        let names = self.people.iter().filter(|other| other.id != person.id);
        let others: Vec<(String, String)> =
            self.identities.iter().map(|(identity, holder)| (identity.to_string(), whose(*holder))).collect();
        let identity = |identity: &Identity| {
            let text = identity.to_string();
            let others = others.iter().map(|(text, whose)| (text.as_str(), whose.as_str()));
            operator::Identity { marks: confusable::warnings(&text, others), identity: text }
        };
        operator::Person {
            id: person.id,
            name: person.name.clone(),
            marks: confusable::warnings(&person.name, names.map(|other| (other.name.as_str(), other.id))),
            role: person.role,
            created_at: ironclaw_ledger::rfc3339(person.created_at),
            notify: self.places.iter().find(|(of, _)| *of == person.id).map(|(_, place)| place.to_string()),
            identities: self
                .identities
                .iter()
                .filter(|(_, of)| *of == person.id)
                .map(|(found, _)| identity(found))
                .collect(),
            tokens: self
                .tokens
                .iter()
                .filter(|token| token.person.id == person.id)
                .map(|token| tokens::view(token, current))
                .collect(),
        }
    }
}
