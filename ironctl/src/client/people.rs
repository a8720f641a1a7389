//! The requests about people, their identities and tokens.
//!
//! Keeps no token; a new one is only in the answer. See `commands::person` and `commands::token`.

use super::{Client, REQUEST_TIMEOUT, parse, segment};
use crate::access::Transport;
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{
    IssuedToken, NewIdentity, NewPerson, NewPlace, NewRole, NewToken, Person, PersonPage, RemovedPerson, Session,
    Token, Whoami,
};
use std::time::Duration;

/// Time for the erasure of many sessions.
const ERASE_TIMEOUT: Duration = Duration::from_secs(120);

impl Client {
    /// Returns the person whose token the client sends.
    pub async fn whoami(&self) -> Result<Whoami, Error> {
        self.get("whoami").await
    }

    /// Returns the address of the API: a URL of a loopback port, or the path of a socket.
    pub fn address(&self) -> String {
        match &self.transport {
            Transport::Socket(path) => path.display().to_string(),
            Transport::Port(address) => format!("http://{address}"),
        }
    }

    /// Returns the sessions that a person began.
    pub async fn sessions_of(&self, person: &str) -> Result<Vec<Session>, Error> {
        self.get(&format!("sessions?person={}", segment(person))).await
    }

    /// Removes a person, and with `erase` also the sessions of the person.
    pub async fn remove_person(&self, person: &str, erase: bool) -> Result<RemovedPerson, Error> {
        let path = format!("people/{}?erase={erase}", segment(person));
        parse(&self.ask(Method::DELETE, &path, None, ERASE_TIMEOUT).await?)
    }

    /// Returns every person.
    pub async fn people(&self) -> Result<Vec<Person>, Error> {
        self.get("people").await
    }

    /// Returns one person, by name or id.
    pub async fn person(&self, person: &str) -> Result<Person, Error> {
        self.get(&format!("people/{}", segment(person))).await
    }

    /// Adds a person.
    pub async fn add_person(&self, person: &NewPerson) -> Result<Person, Error> {
        self.post("people", person).await
    }

    /// Sets the role of a person.
    pub async fn set_role(&self, person: &str, role: &NewRole) -> Result<Person, Error> {
        self.post(&format!("people/{}/role", segment(person)), role).await
    }

    /// Sets the place where a person is told.
    pub async fn set_place(&self, person: &str, place: &NewPlace) -> Result<Person, Error> {
        self.post(&format!("people/{}/notify", segment(person)), place).await
    }

    /// Returns the page of another role.
    pub async fn review_role(&self, person: &str, role: &NewRole) -> Result<PersonPage, Error> {
        self.post(&format!("people/{}/role/review", segment(person)), role).await
    }

    /// Returns the page of a new identity.
    pub async fn review_link(&self, person: &str, identity: &NewIdentity) -> Result<PersonPage, Error> {
        self.post(&format!("people/{}/identities/review", segment(person)), identity).await
    }

    /// Links an identity to a person.
    pub async fn link(&self, person: &str, identity: &NewIdentity) -> Result<Person, Error> {
        self.post(&format!("people/{}/identities", segment(person)), identity).await
    }

    /// Unlinks an identity from a person.
    pub async fn unlink(&self, person: &str, identity: &str) -> Result<Person, Error> {
        let path = format!("people/{}/identities/{}", segment(person), segment(identity));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Returns the tokens that the caller may see.
    pub async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.get("tokens").await
    }

    /// Adds a token.
    pub async fn add_token(&self, token: &NewToken) -> Result<IssuedToken, Error> {
        self.post("tokens", token).await
    }

    /// Removes a token.
    pub async fn remove_token(&self, id: &str) -> Result<Token, Error> {
        let path = format!("tokens/{}", segment(id));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Replaces a token by a new one; `current` is the token of the caller.
    pub async fn rotate_token(&self, id: &str) -> Result<IssuedToken, Error> {
        let path = format!("tokens/{}/rotate", segment(id));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }
}
