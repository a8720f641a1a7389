//! One sample of every shape about people and tokens. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{ChangeId, PersonId};
use ironclaw_operator::{
    ConsoleCode, Face, Health, Identity, IssuedToken, KeptOfPerson, NewConsoleCode, NewIdentity, NewPerson, NewPlace,
    NewRole, NewToken, Person, PersonPage, Readiness, RemovedPerson, Role, Stopping, Token, TokenState, Whoami,
};

const AT: &str = "2026-11-18T11:06:40.123Z";

fn person_id() -> PersonId {
    id::<PersonId>("per", 1)
}

fn token() -> Token {
    Token {
        face: Face::Program,
        id: "tok_0123456789abcdef".parse().expect("an id"),
        person: person_id(),
        person_name: "Alice".to_owned(),
        name: "laptop".to_owned(),
        state: TokenState::Live,
        created_at: AT.to_owned(),
        expires_at: Some("2026-12-18T11:06:40.123Z".to_owned()),
        ended_at: None,
        current: true,
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    let plain = Identity { identity: "matrix:@alice:example.org".to_owned(), marks: vec![] };
    let marked = Identity {
        identity: "chat:\u{430}lice".to_owned(),
        marks: vec!["holds U+0430, which reads as \"a\"".to_owned()],
    };
    let person = Person {
        id: person_id(),
        name: "Alice".to_owned(),
        marks: vec![],
        role: Role::Owner,
        created_at: AT.to_owned(),
        notify: Some("matrix:@alice:example.org".to_owned()),
        identities: vec![plain.clone(), marked.clone()],
        tokens: vec![token()],
    };
    let whoami = Whoami {
        id: person_id(),
        name: "Alice".to_owned(),
        role: Role::Member,
        identities: vec![format!("loopback:{}", person_id())],
        notify: None,
        token: token(),
    };
    let removed = RemovedPerson {
        id: person_id(),
        name: "Alice".to_owned(),
        role: Role::Member,
        tokens: vec![token().id],
        identities: vec!["matrix:@alice:example.org".to_owned()],
        agents: vec!["assistant".to_owned()],
        changes: vec![id::<ChangeId>("chg", 1)],
        sessions: 2,
        kept: KeptOfPerson { changes: 3, notes: 1 },
    };
    let revoked = Token {
        name: String::new(),
        state: TokenState::Revoked,
        expires_at: None,
        ended_at: Some(AT.to_owned()),
        current: false,
        ..token()
    };
    let told = IssuedToken { token: token(), text: Some(format!("ict_{}", "0".repeat(64))), saved_to: None };
    let saved = IssuedToken {
        text: None,
        saved_to: Some("/home/alice/.local/state/ironclaw/owner.token".to_owned()),
        ..told.clone()
    };
    let new = NewToken { person: "Alice".to_owned(), name: "laptop".to_owned(), expires: Some("30d".to_owned()) };
    vec![
        shape("operator.new_person", NewPerson { name: "Alice".to_owned(), role: "member".to_owned() }),
        shape("operator.new_role", NewRole { role: "admin".to_owned(), shown: None }),
        shape("operator.new_role.shown", NewRole { role: "admin".to_owned(), shown: Some(Digest::of(b"page")) }),
        shape(
            "operator.person_page",
            PersonPage { shown: "EFFECT\n".to_owned(), shown_digest: Digest::of(b"EFFECT\n") },
        ),
        shape("operator.new_place", NewPlace { notify: "matrix".to_owned() }),
        shape("operator.new_identity", NewIdentity { identity: "matrix:@alice:example.org".to_owned(), shown: None }),
        shape("operator.person", person),
        shape("operator.whoami", whoami),
        shape("operator.removed_person.kept", removed.kept.clone()),
        shape("operator.removed_person", removed),
        shape("operator.identity", plain),
        shape("operator.identity.marked", marked),
        shape("operator.new_console_code", NewConsoleCode { new_origin: true }),
        shape(
            "operator.console_code",
            ConsoleCode {
                url: "http://abcdefghijklmnopqrstuvwxyz.localhost:8799/".to_owned(),
                code: "0123-4567-89AB-CDEF".to_owned(),
                expires_at: AT.to_owned(),
            },
        ),
        shape("operator.new_token.bare", NewToken { name: String::new(), expires: None, ..new.clone() }),
        shape("operator.new_token", new),
        shape("operator.token", token()),
        shape("operator.token.revoked", revoked),
        shape("operator.issued_token", told),
        shape("operator.issued_token.saved", saved),
        shape("operator.health", Health { alive: true }),
        shape("operator.readiness", Readiness { ready: true }),
        shape("operator.stopping", Stopping { stopping: true }),
    ]
}
