//! Tests of the notifications of people and of their places.

use super::*;
use crate::registry::channels::{self, ChannelDraft};
use crate::registry::{Identity, Person, person_removal, places};
use crate::sessions::store::tests::make_owner;
use ironclaw_operator::ChannelKind;
use ironclaw_state::keys::{MasterKey, SecretText};
use ironclaw_store::record;

const NOW: i64 = 1_000_000;

/// Runs a test on a record with an owner and the channels `desk` and `shop`.
fn with_channels(test: impl FnOnce(&mut WriteTx<'_>, &Person) + Send + 'static) {
    record::in_a_new_one(|tx, key| {
        let owner = make_owner(tx);
        for name in ["desk", "shop"] {
            add_channel(tx, key, &owner, name);
        }
        test(tx, &owner);
    });
}

fn add_channel(tx: &mut WriteTx<'_>, key: &MasterKey, owner: &Person, name: &str) {
    let secret = SecretText::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
    let (name, url) = (name.to_owned(), "http://127.0.0.1:9/".to_owned());
    let draft = ChannelDraft { name, kind: ChannelKind::Webhook, url, idempotent: false, secret };
    channels::add(tx, &draft, &key.wrapping_key(), owner).expect("a channel");
}

fn link(tx: &mut WriteTx<'_>, person: &Person, identity: &str, by: &Person) -> Identity {
    let identity: Identity = identity.parse().expect("an identity");
    registry::people::link(tx, person, &identity, by.id).expect("linked");
    identity
}

fn states(tx: &WriteTx<'_>, person: &Person, about: About, subject: &str) -> Vec<DeliveryState> {
    let told = Told { person: person.id, about, subject: subject.to_owned() };
    deliveries::states_for_subject(tx, &told).expect("read")
}

fn is_any_open(tx: &WriteTx<'_>) -> bool {
    !deliveries::channels_with_open(tx).expect("read").is_empty()
}

#[test]
fn place_ends_with_its_identity_channel_or_person() {
    with_channels(|tx, owner| {
        let identity = link(tx, owner, "desk:olga", owner);
        places::set(tx, owner, owner, "desk").expect("set");
        registry::people::unlink(tx, owner, &identity, owner.id).expect("unlinked");
        assert!(places::places(tx).expect("read").is_empty());
        link(tx, owner, "shop:olga", owner);
        places::set(tx, owner, owner, "shop").expect("set");
        channels::remove(tx, "shop", owner.id).expect("removed");
        assert!(places::places(tx).expect("read").is_empty());
        let bob = registry::add_person(tx, "Bob", Role::Member, owner.id).expect("a person");
        link(tx, &bob, "desk:bob", owner);
        places::set(tx, &bob, owner, "desk").expect("set");
        add(tx, bob.id, Notification::new(About::Waits, "req_1"), NOW).expect("added");
        person_removal::end_access(tx, &bob, owner.id).expect("ended");
        assert!(places::places(tx).expect("read").is_empty());
        person_removal::remove(tx, &bob, owner.id).expect("removed");
        assert!(!is_any_open(tx));
    });
}

#[test]
fn notification_without_a_place_is_settled_at_once() {
    with_channels(|tx, owner| {
        add(tx, owner.id, Notification::new(About::SessionIncident, "ses_1"), NOW).expect("added");
        assert_eq!(states(tx, owner, About::SessionIncident, "ses_1"), [DeliveryState::Unplaced]);
        assert!(!is_any_open(tx));
    });
}

#[test]
fn request_is_told_once_and_an_incident_again_after_its_end() {
    with_channels(|tx, owner| {
        link(tx, owner, "desk:olga", owner);
        places::set(tx, owner, owner, "desk").expect("set");
        let add = |tx: &mut WriteTx<'_>, about| add(tx, owner.id, Notification::new(about, "x"), NOW).expect("added");
        for about in [About::Waits, About::SessionIncident] {
            add(tx, about);
            add(tx, about);
            assert_eq!(states(tx, owner, about, "x"), [DeliveryState::Intent], "{about}");
            for waiting in deliveries::waiting_about(tx, "x").expect("read") {
                assert!(journal::receive(tx, &waiting).expect("received"));
            }
            add(tx, about);
        }
        assert_eq!(states(tx, owner, About::Waits, "x"), [DeliveryState::Received]);
        assert_eq!(states(tx, owner, About::SessionIncident, "x"), [DeliveryState::Received, DeliveryState::Intent]);
    });
}

#[test]
fn incident_without_a_person_is_told_to_owners_and_admins() {
    with_channels(|tx, owner| {
        let [ada, bob] = [("Ada", Role::Admin), ("Bob", Role::Member)]
            .map(|(name, role)| registry::add_person(tx, name, role, owner.id).expect("a person"));
        add_for_operators(tx, &Notification::new(About::LoginEnded, "mail"), NOW).expect("added");
        let told = [owner, &ada, &bob].map(|person| states(tx, person, About::LoginEnded, "mail").len());
        assert_eq!(told, [1, 1, 0]);
    });
}

#[test]
fn line_has_the_id_and_is_one_line() {
    for about in About::ALL {
        let line = line(about, "x_1");
        assert!(line.starts_with("IronClaw: ") && !line.contains('\n') && line.contains("ironctl "), "{line}");
        let has_no_object = matches!(about, About::SchedulesPaused | About::RecordRestored | About::HeadNotKept);
        assert!(has_no_object || line.contains("x_1"), "{line}");
        assert_eq!(about.name().parse(), Ok(about));
    }
}

#[test]
fn reminder_comes_before_the_end_by_a_quarter_or_an_hour() {
    let hour = 3_600_000;
    assert_eq!(remind_at(0, 2 * hour), 2 * hour - hour / 2);
    assert_eq!(remind_at(hour, 25 * hour), 24 * hour);
    assert_eq!(remind_at(5, 5), 5);
}
