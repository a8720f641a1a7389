//! Decisions under attack. An approval is bound to several values; a later change of one of them is refused by its code and
//! applies nothing. Of two decisions at once one wins, and a restart loses nothing.

mod decision_fixture;
mod independence;

use self::decision_fixture::{DecisionFixture, block_on, refused};
use super::changes::PENDING_OF_PERSON_MAX;
use super::kinds::Prepared;
use super::waiting::{self, Doubted, Status};
use super::{apply, decide, generation};
use crate::gateway::approval::{self, Token};
use crate::registry::policy::Rule;
use crate::registry::{self, Person, Role};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{ChangeId, PersonId};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_operator::DenialCode;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables::approvals::{self, ApprovalState};
use rusqlite::params;
use serde_json::{Value, json};

#[test]
fn approved_change_is_applied_only_once() {
    let fixture = DecisionFixture::new();
    let id = fixture.persona("new");
    refused(fixture.apply(id), DenialCode::ChangeDecided);
    assert_eq!((fixture.persona_now(), fixture.status(id)), ("old".to_owned(), Status::Failed), "without an approval");
    let id = fixture.approved("new");
    assert_eq!(fixture.persona_now(), "old", "an approval alone applies nothing");
    fixture.apply(id).expect("it is approved");
    assert_eq!((fixture.persona_now(), fixture.status(id)), ("new".to_owned(), Status::Done));
    refused(fixture.apply(id), DenialCode::ChangeDecided);
    refused(fixture.approve("adam", id), DenialCode::ChangeDecided);
    refused(fixture.reject("adam", id), DenialCode::ChangeDecided);
    // An attacker who resets the state still has no unused approval.
    fixture.sql("UPDATE waiting SET status = 'approved' WHERE id = ?1", id);
    refused(fixture.apply(id), DenialCode::ChangeStale);
    fixture.sql("UPDATE agents SET persona = 'old' WHERE name = 'helper' AND ?1 <> ''", id);
    fixture.sql("UPDATE waiting SET status = 'approved' WHERE id = ?1", id);
    refused(fixture.apply(id), DenialCode::ApprovalLost);
    assert_eq!(fixture.persona_now(), "old");
}

#[test]
fn approval_is_valid_only_for_the_shown_change() {
    for (sql, code) in [
        (
            "UPDATE waiting SET own = json_set(own, '$.payload', json('{\"instructions\":\"EVIL\"}')) WHERE id = ?1",
            DenialCode::ApprovalForAnother,
        ),
        (
            "UPDATE waiting SET subject = 'enabled_tools', own = json_set(own, '$.payload', json('[\"read_file\"]'), '$.before', json('[]')) WHERE id = ?1",
            DenialCode::ApprovalForAnother,
        ),
        (
            "UPDATE waiting SET principal = (SELECT id FROM people WHERE name = 'mara') WHERE id = ?1",
            DenialCode::ApprovalForAnother,
        ),
        ("UPDATE waiting SET own = json_set(own, '$.reason', 'another') WHERE id = ?1", DenialCode::ApprovalForAnother),
        ("UPDATE waiting SET labels = '[\"External\"]' WHERE id = ?1", DenialCode::ApprovalForAnother),
        (
            "UPDATE waiting SET agent_id = (SELECT id FROM agents WHERE name = 'other') WHERE id = ?1",
            DenialCode::ApprovalForAnother,
        ),
        (
            "UPDATE approvals SET token = replace(token, '\"proof\":\"tok_', '\"proof\":\"kot_') WHERE subject = ?1",
            DenialCode::ApprovalForged,
        ),
        ("UPDATE approvals SET token = token || ' ' WHERE subject = ?1", DenialCode::ApprovalForged),
        (
            "UPDATE approvals SET token = replace(token, '{\"approver\"', '{\"approver\":1,\"approver\"') WHERE subject = ?1",
            DenialCode::ApprovalForged,
        ),
        ("UPDATE approvals SET token = '{\"approved\":true}' WHERE subject = ?1", DenialCode::ApprovalForged),
        (
            "UPDATE approvals SET person_id = (SELECT id FROM people WHERE name = 'adam') WHERE subject = ?1",
            DenialCode::ApprovalForged,
        ),
    ] {
        let fixture = DecisionFixture::new();
        let id = fixture.approved("new");
        fixture.sql(sql, id);
        refused(fixture.apply(id), DenialCode::ApprovalLost);
        assert_eq!((fixture.persona_now().as_str(), fixture.status(id)), ("old", Status::Failed), "{sql}");
        assert_eq!(fixture.refused_approvals(), [code], "{sql}");
    }
}

#[test]
fn approval_of_other_change_key_generation_or_time_is_refused() {
    let fixture = DecisionFixture::new();
    let (one, two) = (fixture.approved("one"), fixture.approved("two"));
    // An approval moved from one change to the other.
    fixture.sql("UPDATE approvals SET state = 'void', ended_at = 1 WHERE subject = ?1", two);
    fixture.write(move |tx| {
        let sql = "UPDATE approvals SET subject = ?2 WHERE subject = ?1";
        Ok(tx.execute(sql, params![one, two])?)
    });
    refused(fixture.apply(two), DenialCode::ApprovalLost);
    fixture.loses_approval(one, DenialCode::ApprovalForAnother);

    let mut fixture = DecisionFixture::new();
    let id = fixture.approved("new");
    fixture.root = 2;
    // Under another master key.
    fixture.loses_approval(id, DenialCode::ApprovalForged);

    let fixture = DecisionFixture::new();
    let id = fixture.approved("new");
    fixture.sql("UPDATE waiting SET generation = 9 WHERE id = ?1", id);
    refused(fixture.apply(id), DenialCode::ApprovalForAnother);

    // An expired approval, made with the right key.
    let fixture = DecisionFixture::new();
    let id = fixture.approved("new");
    fixture.write(move |tx| {
        let given = approvals::list(tx, id.into())?.remove(0);
        let token: Value = serde_json::from_str(&given.token).expect("JSON");
        // The subject is the one field of its type.
        let fields = token.as_object().expect("an object").values();
        let subject = fields.cloned().find_map(|field| serde_json::from_value(field).ok()).expect("a subject");
        let approver = serde_json::from_value(token["approver"].clone()).expect("an approver");
        let root = approval::tests::root(1);
        let expired: Token = approval::mint(&root, subject, approver, 1, 2)?;
        tx.execute("UPDATE approvals SET token = ?2 WHERE id = ?1", params![given.id, expired.to_json()])?;
        Ok(())
    });
    fixture.loses_approval(id, DenialCode::ApprovalExpired);
}

#[test]
fn change_that_differs_from_its_shown_text_is_refused() {
    // The text of the page.
    let fixture = DecisionFixture::new();
    let id = fixture.persona("new");
    let shown = fixture.shown(id);
    fixture.sql(
        "UPDATE waiting SET own = json_set(own, '$.payload', json('{\"instructions\":\"EVIL\"}')) WHERE id = ?1",
        id,
    );
    refused(fixture.approve_shown("olga", id, shown), DenialCode::ShownDiffers);
    refused(fixture.approve_shown("olga", id, Digest::of(b"something else")), DenialCode::ShownDiffers);
    assert_eq!(fixture.status(id), Status::Pending);
    // The current setting.
    let (first, second) = (fixture.persona("first"), fixture.persona("second"));
    assert_eq!(fixture.approve("olga", first), Ok(Status::Approved));
    fixture.apply(first).expect("applied");
    refused(fixture.approve("olga", second), DenialCode::ChangeStale);
    assert_eq!((fixture.persona_now().as_str(), fixture.status(second)), ("first", Status::Withdrawn));
    // The current setting, after the approval.
    let third = fixture.approved("third");
    fixture.sql("UPDATE agents SET persona = 'another' WHERE name = 'helper' AND ?1 <> ''", third);
    refused(fixture.apply(third), DenialCode::ChangeStale);
    assert_eq!(fixture.persona_now(), "another");
    // The policy between showing and approving, and between approving and applying.
    let mut fixture = DecisionFixture::new();
    let id = fixture.persona("new");
    let shown = fixture.shown(id);
    fixture.set_policy("[default]\nexpires_hours = 12");
    refused(fixture.approve_shown("olga", id, shown), DenialCode::ShownDiffers);
    assert_eq!(fixture.approve("olga", id), Ok(Status::Approved));
    fixture.set_policy("[default]\nexpires_hours = 13");
    fixture.loses_approval(id, DenialCode::ApprovalForAnother);
}

#[test]
fn deciding_needs_a_role_and_a_lost_role_voids_the_approval() {
    let fixture = DecisionFixture::under("[default]\napprovals = 2\n");
    let id = fixture.persona("new");
    // Mara neither sees the change nor decides on it.
    refused(fixture.approve("mara", id), DenialCode::ChangeUnknown);
    refused(fixture.reject("mara", id), DenialCode::ChangeUnknown);
    assert_eq!(fixture.approve("adam", id), Ok(Status::Pending));
    refused(fixture.approve("adam", id), DenialCode::ChangeDecided);
    let (adam, olga) = (fixture.person("adam"), fixture.person("olga"));
    fixture
        .write(move |tx| Ok(registry::people::set_role(tx, &adam, Role::Member, olga.id).map(drop)))
        .expect("not the last owner");
    assert_eq!(fixture.approve("anna", id), Ok(Status::Pending), "one of the two approvals is void");
    assert_eq!(fixture.refused_approvals(), [DenialCode::ApproverRoleLost]);
    assert_eq!(fixture.approve("olga", id), Ok(Status::Approved));
    // A role lost between the last approval and the application.
    let (anna, olga) = (fixture.person("anna"), fixture.person("olga"));
    fixture
        .write(move |tx| Ok(registry::people::set_role(tx, &anna, Role::Member, olga.id).map(drop)))
        .expect("not the last owner");
    refused(fixture.apply(id), DenialCode::ApprovalLost);
    assert_eq!((fixture.persona_now().as_str(), fixture.status(id)), ("old", Status::Failed));
}

#[test]
fn one_person_with_two_identities_is_one_person() {
    let fixture = DecisionFixture::under("[default]\napprovals = 2\nrequester_may_approve = false\n");
    let adam = fixture.person("adam");
    fixture
        .write(move |tx| {
            let identity = "telegram:4711".parse().expect("an identity");
            Ok(registry::people::link(tx, &adam, &identity, adam.id))
        })
        .expect("linked");
    let id = fixture.persona("new");
    refused(fixture.approve("olga", id), DenialCode::NotYoursToDecide);
    assert_eq!(fixture.approve("adam", id), Ok(Status::Pending));
    refused(fixture.approve("adam", id), DenialCode::ChangeDecided);
    assert_eq!(fixture.approve("anna", id), Ok(Status::Approved));
    fixture.apply(id).expect("two people approved it");
}

#[test]
fn concurrent_applications_have_one_effect() {
    let fixture = DecisionFixture::new();
    let id = fixture.approved("new");
    let applied: Vec<Result<(), Refusal>> = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| fixture.apply(id)));
        both.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    assert_eq!(applied.iter().filter(|applied| applied.is_ok()).count(), 1, "{applied:?}");
    assert_eq!((fixture.persona_now().as_str(), fixture.status(id)), ("new", Status::Done));
}

#[test]
fn same_change_is_one_request_and_too_many_are_refused() {
    let fixture = DecisionFixture::new();
    let id = fixture.persona("new");
    assert_eq!(fixture.persona("new"), id);
    assert_ne!(fixture.persona("newer"), id);
    fixture.reject("adam", id).expect("rejected");
    assert_eq!(fixture.persona_now(), "old");
    assert_ne!(fixture.persona("new"), id, "a rejected change can be requested again, under another id");
    for number in 0..PENDING_OF_PERSON_MAX - 2 {
        fixture.persona(&format!("number {number}"));
    }
    let more = fixture.submit("olga", ChangeKind::Persona, json!({ "instructions": "one more" }));
    refused(more, DenialCode::ChangesTooMany);
}

#[test]
fn restored_record_voids_approvals_and_asks_a_person() {
    let fixture = DecisionFixture::under("[kind.enabled_tools]\napprovals = 2\n");
    let (approved, pending) = (fixture.approved("new"), fixture.persona("newer"));
    let half = fixture.submit("olga", ChangeKind::EnabledTools, json!(["read_file"])).expect("submitted");
    assert_eq!(fixture.approve("olga", half), Ok(Status::Pending));
    assert_eq!(fixture.begin_generation("one"), Some(Doubted { doubtful: 3, withdrawn: 0 }));
    assert_eq!(fixture.begin_generation("one"), None, "the same history begins no generation twice");
    assert_eq!(fixture.write(|tx| Ok(generation::begin(tx, &[])?)), None);
    let looked = fixture.write(move |tx| Ok(waiting::find(tx, approved.into())?.expect("it is there")));
    assert_eq!((looked.shown, looked.decided_by), (None, None), "the approval was of another page");
    for id in [approved, pending, half] {
        assert_eq!(fixture.status(id), Status::Doubtful);
        refused(fixture.apply(id), DenialCode::ChangeDecided);
    }
    assert_eq!(fixture.persona_now(), "old");
    let half = fixture.submit("olga", ChangeKind::EnabledTools, json!(["read_file"])).expect("submitted");
    assert_eq!(fixture.approve("adam", half), Ok(Status::Pending), "an earlier approval no longer counts");
}

#[test]
fn state_error_while_applying_leaves_the_approval_unused() {
    let fixture = DecisionFixture::new();
    let id = fixture.approved("new");
    let gateway = fixture.gateway();
    let failed = block_on(fixture.state().write(move |tx| {
        let approved = decide::use_approvals(tx, &gateway, id).expect("approved");
        apply::apply(tx, &approved, &Prepared::Nothing).expect("applied");
        Err::<(), _>(Error::State(ironclaw_state::Error::Stored("a full disk".to_owned())))
    }));
    failed.expect_err("the transaction was rolled back");
    assert_eq!((fixture.persona_now().as_str(), fixture.status(id)), ("old", Status::Approved));
    fixture.apply(id).expect("the approval is unused");
    assert_eq!(fixture.persona_now(), "new");
}

#[test]
fn same_change_by_another_person_is_another_request() {
    let fixture = DecisionFixture::under("[default]\nrequester_may_approve = false\n");
    let persona = || json!({ "instructions": "new" });
    let of_olga = fixture.submit("olga", ChangeKind::Persona, persona()).expect("submitted");
    let of_adam = fixture.submit("adam", ChangeKind::Persona, persona()).expect("submitted");
    assert_ne!(of_olga, of_adam, "each with its reason and requester");
    refused(fixture.approve("adam", of_adam), DenialCode::NotYoursToDecide);
    assert_eq!(fixture.approve("adam", of_olga), Ok(Status::Approved));
}

#[test]
fn same_change_after_a_stale_one_is_a_new_request() {
    let fixture = DecisionFixture::new();
    let stale = fixture.persona("new");
    let other = fixture.approved("other");
    fixture.apply(other).expect("applied");
    let fresh = fixture.persona("new");
    assert_ne!(fresh, stale);
    assert_eq!(fixture.status(stale), Status::Withdrawn);
    assert_eq!(fixture.approve("olga", fresh), Ok(Status::Approved));
}

#[test]
fn check_that_fails_later_withdraws_the_change() {
    let fixture = DecisionFixture::new();
    let id = fixture.submit("olga", ChangeKind::CreateAgent, json!({ "name": "newcomer" })).expect("submitted");
    let again = fixture.submit("adam", ChangeKind::CreateAgent, json!({ "name": "newcomer" })).expect("submitted");
    assert_eq!(fixture.approve("olga", id), Ok(Status::Approved));
    fixture.apply(id).expect("applied");
    refused(fixture.approve("olga", again), DenialCode::ChangeStale);
    assert_eq!(fixture.status(again), Status::Withdrawn);
}

#[test]
fn approval_by_a_revoked_token_is_void_and_can_be_repeated() {
    let fixture = DecisionFixture::under("[default]\napprovals = 2\n");
    let id = fixture.persona("new");
    let token = fixture.token("adam");
    assert_eq!(fixture.approve("adam", id), Ok(Status::Pending));
    let olga = fixture.person("olga");
    let revoke = move |tx: &mut WriteTx<'_>| {
        let current = "tok_0000000000000000".parse().expect("an id");
        Ok(registry::tokens::revoke(tx, &token, &current, olga.id).map(drop))
    };
    fixture.write(revoke).expect("revoked");
    assert_eq!(fixture.approve("anna", id), Ok(Status::Pending));
    assert_eq!(fixture.refused_approvals(), [DenialCode::ApproverProofLost]);
    assert_eq!(fixture.approve("adam", id), Ok(Status::Approved), "with another valid token");
}

#[test]
fn superseded_change_waits_for_no_decision() {
    let fixture = DecisionFixture::new();
    let (first, second, third) = (fixture.persona("first"), fixture.persona("second"), fixture.persona("third"));
    let tools = fixture.submit("olga", ChangeKind::EnabledTools, json!(["read_file"])).expect("submitted");
    assert_eq!(fixture.approve("olga", first), Ok(Status::Approved));
    fixture.apply(first).expect("applied");
    assert_eq!((fixture.status(second), fixture.status(third)), (Status::Withdrawn, Status::Withdrawn));
    assert_eq!(fixture.status(tools), Status::Pending, "a change of another kind");
}

#[test]
fn approval_of_an_earlier_version_counts_under_another_seam() {
    let fixture = DecisionFixture::new();
    let id = fixture.approved("new");
    let token = fixture.write(move |tx| Ok(approvals::list(tx, id.into())?.remove(0).token));
    // The versions until decision 0086 named the fingerprint of their seam.
    let schema = Digest::of(b"191a13ea683e561e1afa9176a8e8583cf32ca3d2af727192f5c97b4250853446");
    assert!(token.contains(&schema.to_string()), "{token}");
}

#[test]
fn approval_under_an_older_policy_is_void_after_a_start() {
    let mut fixture = DecisionFixture::under("[default]\napprovals = 2\n");
    let id = fixture.persona("new");
    assert_eq!(fixture.approve("olga", id), Ok(Status::Pending));
    fixture.set_policy("");
    let gateway = fixture.gateway();
    fixture.write(move |tx| waiting::decide::recount(tx, &gateway));
    let live = fixture.write(move |tx| {
        Ok(approvals::list(tx, id.into())?.into_iter().filter(|given| given.state == ApprovalState::Live).count())
    });
    assert_eq!(
        (live, fixture.status(id)),
        (0, Status::Pending),
        "the one approval that is necessary now must be given now"
    );
    assert_eq!(fixture.approve("olga", id), Ok(Status::Approved));
}

#[test]
fn immediate_command_bypasses_no_stricter_policy() {
    let rule = |approvals, requester_may_approve, roles: &[Role]| Rule {
        roles: roles.to_vec(),
        approvals,
        requester_may_approve,
        expires_hours: 1,
    };
    let both = [Role::Owner, Role::Admin];
    let person = |role| Person { id: PersonId::new(), name: "ada".to_owned(), role, created_at: 0 };
    let code = |rule: Rule, role| {
        decide::check_direct(&rule, ChangeKind::Wiring, &person(role)).map(drop).map_err(|refusal| refusal.code)
    };
    assert_eq!(code(rule(2, true, &both), Role::Owner), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, false, &both), Role::Owner), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, true, &[Role::Owner]), Role::Admin), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, true, &both), Role::Member), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, true, &both), Role::Admin), Ok(()));
    let refused = decide::check_direct(&rule(2, true, &both), ChangeKind::Wiring, &person(Role::Owner))
        .expect_err("two approvals are necessary");
    assert!(refused.hint.contains("ironctl change submit --kind wiring"), "{}", refused.hint);
}
