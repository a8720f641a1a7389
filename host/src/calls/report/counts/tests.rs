use super::*;
use ironclaw_contract::ids::MessageId;

fn alike(state: CallState, runs: Runs, class: Class) -> AlikeCalls {
    AlikeCalls {
        class: Some(class),
        runs: Some(runs),
        state,
        code: None,
        principal: Principal::Person,
        is_asked: false,
        is_allowed: false,
        is_covered: false,
        is_lifted: false,
        takes_typed: false,
        takes_returned: false,
        count: 1,
    }
}

fn sent() -> AlikeCalls {
    alike(CallState::Done, Runs::Await, Class::Send)
}

#[test]
fn refused_asked_or_unmade_call_ran_by_no_rule() {
    let refused = AlikeCalls { code: Some(DenialCode::CallScope), class: None, runs: None, ..sent() };
    let counted = calls(&[
        AlikeCalls { state: CallState::Refused, count: 3, ..refused.clone() },
        AlikeCalls { state: CallState::Refused, code: None, is_asked: true, ..refused },
        AlikeCalls { is_asked: true, count: 2, ..sent() },
        AlikeCalls { state: CallState::Asked, ..sent() },
        AlikeCalls { state: CallState::Void, is_asked: true, ..sent() },
        AlikeCalls { state: CallState::Void, ..sent() },
        AlikeCalls { state: CallState::Permitted, ..sent() },
    ]);
    assert_eq!((counted.total, counted.asked, counted.not_made, counted.unasked), (10, 4, 2, Vec::new()));
    let refused: Vec<_> = counted.refused.iter().map(|one| (one.code, one.calls)).collect();
    assert_eq!(refused, [(Some(DenialCode::CallScope), 3), (None, 1)]);
    assert_eq!(counted.classes, [ClassCount { class: Class::Send, calls: 6 }]);
}

#[test]
fn each_call_without_a_question_has_one_rule() {
    let by = |principal| AlikeCalls { principal, ..sent() };
    for (calls, expected) in [
        (alike(CallState::Failed, Runs::Local, Class::Exec), UnaskedRule::Contained),
        (alike(CallState::Done, Runs::Host, Class::Write), UnaskedRule::Contained),
        (alike(CallState::Done, Runs::Row, Class::Ask), UnaskedRule::Action),
        (AlikeCalls { is_allowed: true, takes_typed: true, ..sent() }, UnaskedRule::Allowance),
        (AlikeCalls { is_covered: true, ..by(Principal::Schedule) }, UnaskedRule::Flow),
        (AlikeCalls { is_lifted: true, takes_typed: true, ..sent() }, UnaskedRule::Mode),
        (by(Principal::Schedule), UnaskedRule::Schedule),
        (by(Principal::Agent), UnaskedRule::Group),
        (AlikeCalls { takes_typed: true, takes_returned: true, ..sent() }, UnaskedRule::Typed),
        (AlikeCalls { takes_returned: true, ..sent() }, UnaskedRule::Returned),
        (AlikeCalls { class: Some(Class::Read), ..by(Principal::Schedule) }, UnaskedRule::Read),
        (alike(CallState::Unknown, Runs::Await, Class::Read), UnaskedRule::Read),
        (alike(CallState::Queued, Runs::Await, Class::Send), UnaskedRule::Scope),
    ] {
        assert_eq!(super::calls(std::slice::from_ref(&calls)).unasked, [RuleCount { rule: expected, calls: 1 }]);
    }
}

#[test]
fn time_to_a_decision_counts_decided_requests_alone() {
    let (one, other) = (MessageId::new(), MessageId::new());
    let request = |status, root, decided_at| Reported { status, root, created_at: 1_000, decided_at };
    let none = requests(&[request(WaitingStatus::Pending, one, None)]);
    assert_eq!((none.total, none.decided, none.median_ms, none.ninetieth_ms), (1, 0, None, None));
    let counted = requests(&[
        request(WaitingStatus::Withdrawn, one, Some(9_000)),
        request(WaitingStatus::Rejected, one, Some(5_000)),
        request(WaitingStatus::Done, one, Some(2_000)),
        // The clock went back.
        request(WaitingStatus::Done, other, Some(500)),
        request(WaitingStatus::Expired, other, None),
    ]);
    assert_eq!((counted.total, counted.tasks, counted.task_max, counted.decided), (5, 2, 3, 3));
    assert_eq!((counted.median_ms, counted.ninetieth_ms), (Some(1_000), Some(4_000)));
    let statuses: Vec<_> = counted.statuses.iter().map(|one| (one.status.name(), one.requests)).collect();
    assert_eq!(statuses, [("done", 2), ("rejected", 1), ("expired", 1), ("withdrawn", 1)]);
}
