//! Independent approvals: a person, role or token that an approver gives after the request adds no second approval.

use super::super::independence::NOT_INDEPENDENT;
use super::*;
use crate::registry::{FreshToken, Giver, Token as Proof, person_removal, tokens};

const TWO: &str = "[default]\napprovals = 2\n";
const NOT_OWN: &str = "[default]\nrequester_may_approve = false\n";

/// Returns the giver of a person, a role or a token.
fn giver(token: &Proof) -> Giver {
    Giver { person: token.person.id, token: Some(token.id.clone()) }
}

impl DecisionFixture {
    fn add(&self, name: &'static str, role: Role, by: &Proof) {
        let by = giver(by);
        self.write(move |tx| Ok(registry::add_person(tx, name, role, by).map(drop))).expect("a good name");
    }

    fn issue(&self, to: &'static str, by: &Proof) -> Proof {
        let by = giver(by);
        self.write(move |tx| {
            let person = registry::find_person(tx, to)?.expect("a person");
            Ok(tokens::issue(tx, &person, "later", None, &FreshToken::new()?, by))
        })
        .expect("a good token")
    }

    /// Adds a person of this role with a token, both given by the holder of `by`.
    fn newcomer(&self, name: &'static str, role: Role, by: &Proof) -> Proof {
        self.add(name, role, by);
        self.issue(name, by)
    }

    fn set_role(&self, of: &'static str, role: Role, by: &Proof) {
        let by = giver(by);
        self.write(move |tx| {
            let person = registry::find_person(tx, of)?.expect("a person");
            Ok(registry::people::set_role(tx, &person, role, by).map(drop))
        })
        .expect("a role");
    }

    fn remove(&self, name: &'static str) {
        self.write(move |tx| {
            let (person, by) = (registry::find_person(tx, name)?, registry::find_person(tx, "olga")?);
            let (person, by) = person.zip(by).expect("two people");
            person_removal::check(tx, &person, by.id).expect("removable");
            person_removal::end_access(tx, &person, by.id)?;
            person_removal::remove(tx, &person, by.id)?;
            Ok(())
        });
    }

    fn approve_by(&self, token: &Proof, id: ChangeId) -> Result<Status, Refusal> {
        self.approve_with(token.clone(), id, self.shown(id))
    }
}

/// Returns a change that needs two approvals, and the token of the owner who requested it.
fn needing_two() -> (DecisionFixture, ChangeId, Proof) {
    let fixture = DecisionFixture::under(TWO);
    let (id, olga) = (fixture.persona("new"), fixture.token("olga"));
    (fixture, id, olga)
}

#[test]
fn approval_of_a_puppet_is_void_once_its_maker_approves() {
    let (fixture, id, olga) = needing_two();
    let puppet = fixture.newcomer("puppet", Role::Admin, &olga);
    assert_eq!(fixture.approve_by(&puppet, id), Ok(Status::Pending));
    assert_eq!(fixture.approve_by(&olga, id), Ok(Status::Pending), "only the maker counts");
    assert_eq!(fixture.refused_approvals(), [NOT_INDEPENDENT]);
}

#[test]
fn two_later_people_of_one_owner_count_once() {
    let (fixture, id, olga) = needing_two();
    let first = fixture.newcomer("first", Role::Owner, &olga);
    // One adds the other: both lead back to the same person.
    let second = fixture.newcomer("second", Role::Admin, &first);
    assert_eq!(fixture.approve_by(&second, id), Ok(Status::Pending));
    refused(fixture.approve_by(&first, id), NOT_INDEPENDENT);
}

#[test]
fn later_token_from_an_approver_does_not_count() {
    let (fixture, id, olga) = needing_two();
    assert_eq!(fixture.approve_by(&olga, id), Ok(Status::Pending));
    let borrowed = fixture.issue("adam", &olga);
    refused(fixture.approve_by(&borrowed, id), NOT_INDEPENDENT);
    // The owner can also read a token that the owner rotates.
    let by = giver(&olga);
    let old = fixture.token("anna");
    let fresh = fixture.write(move |tx| Ok(tokens::rotate(tx, &old, &FreshToken::new()?, by))).expect("a live token");
    refused(fixture.approve_by(&fresh, id), NOT_INDEPENDENT);
    assert_eq!(fixture.approve("adam", id), Ok(Status::Approved), "with adam's earlier token");
}

#[test]
fn role_raised_by_an_approver_does_not_count() {
    let (fixture, id, olga) = needing_two();
    assert_eq!(fixture.approve_by(&olga, id), Ok(Status::Pending));
    fixture.set_role("mara", Role::Admin, &olga);
    refused(fixture.approve("mara", id), NOT_INDEPENDENT);
    fixture.set_role("adam", Role::Admin, &olga);
    assert_eq!(fixture.approve("adam", id), Ok(Status::Approved), "the same role again changes nothing");
}

#[test]
fn excluded_requester_does_not_count_through_others() {
    let fixture = DecisionFixture::under(NOT_OWN);
    let (id, olga) = (fixture.persona("new"), fixture.token("olga"));
    let puppet = fixture.newcomer("puppet", Role::Admin, &olga);
    refused(fixture.approve_by(&puppet, id), NOT_INDEPENDENT);
    assert_eq!(fixture.approve("anna", id), Ok(Status::Approved));
}

#[test]
fn agent_role_from_an_approver_does_not_count() {
    let fixture = DecisionFixture::under("[kind.persona]\napprovals = 2\n");
    let (id, olga) = (fixture.persona("new"), fixture.token("olga"));
    let mara = fixture.person("mara");
    let own = format!("loopback:{}", mara.id);
    let payload = json!({"grant": [{"identity": own, "role": "admin"}]});
    let roles = fixture.submit("olga", ChangeKind::Permissions, payload).expect("held");
    assert_eq!(fixture.approve_by(&olga, roles), Ok(Status::Approved));
    fixture.apply(roles).expect("applied");
    assert_eq!(fixture.approve_by(&olga, id), Ok(Status::Pending));
    refused(fixture.approve("mara", id), NOT_INDEPENDENT);
    assert_eq!(fixture.approve("anna", id), Ok(Status::Approved));
}

#[test]
fn newcomer_made_by_a_non_approver_counts() {
    let (fixture, id, olga) = needing_two();
    let newcomer = fixture.newcomer("newcomer", Role::Admin, &olga);
    assert_eq!(fixture.approve("adam", id), Ok(Status::Pending));
    assert_eq!(fixture.approve_by(&newcomer, id), Ok(Status::Approved));
    fixture.apply(id).expect("two independent approvals");
}

#[test]
fn token_rotated_by_its_holder_still_counts() {
    let fixture = DecisionFixture::under(TWO);
    let (id, adam) = (fixture.persona("new"), fixture.token("adam"));
    let by = giver(&adam);
    let fresh = fixture.write(move |tx| Ok(tokens::rotate(tx, &adam, &FreshToken::new()?, by))).expect("a live token");
    assert_eq!(fixture.approve("olga", id), Ok(Status::Pending));
    assert_eq!(fixture.approve_by(&fresh, id), Ok(Status::Approved));
}

#[test]
fn later_token_from_the_host_does_not_count() {
    let fixture = DecisionFixture::under(TWO);
    let (id, adam) = (fixture.persona("new"), fixture.person("adam"));
    let fresh = FreshToken::new().expect("random bytes");
    let digest = fresh.digest();
    let found = fixture.write(move |tx| {
        tokens::issue_for_file(tx, adam.id, &fresh)?;
        Ok(registry::tokens(tx)?.into_iter().find(|token| token.digest == digest).expect("issued"))
    });
    assert_eq!(fixture.approve("olga", id), Ok(Status::Pending));
    refused(fixture.approve_by(&found, id), NOT_INDEPENDENT);
}

#[test]
fn newcomer_decides_if_one_approval_is_enough() {
    let fixture = DecisionFixture::new();
    let (id, olga) = (fixture.persona("new"), fixture.token("olga"));
    let newcomer = fixture.newcomer("newcomer", Role::Admin, &olga);
    assert_eq!(fixture.approve_by(&newcomer, id), Ok(Status::Approved));
}

#[test]
fn approval_of_a_removed_person_is_lost_before_the_effect() {
    let fixture = DecisionFixture::under(TWO);
    let id = fixture.persona("new");
    assert_eq!(fixture.approve("adam", id), Ok(Status::Pending));
    assert_eq!(fixture.approve("anna", id), Ok(Status::Approved));
    fixture.remove("adam");
    fixture.loses_approval(id, DenialCode::ApproverRoleLost);
}

#[test]
fn approver_with_a_role_from_a_removed_person_does_not_count() {
    let fixture = DecisionFixture::under(TWO);
    let (id, adam) = (fixture.persona("new"), fixture.token("adam"));
    let newcomer = fixture.newcomer("newcomer", Role::Admin, &adam);
    assert_eq!(fixture.approve_by(&newcomer, id), Ok(Status::Pending));
    fixture.remove("adam");
    assert_eq!(fixture.approve("olga", id), Ok(Status::Pending), "the giver is no longer known");
    assert_eq!(fixture.refused_approvals(), [NOT_INDEPENDENT]);
}
