//! A sample of the report about calls and requests. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::ids::RequestId;
use ironclaw_operator::{
    Class, ClassCount, CodeCount, DenialCode, LeftOut, LeftOutOfReport, Report, ReportedCalls, ReportedChange,
    ReportedRequests, RuleCount, SavedRequest, SavingChange, StatusCount, UnaskedRule, WaitingStatus,
};

fn change() -> ReportedChange {
    let sends = "This host runs http_fetch (class send): it sends \"POST\" \"https://api.example/notes\".";
    let example = |number| SavedRequest {
        request: id::<RequestId>("req", number),
        created_at: time(25),
        effect: sends.to_owned(),
    };
    ReportedChange {
        change: SavingChange::Allowance,
        agent: "clerk".to_owned(),
        person: Some("ana".to_owned()),
        effect: "ana permits calls of http_fetch with these fields, 9 within 30d".to_owned(),
        command: "ironctl allowance add clerk http_fetch --field method=POST --field url=https://api.example/notes \
                  --count 9 --until 30d"
            .to_owned(),
        saves: 9,
        examples: vec![example(1), example(2)],
    }
}

fn time(day: u8) -> String {
    format!("2026-11-{day}T08:00:00.000Z")
}

fn calls() -> ReportedCalls {
    let classes = [(Class::Read, 120), (Class::Write, 61), (Class::Send, 22), (Class::Exec, 11)];
    let unasked = [
        (UnaskedRule::Contained, 120),
        (UnaskedRule::Read, 36),
        (UnaskedRule::Scope, 11),
        (UnaskedRule::Allowance, 5),
        (UnaskedRule::Typed, 4),
    ];
    let refused = [(Some(DenialCode::CallSchedule), 6), (Some(DenialCode::CallRejected), 3), (None, 1)];
    ReportedCalls {
        total: 223,
        classes: classes.map(|(class, calls)| ClassCount { class, calls }).to_vec(),
        unasked: unasked.map(|(rule, calls)| RuleCount { rule, calls }).to_vec(),
        asked: 35,
        refused: refused.map(|(code, calls)| CodeCount { code, calls }).to_vec(),
        not_made: 2,
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    let statuses = [
        (WaitingStatus::Pending, 2),
        (WaitingStatus::Done, 17),
        (WaitingStatus::Failed, 1),
        (WaitingStatus::Rejected, 3),
        (WaitingStatus::Expired, 2),
    ];
    let requests = ReportedRequests {
        total: 25,
        tasks: 12,
        task_max: 4,
        statuses: statuses.map(|(status, requests)| StatusCount { status, requests }).to_vec(),
        decided: 21,
        median_ms: Some(35_120),
        ninetieth_ms: Some(412_000),
    };
    let left_out = [(LeftOutOfReport::ConversationsRemoved, 1), (LeftOutOfReport::AlwaysAsked, 4)];
    let report = Report {
        since: time(18),
        until: time(25),
        begins_later: false,
        person: None,
        agent: None,
        tasks: 80,
        calls: calls(),
        requests,
        changes: vec![change()],
        left_out: left_out.map(|(part, count)| LeftOut { part, count }).to_vec(),
    };
    vec![
        shape("operator.reported_calls", report.calls.clone()),
        shape("operator.class_count", report.calls.classes[0].clone()),
        shape("operator.rule_count", report.calls.unasked[0].clone()),
        shape("operator.code_count", report.calls.refused[0].clone()),
        shape("operator.reported_requests", report.requests.clone()),
        shape("operator.status_count", report.requests.statuses[0].clone()),
        shape("operator.reported_change", change()),
        shape("operator.saved_request", change().examples[0].clone()),
        shape("operator.left_out", report.left_out[0].clone()),
        shape("operator.report", report),
    ]
}
