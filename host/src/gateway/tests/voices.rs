//! One owner is one voice: what they give after the request (a person, a role, a token) adds none.

use super::super::independence::NOT_INDEPENDENT;
use super::*;
use crate::registry::{Fresh, Giver, Token as Proof, tokens};

const TWO: &str = "[default]\napprovals = 2\n";
const NOT_OWN: &str = "[default]\nrequester_may_approve = false\n";

/// A person who gives something, with the token that they use.
fn giver(token: &Proof) -> Giver {
    Giver { person: token.person.id, token: Some(token.id.clone()) }
}

impl Desk {
    fn add(&self, name: &'static str, role: Role, by: &Proof) {
        let by = giver(by);
        self.write(move |tx| Ok(registry::add_person(tx, name, role, by).map(drop))).expect("a good name");
    }

    fn issue(&self, to: &'static str, by: &Proof) -> Proof {
        let by = giver(by);
        self.write(move |tx| {
            let person = registry::find_person(tx, to)?.expect("somebody");
            Ok(tokens::issue(tx, &person, "later", None, &Fresh::new()?, by))
        })
        .expect("a good token")
    }

    fn set_role(&self, of: &'static str, role: Role, by: &Proof) {
        let by = giver(by);
        self.write(move |tx| {
            let person = registry::find_person(tx, of)?.expect("somebody");
            Ok(registry::people::set_role(tx, &person, role, by).map(drop))
        })
        .expect("a role");
    }

    fn approve_by(&self, token: &Proof, id: ChangeId) -> Result<Said, Refusal> {
        self.approve_with(token.clone(), id, self.shown(id))
    }
}

#[test]
fn a_person_made_by_an_approver_after_the_request_is_no_voice() {
    let desk = Desk::under(TWO);
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    assert_eq!(desk.approve_by(&olga, id), Ok(Said::Counted(1)));
    desk.add("puppet", Role::Admin, &olga);
    let puppet = desk.issue("puppet", &olga);
    refused(desk.approve_by(&puppet, id), NOT_INDEPENDENT);
    assert_eq!(desk.approve("adam", id), Ok(Said::Approved), "two people from before");
    desk.apply(id).expect("two voices");
}

#[test]
fn a_puppets_earlier_yes_goes_when_its_maker_says_yes() {
    let desk = Desk::under(TWO);
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    desk.add("puppet", Role::Admin, &olga);
    let puppet = desk.issue("puppet", &olga);
    assert_eq!(desk.approve_by(&puppet, id), Ok(Said::Counted(1)));
    assert_eq!(desk.approve_by(&olga, id), Ok(Said::Counted(1)), "one voice, and it is the maker's");
    assert_eq!(desk.found_bad(), [NOT_INDEPENDENT]);
}

#[test]
fn two_people_made_by_one_owner_after_the_request_are_one_voice() {
    let desk = Desk::under(TWO);
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    desk.add("first", Role::Owner, &olga);
    let first = desk.issue("first", &olga);
    // One makes the other: both lead back to the same person.
    desk.add("second", Role::Admin, &first);
    let second = desk.issue("second", &first);
    assert_eq!(desk.approve_by(&second, id), Ok(Said::Counted(1)));
    refused(desk.approve_by(&first, id), NOT_INDEPENDENT);
}

#[test]
fn a_token_for_a_real_admin_from_an_approver_is_no_voice() {
    let desk = Desk::under(TWO);
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    assert_eq!(desk.approve_by(&olga, id), Ok(Said::Counted(1)));
    let borrowed = desk.issue("adam", &olga);
    refused(desk.approve_by(&borrowed, id), NOT_INDEPENDENT);
    // A token that the owner replaces is the owner's to read as well.
    let by = giver(&olga);
    let old = desk.token("anna");
    let fresh = desk.write(move |tx| Ok(tokens::rotate(tx, &old, &Fresh::new()?, by))).expect("a live token");
    refused(desk.approve_by(&fresh, id), NOT_INDEPENDENT);
    assert_eq!(desk.approve("adam", id), Ok(Said::Approved), "with the token that adam had");
}

#[test]
fn a_role_raised_by_an_approver_after_the_request_is_no_voice() {
    let desk = Desk::under(TWO);
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    assert_eq!(desk.approve_by(&olga, id), Ok(Said::Counted(1)));
    desk.set_role("mara", Role::Admin, &olga);
    refused(desk.approve("mara", id), NOT_INDEPENDENT);
    desk.set_role("adam", Role::Admin, &olga);
    assert_eq!(desk.approve("adam", id), Ok(Said::Approved), "the same role again is not another one");
}

#[test]
fn excluded_requester_does_not_count_through_others() {
    let desk = Desk::under(NOT_OWN);
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    desk.add("puppet", Role::Admin, &olga);
    let puppet = desk.issue("puppet", &olga);
    refused(desk.approve_by(&puppet, id), NOT_INDEPENDENT);
    assert_eq!(desk.approve("anna", id), Ok(Said::Approved));
}

#[test]
fn a_role_of_an_agent_from_an_approver_is_no_voice() {
    let desk = Desk::under("[kind.persona]\napprovals = 2\n");
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    let mara = desk.person("mara");
    let own = format!("loopback:{}", mara.id);
    let payload = json!({"grant": [{"identity": own, "role": "admin"}]});
    let roles = desk.submit("olga", ChangeKind::Permissions, payload).expect("held");
    assert_eq!(desk.approve_by(&olga, roles), Ok(Said::Approved));
    desk.apply(roles).expect("applied");
    assert_eq!(desk.approve_by(&olga, id), Ok(Said::Counted(1)));
    refused(desk.approve("mara", id), NOT_INDEPENDENT);
    assert_eq!(desk.approve("anna", id), Ok(Said::Approved));
}

#[test]
fn newcomer_made_by_a_non_approver_counts() {
    let desk = Desk::under(TWO);
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    desk.add("newcomer", Role::Admin, &olga);
    let newcomer = desk.issue("newcomer", &olga);
    assert_eq!(desk.approve("adam", id), Ok(Said::Counted(1)));
    assert_eq!(desk.approve_by(&newcomer, id), Ok(Said::Approved));
    desk.apply(id).expect("two voices");
}

#[test]
fn a_token_that_its_holder_replaced_themselves_still_counts() {
    let desk = Desk::under(TWO);
    let (id, adam) = (desk.persona("new"), desk.token("adam"));
    let by = giver(&adam);
    let fresh = desk.write(move |tx| Ok(tokens::rotate(tx, &adam, &Fresh::new()?, by))).expect("a live token");
    assert_eq!(desk.approve("olga", id), Ok(Said::Counted(1)));
    assert_eq!(desk.approve_by(&fresh, id), Ok(Said::Approved));
}

#[test]
fn token_issued_by_the_host_after_the_request_is_no_voice() {
    let desk = Desk::under(TWO);
    let (id, adam) = (desk.persona("new"), desk.person("adam"));
    let fresh = Fresh::new().expect("random bytes");
    let digest = fresh.digest();
    let found = desk.write(move |tx| {
        tokens::issue_for_file(tx, adam.id, &fresh)?;
        Ok(registry::tokens(tx)?.into_iter().find(|token| token.digest == digest).expect("issued"))
    });
    assert_eq!(desk.approve("olga", id), Ok(Said::Counted(1)));
    refused(desk.approve_by(&found, id), NOT_INDEPENDENT);
}

#[test]
fn where_one_yes_is_enough_a_newcomer_decides() {
    let desk = Desk::new();
    let (id, olga) = (desk.persona("new"), desk.token("olga"));
    desk.add("newcomer", Role::Admin, &olga);
    let newcomer = desk.issue("newcomer", &olga);
    assert_eq!(desk.approve_by(&newcomer, id), Ok(Said::Approved));
}
