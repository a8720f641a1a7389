//! Tests that change each field of an approval alone, and tests of the injective encoding.

use super::*;
use ironclaw_contract::ids::RequestId;
use ironclaw_state::home;
use ironclaw_state::keys::MasterKey;

const HOUR: i64 = 3_600_000;

/// Returns the root key of a master key that repeats this byte.
pub(crate) fn root(byte: u8) -> ApprovalRoot {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("key");
    home::write_private(&file, &[byte; 32]).expect("written");
    MasterKey::read(&file).expect("a key").approval_root()
}

fn subject() -> Subject {
    Subject {
        domain: Domain::Change,
        id: "chg_1".into(),
        session: Some("ses_1".into()),
        agent: Some("agt_1".into()),
        name: "persona".into(),
        schema: Digest::of(b"schema"),
        server: None,
        arguments: Digest::of(b"arguments"),
        principal: "per_1".into(),
        labels: Digest::of(b"labels"),
        policy: Digest::of(b"policy"),
        shown: Digest::of(b"shown"),
        generation: 0,
        facts: Some(Digest::of(b"facts")),
    }
}

fn alice() -> Approver {
    Approver { person: "per_alice".into(), proof: "tok_1".into() }
}

fn token() -> Token {
    mint(&root(1), subject(), alice(), 1000, 1000 + HOUR).expect("random bytes")
}

#[test]
fn approval_for_another_subject_is_refused_with_the_field() {
    let other = || Digest::of(b"other");
    type Spoil = Box<dyn Fn(&mut Subject)>;
    let spoilt: Vec<(&str, Spoil)> = vec![
        ("domain", Box::new(|t| t.domain = Domain::Call)),
        ("id", Box::new(|t| t.id = "chg_2".into())),
        ("session", Box::new(|t| t.session = Some("ses_2".into()))),
        ("session", Box::new(|t| t.session = None)),
        ("agent", Box::new(|t| t.agent = Some("agt_2".into()))),
        ("agent", Box::new(|t| t.agent = None)),
        ("kind", Box::new(|t| t.name = "mounts".into())),
        ("schema", Box::new(move |t| t.schema = other())),
        ("server", Box::new(|t| t.server = Some(String::new()))),
        ("body", Box::new(move |t| t.arguments = other())),
        ("principal", Box::new(|t| t.principal = "per_2".into())),
        ("provenance", Box::new(move |t| t.labels = other())),
        ("policy", Box::new(move |t| t.policy = other())),
        ("generation", Box::new(|t| t.generation = 1)),
        ("effect", Box::new(move |t| t.facts = Some(other()))),
        ("effect", Box::new(|t| t.facts = None)),
        ("text", Box::new(move |t| t.shown = other())),
    ];
    let token = token();
    assert_eq!(verify(&root(1), &token, &subject(), 2000).expect("good").approver(), &alice());
    for (what, spoil) in spoilt {
        let mut other = subject();
        spoil(&mut other);
        assert_eq!(verify(&root(1), &token, &other, 2000).unwrap_err(), Fault::Other(what));
    }
}

#[test]
fn token_with_a_changed_byte_is_forged() {
    let token = token();
    let text = token.to_json();
    let mut refused = 0;
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(flipped) = String::from_utf8(bytes) else { continue };
        let Ok(read) = Token::from_json(&flipped) else {
            refused += 1;
            continue;
        };
        // Verified for the subject that it now names.
        let named = read.subject.clone();
        assert_eq!(verify(&root(1), &read, &named, 2000).unwrap_err(), Fault::Forged, "byte {at}: {flipped}");
        refused += 1;
    }
    assert_eq!(refused, text.len());
    assert_eq!(verify(&root(2), &token, &subject(), 2000).unwrap_err(), Fault::Forged, "another master key");
}

#[test]
fn token_in_another_spelling_is_forged() {
    let text = token().to_json();
    for other in [
        text.replacen('{', "{ ", 1),
        text.replacen("\"issued\":1000", "\"issued\":1000,\"issued\":1000", 1),
        text.replacen("\"issued\":1000", "\"issued\":1000.0", 1),
        text.replacen("\"issued\":1000", "\"issued\":9007199254740993", 1),
        text.replacen("\"issued\":1000", "\"issued\":1000,\"approved\":true", 1),
    ] {
        assert_ne!(other, text);
        assert_eq!(Token::from_json(&other).unwrap_err(), Fault::Forged, "{other}");
    }
}

#[test]
fn approval_is_valid_only_from_issue_to_expiry() {
    let token = token();
    let at = |now| verify(&root(1), &token, &subject(), now).map(drop);
    assert_eq!(at(999), Err(Fault::Expired), "before it was issued");
    assert_eq!(at(1000), Ok(()));
    assert_eq!(at(999 + HOUR), Ok(()));
    assert_eq!(at(1000 + HOUR), Err(Fault::Expired));
}

#[test]
fn bytes_moved_to_the_next_field_make_another_subject() {
    let encoded = |session: Option<&str>, agent: Option<&str>, person: &str, proof: &str| {
        let subject = Subject { session: session.map(Into::into), agent: agent.map(Into::into), ..subject() };
        let approver = Approver { person: person.into(), proof: proof.into() };
        encode(&subject, &approver, 1, 2, &Digest::of(b""))
    };
    let all = [
        encoded(Some("ab"), Some("c"), "u|5", "9"),
        encoded(Some("a"), Some("bc"), "u|5", "9"),
        encoded(Some("ab"), Some("c"), "u", "5|9"),
        encoded(None, Some("c"), "u|5", "9"),
        encoded(Some(""), Some("c"), "u|5", "9"),
        encoded(Some("c"), None, "u|5", "9"),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[at + 1..].contains(one), "{at}");
    }
}

#[test]
fn approvals_are_unique_and_survive_a_key_rotation() {
    assert_ne!(token(), token());
    let rekeyed = token().rekey(&root(1), &root(2)).expect("ours");
    assert_eq!(verify(&root(1), &rekeyed, &subject(), 2000).unwrap_err(), Fault::Forged);
    verify(&root(2), &rekeyed, &subject(), 2000).expect("valid under the new key");
    assert_eq!(token().rekey(&root(3), &root(2)).unwrap_err(), Fault::Forged);
}

/// Known attacks on approvals of tool calls: a flipped flag, a replay, changed arguments, another principal, a forged MAC. Two more
/// fields that other formats do not bind: the tool and the approver.
#[test]
fn approval_of_a_call_is_refused_for_any_other_call() {
    // An approval is for the request of a call, which has an id of its own.
    let requests = [RequestId::new(), RequestId::new()];
    let request = |number: usize| requests[number - 1];
    let arguments = |text: &str| Digest::of(&canonical::to_vec(&[canonical::RECIPE, text]));
    let pay = Subject {
        domain: Domain::Call,
        id: request(1).to_string(),
        name: "pay".into(),
        server: Some("bank".into()),
        arguments: arguments(r#"{"amount":10,"to":"alice"}"#),
        ..subject()
    };
    let token = mint(&root(1), pay.clone(), alice(), 1000, 1000 + HOUR).expect("random bytes");
    let good = |subject: &Subject| verify(&root(1), &token, subject, 2000).map(drop);
    assert_eq!(good(&pay), Ok(()));
    assert_eq!(good(&Subject { id: request(2).to_string(), ..pay.clone() }), Err(Fault::Other("id")), "replayed");
    let changed = Subject { arguments: arguments(r#"{"amount":10000,"to":"alice"}"#), ..pay.clone() };
    assert_eq!(good(&changed), Err(Fault::Other("body")), "its arguments changed");
    assert_eq!(good(&Subject { principal: "per_9".into(), ..pay.clone() }), Err(Fault::Other("principal")));
    assert_eq!(good(&Subject { name: "delete".into(), ..pay.clone() }), Err(Fault::Other("kind")), "another tool");
    assert_eq!(good(&Subject { server: Some("other".into()), ..pay.clone() }), Err(Fault::Other("server")));
    let forged = Token { mac: Digest::from_bytes([0; 32]), ..token.clone() };
    assert_eq!(verify(&root(1), &forged, &pay, 2000).unwrap_err(), Fault::Forged);
    let swapped = Token { approver: Approver { person: "per_mallory".into(), ..alice() }, ..token.clone() };
    assert_eq!(verify(&root(1), &swapped, &pay, 2000).unwrap_err(), Fault::Forged, "another approver");
    for flag in ["true", r#"{"approved":true}"#, "1", ""] {
        assert_eq!(Token::from_json(flag).unwrap_err(), Fault::Forged, "{flag}");
    }
}
