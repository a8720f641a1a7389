//! Decisions under attack: each thing that an approval is bound to, changed after it was given, is refused by name and applies
//! nothing; of two at once one wins; and a restart forgets nothing.

mod desk;
mod voices;

use self::desk::{AGENT, Desk, block_on, context, grounds, refused};
use super::apply;
use super::decide::{self, Said};
use super::kinds::Prepared;
use super::policy::{Policy, Rule};
use super::store::{self, Status};
use crate::approval::{self, Token};
use crate::refusal::Refusal;
use crate::registry::{self, Person, Role};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{ChangeId, PersonId};
use ironclaw_contract::operator::DenialCode;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_state::WriteTx;
use rusqlite::params;
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn what_was_approved_is_applied_once_and_not_again() {
    let desk = Desk::new();
    let id = desk.persona("new");
    refused(desk.apply(id), DenialCode::ChangeDecided);
    assert_eq!((desk.told(), desk.status(id)), ("old".to_owned(), Status::Failed), "nobody approved it");
    let id = desk.persona("new");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    assert_eq!(desk.told(), "old", "approving does nothing by itself");
    desk.apply(id).expect("it is approved");
    assert_eq!((desk.told(), desk.status(id)), ("new".to_owned(), Status::Applied));
    refused(desk.apply(id), DenialCode::ChangeDecided);
    refused(desk.approve("adam", id), DenialCode::ChangeDecided);
    refused(desk.reject("adam", id), DenialCode::ChangeDecided);
    // Whoever could set the state back still has no approval that is not used.
    desk.sql("UPDATE changes SET status = 'approved' WHERE id = ?1", id);
    refused(desk.apply(id), DenialCode::ChangeStale);
    desk.sql("UPDATE agents SET persona = 'old' WHERE name = 'helper' AND ?1 <> ''", id);
    desk.sql("UPDATE changes SET status = 'approved' WHERE id = ?1", id);
    refused(desk.apply(id), DenialCode::ApprovalLost);
    assert_eq!(desk.told(), "old");
}

#[test]
fn an_approval_is_good_for_nothing_else_than_what_was_shown() {
    for (sql, code) in [
        ("UPDATE changes SET payload = '{\"instructions\":\"EVIL\"}' WHERE id = ?1", DenialCode::ApprovalForAnother),
        (
            "UPDATE changes SET kind = 'enabled_tools', payload = '[\"read_file\"]', before = '[]' WHERE id = ?1",
            DenialCode::ApprovalForAnother,
        ),
        (
            "UPDATE changes SET principal = (SELECT id FROM people WHERE name = 'mara') WHERE id = ?1",
            DenialCode::ApprovalForAnother,
        ),
        ("UPDATE changes SET reason = 'another' WHERE id = ?1", DenialCode::ApprovalForAnother),
        ("UPDATE changes SET labels = '[\"External\"]' WHERE id = ?1", DenialCode::ApprovalForAnother),
        (
            "UPDATE changes SET agent_id = (SELECT id FROM agents WHERE name = 'other') WHERE id = ?1",
            DenialCode::ApprovalForAnother,
        ),
        (
            "UPDATE approvals SET token = replace(token, '\"proof\":\"tok_', '\"proof\":\"kot_') WHERE change_id = ?1",
            DenialCode::ApprovalForged,
        ),
        ("UPDATE approvals SET token = token || ' ' WHERE change_id = ?1", DenialCode::ApprovalForged),
        (
            "UPDATE approvals SET token = replace(token, '{\"approver\"', '{\"approver\":1,\"approver\"') WHERE change_id = ?1",
            DenialCode::ApprovalForged,
        ),
        ("UPDATE approvals SET token = '{\"approved\":true}' WHERE change_id = ?1", DenialCode::ApprovalForged),
        (
            "UPDATE approvals SET person_id = (SELECT id FROM people WHERE name = 'adam') WHERE change_id = ?1",
            DenialCode::ApprovalForged,
        ),
    ] {
        let desk = Desk::new();
        let id = desk.persona("new");
        assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
        desk.sql(sql, id);
        refused(desk.apply(id), DenialCode::ApprovalLost);
        assert_eq!((desk.told().as_str(), desk.status(id)), ("old", Status::Failed), "{sql}");
        assert_eq!(desk.found_bad(), [code], "{sql}");
    }
}

#[test]
fn approval_of_other_change_key_generation_or_time_is_refused() {
    let desk = Desk::new();
    let (one, two) = (desk.persona("one"), desk.persona("two"));
    assert_eq!(desk.approve("olga", one), Ok(Said::Approved));
    assert_eq!(desk.approve("olga", two), Ok(Said::Approved));
    // Moved from one change to the other.
    desk.sql("UPDATE approvals SET state = 'void', ended_at = 1 WHERE change_id = ?1", two);
    desk.write(move |tx| {
        let sql = "UPDATE approvals SET change_id = ?2 WHERE change_id = ?1";
        Ok(tx.execute(sql, params![one, two])?)
    });
    refused(desk.apply(two), DenialCode::ApprovalLost);
    refused(desk.apply(one), DenialCode::ApprovalLost);
    assert_eq!((desk.told().as_str(), desk.found_bad()), ("old", vec![DenialCode::ApprovalForAnother]));

    let mut desk = Desk::new();
    let id = desk.persona("new");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    desk.root = 2;
    refused(desk.apply(id), DenialCode::ApprovalLost);
    assert_eq!(desk.found_bad(), [DenialCode::ApprovalForged], "under another master key");

    let desk = Desk::new();
    let id = desk.persona("new");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    desk.sql("UPDATE changes SET generation = 9 WHERE id = ?1", id);
    refused(desk.apply(id), DenialCode::ApprovalForAnother);

    // One that is over, made with the right key.
    let desk = Desk::new();
    let id = desk.persona("new");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    desk.write(move |tx| {
        let given = store::approvals(tx, id)?.remove(0);
        let token: Value = serde_json::from_str(&given.token).expect("JSON");
        let (thing, approver) = (token["thing"].clone(), token["approver"].clone());
        let thing = serde_json::from_value(thing).expect("a thing");
        let approver = serde_json::from_value(approver).expect("an approver");
        let grounds = grounds();
        let policy = Policy::default();
        let root = context(&policy, 1, &grounds).root;
        let over: Token = approval::mint(root, thing, approver, 1, 2)?;
        tx.execute("UPDATE approvals SET token = ?2 WHERE id = ?1", params![given.id, over.to_json()])?;
        Ok(())
    });
    refused(desk.apply(id), DenialCode::ApprovalLost);
    assert_eq!((desk.told().as_str(), desk.found_bad()), ("old", vec![DenialCode::ApprovalExpired]));
}

#[test]
fn change_that_differs_from_its_shown_text_is_refused() {
    // The text.
    let desk = Desk::new();
    let id = desk.persona("new");
    let shown = desk.shown(id);
    desk.sql("UPDATE changes SET payload = '{\"instructions\":\"EVIL\"}' WHERE id = ?1", id);
    refused(desk.approve_shown("olga", id, shown), DenialCode::ShownDiffers);
    refused(desk.approve_shown("olga", id, Digest::of(b"something else")), DenialCode::ShownDiffers);
    assert_eq!(desk.status(id), Status::Pending);
    // What it would alter.
    let (first, second) = (desk.persona("first"), desk.persona("second"));
    assert_eq!(desk.approve("olga", first), Ok(Said::Approved));
    desk.apply(first).expect("applied");
    refused(desk.approve("olga", second), DenialCode::ChangeStale);
    assert_eq!((desk.told().as_str(), desk.status(second)), ("first", Status::Withdrawn));
    // The same after it was approved.
    let third = desk.persona("third");
    assert_eq!(desk.approve("olga", third), Ok(Said::Approved));
    desk.sql("UPDATE agents SET persona = 'another' WHERE name = 'helper' AND ?1 <> ''", third);
    refused(desk.apply(third), DenialCode::ChangeStale);
    assert_eq!(desk.told(), "another");
    // The policy between showing and approving, and between approving and applying.
    let mut desk = Desk::new();
    let id = desk.persona("new");
    let shown = desk.shown(id);
    desk.set_policy("[default]\nexpires_hours = 12");
    refused(desk.approve_shown("olga", id, shown), DenialCode::ShownDiffers);
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    desk.set_policy("[default]\nexpires_hours = 13");
    refused(desk.apply(id), DenialCode::ApprovalLost);
    assert_eq!((desk.told().as_str(), desk.found_bad()), ("old", vec![DenialCode::ApprovalForAnother]));
}

#[test]
fn deciding_needs_a_role_and_a_lost_role_voids_the_approval() {
    let desk = Desk::under("[default]\napprovals = 2\n");
    let id = desk.persona("new");
    refused(desk.approve("mara", id), DenialCode::NotYoursToDecide);
    refused(desk.reject("mara", id), DenialCode::NotYoursToDecide);
    assert_eq!(desk.approve("adam", id), Ok(Said::Counted(1)));
    refused(desk.approve("adam", id), DenialCode::ChangeDecided);
    let (adam, olga) = (desk.person("adam"), desk.person("olga"));
    desk.write(move |tx| Ok(registry::people::set_role(tx, &adam, Role::Member, olga.id).map(drop)))
        .expect("not the last owner");
    assert_eq!(desk.approve("anna", id), Ok(Said::Counted(1)), "of two yeses one is worth nothing any more");
    assert_eq!(desk.found_bad(), [DenialCode::ApproverRoleLost]);
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    // Lost after enough had approved, before it is applied.
    let (anna, olga) = (desk.person("anna"), desk.person("olga"));
    desk.write(move |tx| Ok(registry::people::set_role(tx, &anna, Role::Member, olga.id).map(drop)))
        .expect("not the last owner");
    refused(desk.apply(id), DenialCode::ApprovalLost);
    assert_eq!((desk.told().as_str(), desk.status(id)), ("old", Status::Failed));
}

#[test]
fn one_person_with_two_identities_is_one_person() {
    let desk = Desk::under("[default]\napprovals = 2\nrequester_may_approve = false\n");
    let adam = desk.person("adam");
    desk.write(move |tx| {
        let identity = "telegram:4711".parse().expect("an identity");
        Ok(registry::people::link(tx, &adam, &identity, adam.id))
    })
    .expect("linked");
    let id = desk.persona("new");
    refused(desk.approve("olga", id), DenialCode::NotYoursToDecide);
    assert_eq!(desk.approve("adam", id), Ok(Said::Counted(1)));
    refused(desk.approve("adam", id), DenialCode::ChangeDecided);
    assert_eq!(desk.approve("anna", id), Ok(Said::Approved));
    desk.apply(id).expect("two people approved it");
}

#[test]
fn admin_of_one_agent_decides_only_about_that_agent() {
    let desk = Desk::new();
    let give = |agent: &'static str| {
        desk.write(move |tx| {
            let agent = registry::find_agent(tx, agent)?.expect("an agent");
            let mara = registry::find_person(tx, "mara")?.expect("somebody");
            let sql = "INSERT INTO agent_roles (agent_id, person_id, role) VALUES (?1,?2,'admin')";
            Ok(tx.execute(sql, params![agent.id, mara.id])?)
        });
    };
    give("other");
    let id = desk.persona("new");
    refused(desk.approve("mara", id), DenialCode::NotYoursToDecide);
    give(AGENT);
    let made = desk.submit("olga", ChangeKind::CreateAgent, json!({ "name": "newcomer" })).expect("held");
    refused(desk.approve("mara", made), DenialCode::NotYoursToDecide);
    assert_eq!(desk.approve("mara", id), Ok(Said::Approved));
}

#[test]
fn of_two_who_decide_at_once_one_wins_and_the_other_is_told() {
    let desk = Desk::new();
    let id = desk.persona("new");
    let shown = desk.shown(id);
    let said: Vec<Result<Said, Refusal>> = std::thread::scope(|scope| {
        let both = ["adam", "anna"].map(|by| {
            let desk = &desk;
            scope.spawn(move || desk.approve_shown(by, id, shown))
        });
        both.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    assert_eq!(said.iter().filter(|said| said.is_ok()).count(), 1, "{said:?}");
    refused(said.into_iter().find(|said| said.is_err()).expect("the other"), DenialCode::ChangeDecided);
    // And of two who use the approval.
    let applied: Vec<Result<(), Refusal>> = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| desk.apply(id)));
        both.into_iter().map(|one| one.join().expect("it ends")).collect()
    });
    assert_eq!(applied.iter().filter(|applied| applied.is_ok()).count(), 1, "{applied:?}");
    assert_eq!((desk.told().as_str(), desk.status(id)), ("new", Status::Applied));
}

#[test]
fn a_restart_forgets_no_question_and_no_answer() {
    let mut desk = Desk::under("[default]\napprovals = 2\n");
    let id = desk.persona("new");
    desk.restart();
    assert_eq!(desk.approve("adam", id), Ok(Said::Counted(1)));
    desk.restart();
    assert_eq!(desk.approve("anna", id), Ok(Said::Approved));
    desk.restart();
    desk.apply(id).expect("approved before the restart");
    desk.restart();
    refused(desk.apply(id), DenialCode::ChangeDecided);
    let other = desk.persona("other");
    assert_ne!(other, id, "no id is given twice");
}

#[test]
fn same_change_is_one_request_and_too_many_are_refused() {
    let desk = Desk::new();
    let id = desk.persona("new");
    assert_eq!(desk.persona("new"), id);
    assert_ne!(desk.persona("newer"), id);
    desk.reject("adam", id).expect("a no");
    assert_eq!(desk.told(), "old");
    assert_ne!(desk.persona("new"), id, "after a no it may be asked again, under another id");
    for number in 0..store::PENDING_OF_PERSON_MAX - 2 {
        desk.persona(&format!("number {number}"));
    }
    let more = desk.submit("olga", ChangeKind::Persona, json!({ "instructions": "one more" }));
    refused(more, DenialCode::ChangesTooMany);
}

#[test]
fn undecided_change_expires_and_stays_expired() {
    let desk = Desk::new();
    let id = desk.persona("new");
    desk.sql("UPDATE changes SET expires_at = created_at WHERE id = ?1", id);
    refused(desk.approve("olga", id), DenialCode::ChangeExpired);
    desk.sql("UPDATE changes SET expires_at = created_at + 3600000 WHERE id = ?1", id);
    refused(desk.approve("olga", id), DenialCode::ChangeExpired);
    refused(desk.approve_shown("olga", ChangeId::new(), Digest::of(b"")), DenialCode::ChangeUnknown);
    assert_eq!((desk.told().as_str(), desk.status(id)), ("old", Status::Expired));
}

#[test]
fn restored_record_voids_approvals_and_asks_a_person() {
    let desk = Desk::under("[kind.enabled_tools]\napprovals = 2\n");
    let (approved, pending) = (desk.persona("new"), desk.persona("newer"));
    let half = desk.submit("olga", ChangeKind::EnabledTools, json!(["read_file"])).expect("held");
    assert_eq!(desk.approve("olga", approved), Ok(Said::Approved));
    assert_eq!(desk.approve("olga", half), Ok(Said::Counted(1)));
    let begin = |name: &'static str| desk.write(move |tx| Ok(store::begin_generation(tx, &[name.to_owned()])?));
    assert_eq!(begin("one"), Some(3));
    assert_eq!(begin("one"), None, "the same other history is no news");
    assert_eq!(desk.write(|tx| Ok(store::begin_generation(tx, &[])?)), None);
    let looked = desk.write(move |tx| Ok(store::known(tx, approved).expect("it is there")));
    assert_eq!((looked.shown, looked.decided_by), (None, None), "what was approved then was another text");
    for id in [approved, pending, half] {
        assert_eq!(desk.status(id), Status::Unknown);
        refused(desk.apply(id), DenialCode::ChangeDecided);
    }
    assert_eq!(desk.told(), "old");
    let half = desk.submit("olga", ChangeKind::EnabledTools, json!(["read_file"])).expect("held");
    assert_eq!(desk.approve("adam", half), Ok(Said::Counted(1)), "a yes from before counts no more");
}

#[test]
fn change_pending_in_a_restored_record_can_be_decided() {
    let desk = Desk::new();
    let id = desk.persona("new");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    desk.write(|tx| Ok(store::begin_generation(tx, &["one".to_owned()])?));
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    desk.apply(id).expect("approved in this generation");
    assert_eq!(desk.told(), "new");
}

#[test]
fn state_error_while_applying_leaves_the_approval_unused() {
    let desk = Desk::new();
    let id = desk.persona("new");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    let policy = Arc::clone(&desk.policy);
    let failed = block_on(desk.state().write(move |tx| {
        let row = store::known(tx, id).expect("it is there");
        let approved = decide::approved(tx, &context(&policy, 1, &grounds()), &row).expect("approved");
        apply::apply(tx, &approved, &Prepared::Nothing).expect("applied");
        Err::<(), _>(decide::Error::State(ironclaw_state::Error::Stored("a full disk".to_owned())))
    }));
    failed.expect_err("the transaction was taken back");
    assert_eq!((desk.told().as_str(), desk.status(id)), ("old", Status::Approved));
    desk.apply(id).expect("nothing was used");
    assert_eq!(desk.told(), "new");
}

#[test]
fn anothers_wish_for_the_same_is_a_question_of_its_own() {
    let desk = Desk::under("[default]\nrequester_may_approve = false\n");
    let persona = || json!({ "instructions": "new" });
    let of_olga = desk.submit("olga", ChangeKind::Persona, persona()).expect("held");
    let of_adam = desk.submit("adam", ChangeKind::Persona, persona()).expect("held");
    assert_ne!(of_olga, of_adam, "with a reason and a requester of its own");
    refused(desk.approve("adam", of_adam), DenialCode::NotYoursToDecide);
    assert_eq!(desk.approve("adam", of_olga), Ok(Said::Approved));
}

#[test]
fn same_change_after_a_stale_one_is_a_new_request() {
    let desk = Desk::new();
    let stale = desk.persona("new");
    let other = desk.persona("other");
    assert_eq!(desk.approve("olga", other), Ok(Said::Approved));
    desk.apply(other).expect("applied");
    let fresh = desk.persona("new");
    assert_ne!(fresh, stale);
    assert_eq!(desk.status(stale), Status::Withdrawn);
    assert_eq!(desk.approve("olga", fresh), Ok(Said::Approved));
}

#[test]
fn check_that_fails_later_withdraws_the_change() {
    let desk = Desk::new();
    let id = desk.submit("olga", ChangeKind::CreateAgent, json!({ "name": "newcomer" })).expect("held");
    let again = desk.submit("adam", ChangeKind::CreateAgent, json!({ "name": "newcomer" })).expect("held");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
    desk.apply(id).expect("applied");
    refused(desk.approve("olga", again), DenialCode::ChangeStale);
    assert_eq!(desk.status(again), Status::Withdrawn);
}

#[test]
fn approval_by_a_revoked_token_is_void_and_can_be_repeated() {
    let desk = Desk::under("[default]\napprovals = 2\n");
    let id = desk.persona("new");
    let token = desk.token("adam");
    assert_eq!(desk.approve("adam", id), Ok(Said::Counted(1)));
    let olga = desk.person("olga");
    let revoke = move |tx: &mut WriteTx<'_>| {
        let current = "tok_0000000000000000".parse().expect("an id");
        Ok(registry::tokens::revoke(tx, &token, &current, olga.id).map(drop))
    };
    desk.write(revoke).expect("revoked");
    assert_eq!(desk.approve("anna", id), Ok(Said::Counted(1)));
    assert_eq!(desk.found_bad(), [DenialCode::ApproverProofLost]);
    assert_eq!(desk.approve("adam", id), Ok(Said::Approved), "with a token that is theirs");
}

#[test]
fn row_of_another_version_is_left_out_of_the_list() {
    let desk = Desk::new();
    let (bad, good) = (desk.persona("bad"), desk.persona("good"));
    desk.sql("UPDATE changes SET payload = '{\"of\":\"another version\"}' WHERE id = ?1", bad);
    let filter = store::Filter { statuses: vec![Status::Pending], agent: None, principal: None, limit: 10 };
    let listed = desk.write(move |tx| Ok(store::list(tx, &filter)?));
    assert_eq!(listed.iter().map(|row| row.id).collect::<Vec<_>>(), [good]);
}

#[test]
fn superseded_change_waits_for_no_decision() {
    let desk = Desk::new();
    let (first, second, third) = (desk.persona("first"), desk.persona("second"), desk.persona("third"));
    let tools = desk.submit("olga", ChangeKind::EnabledTools, json!(["read_file"])).expect("held");
    assert_eq!(desk.approve("olga", first), Ok(Said::Approved));
    desk.apply(first).expect("applied");
    let policy = Arc::clone(&desk.policy);
    let superseded = desk.write(move |tx| {
        let applied = store::known(tx, first).expect("it is there");
        decide::supersede(tx, &context(&policy, 1, &grounds()), &applied)
    });
    assert_eq!(superseded.iter().map(|row| row.id).collect::<Vec<_>>(), [second, third]);
    assert_eq!((desk.status(second), desk.status(third)), (Status::Withdrawn, Status::Withdrawn));
    assert_eq!(desk.status(tools), Status::Pending, "that one is as it was");
}

#[test]
fn approval_under_an_older_policy_is_void_after_a_start() {
    let mut desk = Desk::under("[default]\napprovals = 2\n");
    let id = desk.persona("new");
    assert_eq!(desk.approve("olga", id), Ok(Said::Counted(1)));
    desk.set_policy("");
    let policy = Arc::clone(&desk.policy);
    desk.write(move |tx| decide::recount(tx, &context(&policy, 1, &grounds())));
    let live =
        desk.write(move |tx| Ok(store::approvals(tx, id)?.into_iter().filter(|given| given.state == "live").count()));
    assert_eq!((live, desk.status(id)), (0, Status::Pending), "the one yes that is enough now has to be given now");
    assert_eq!(desk.approve("olga", id), Ok(Said::Approved));
}

#[test]
fn a_command_does_not_go_around_a_policy_that_asks_for_more() {
    let rule = |approvals, requester_may_approve, roles: &[Role]| Rule {
        roles: roles.to_vec(),
        approvals,
        requester_may_approve,
        expires_hours: 1,
    };
    let both = [Role::Owner, Role::Admin];
    let person = |role| Person { id: PersonId::new(), name: "ada".to_owned(), role, created_at: 0 };
    let code = |rule: Rule, role| {
        decide::direct(&rule, ChangeKind::Wiring, &person(role)).map(drop).map_err(|refusal| refusal.code)
    };
    assert_eq!(code(rule(2, true, &both), Role::Owner), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, false, &both), Role::Owner), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, true, &[Role::Owner]), Role::Admin), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, true, &both), Role::Member), Err(DenialCode::PolicyAsksForMore));
    assert_eq!(code(rule(1, true, &both), Role::Admin), Ok(()));
    let refused =
        decide::direct(&rule(2, true, &both), ChangeKind::Wiring, &person(Role::Owner)).expect_err("two are asked for");
    assert!(refused.hint.contains("ironctl change submit --kind wiring"), "{}", refused.hint);
}
