//! One sample of every shape of what waits for people, and of each decision. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, every, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{
    AgentId, CallId, ChangeId, ItemId, MessageId, PersonId, QuestionId, RequestId, SessionId, TurnId,
};
use ironclaw_contract::seam::seal::Label;
use ironclaw_operator::{
    Approvals, ArgumentSource, CallDetails, ChangeDetails, Class, Decider, Decision, DenialCode, Details, NamedPerson,
    NewAnswer, Origin, QuestionDetails, ReadsUntilAnswer, RequestReason, Requester, RequesterId, RequesterKind,
    ValueOrigin, ValueSource, Waiting, WaitingEntry, WaitingId, WaitingKind, WaitingList, WaitingStatus,
    WaitingTogether,
};
use serde_json::{Value, json};

const PAGE: &str = "EFFECT\n  This host runs http_fetch (class send).\n";

fn reason() -> RequestReason {
    RequestReason {
        reason: DenialCode::CallOutward,
        meaning: "The call sends a value out that no person typed.".to_owned(),
        decider: Decider::Principal,
        arguments: vec!["body".to_owned()],
    }
}

fn argument() -> ArgumentSource {
    ArgumentSource {
        argument: "url".to_owned(),
        origin: ValueOrigin {
            source: ValueSource::Typed,
            labels: vec![Label::UserSurfaceInput],
            item: Some(id::<ItemId>("itm", 1)),
            handle: Some("m12.url.1".to_owned()),
        },
    }
}

fn person() -> NamedPerson {
    NamedPerson { id: id::<PersonId>("per", 1), name: "ana".to_owned() }
}

/// Returns a rejected call.
fn call() -> Waiting {
    let entry = WaitingEntry {
        id: WaitingId::Call(id::<RequestId>("req", 1)),
        kind: WaitingKind::Call,
        status: WaitingStatus::Rejected,
        agent: Some("clerk".to_owned()),
        subject: "http_fetch".to_owned(),
        effect: "This host runs http_fetch (class send).".to_owned(),
        question: None,
        reasons: vec![reason()],
        requested_by: Requester {
            kind: RequesterKind::Agent,
            id: RequesterId::Agent(id::<AgentId>("agt", 1)),
            name: "clerk".to_owned(),
            on_behalf_of: Some(person()),
        },
        origin: Some(Origin {
            session: id::<SessionId>("ses", 1),
            turn: id::<TurnId>("trn", 1),
            message: Some(id::<MessageId>("msg", 1)),
            call: id::<CallId>("call", 1),
        }),
        shown_digest: Digest::of(PAGE.as_bytes()),
        approvals: Approvals { by: Vec::new(), needed: 1 },
        created_at: "2026-11-18T08:00:00.000Z".to_owned(),
        expires_at: "2026-11-19T08:00:00.000Z".to_owned(),
        decided_by: Some(person()),
        decided_at: Some("2026-11-18T08:05:00.000Z".to_owned()),
        ended_at: Some("2026-11-18T08:05:00.000Z".to_owned()),
        outcome: Some("not today".to_owned()),
        told: vec!["chat".to_owned()],
        yours: false,
        may_reject: false,
        details: Some(Details::Call(CallDetails {
            class: Class::Send,
            arguments: json!({ "url": "https://api.example/" }),
            origins: vec![argument()],
            position: 1,
            of: 2,
            together: Vec::new(),
            until_answer: None,
        })),
    };
    Waiting { summary: format!("{} was rejected by ana: not today", entry.id), entry, shown: PAGE.to_owned() }
}

fn reads() -> ReadsUntilAnswer {
    ReadsUntilAnswer { server: "notes".to_owned(), tools: vec!["notes__find".to_owned()], count: 20 }
}

/// Returns a call that reads, and that waits together with another one.
fn read() -> Waiting {
    let Waiting { entry, shown, summary } = call();
    let Some(Details::Call(details)) = entry.details else { panic!("a call") };
    let together = vec![id::<RequestId>("req", 1), id::<RequestId>("req", 2)];
    let details = CallDetails { class: Class::Read, together, until_answer: Some(reads()), ..details };
    Waiting { entry: WaitingEntry { details: Some(Details::Call(details)), ..entry }, shown, summary }
}

/// Returns a question that waits.
fn question() -> Waiting {
    let Waiting { entry, shown, .. } = call();
    let options = vec!["staging".to_owned(), "production".to_owned()];
    let entry = WaitingEntry {
        id: WaitingId::Question(id::<QuestionId>("qst", 1)),
        kind: WaitingKind::Question,
        status: WaitingStatus::Pending,
        subject: "ask_user_question".to_owned(),
        effect: "Agent \"clerk\" asks \"ana\" a question.".to_owned(),
        question: Some("Which environment?".to_owned()),
        reasons: Vec::new(),
        approvals: Approvals::default(),
        decided_by: None,
        decided_at: None,
        ended_at: None,
        outcome: None,
        yours: true,
        may_reject: true,
        details: Some(Details::Question(QuestionDetails { options, free_text: false, answer: None })),
        ..entry
    };
    let summary = format!("{} waits for you: `ironctl inbox`", entry.id);
    Waiting { entry, shown, summary }
}

/// Returns the question once its person has answered it.
fn answered() -> Waiting {
    let Waiting { entry, shown, .. } = question();
    let answer = Some(id::<MessageId>("msg", 2));
    let details = Some(Details::Question(QuestionDetails { options: Vec::new(), free_text: true, answer }));
    let entry = WaitingEntry { status: WaitingStatus::Done, yours: false, may_reject: false, details, ..entry };
    let summary = format!("{} was answered by ana", entry.id);
    Waiting { entry, shown, summary }
}

/// Returns a change of a person that is applied.
fn change() -> Waiting {
    let Waiting { entry, shown, .. } = call();
    let entry = WaitingEntry {
        id: WaitingId::Change(id::<ChangeId>("chg", 1)),
        kind: WaitingKind::Change,
        status: WaitingStatus::Done,
        agent: None,
        subject: "create_agent".to_owned(),
        effect: "Make agent \"scribe\".".to_owned(),
        reasons: Vec::new(),
        requested_by: Requester {
            kind: RequesterKind::Person,
            id: RequesterId::Person(person().id),
            name: person().name,
            on_behalf_of: None,
        },
        origin: None,
        approvals: Approvals { by: vec![person().id], needed: 1 },
        outcome: Some("agent scribe was made".to_owned()),
        told: Vec::new(),
        details: Some(Details::Change(ChangeDetails {
            before: Value::Null,
            after: json!({ "name": "scribe" }),
            reason: "for the minutes".to_owned(),
        })),
        ..entry
    };
    let summary = format!("{} was approved and is applied: agent scribe was made", entry.id);
    Waiting { entry, shown, summary }
}

pub(super) fn shapes() -> Vec<Shape> {
    let answer = |option: Option<u32>, text: Option<&str>| NewAnswer { option, text: text.map(str::to_owned) };
    let shapes = vec![
        shape("operator.request_reason", reason()),
        shape("operator.value_origin", argument().origin),
        shape("operator.argument_source", argument()),
        shape("operator.waiting_list", WaitingList { entries: vec![question().entry], more: true }),
        shape("operator.waiting.question", question()),
        shape("operator.waiting.answered", answered()),
        shape("operator.waiting.change", change()),
        shape("operator.waiting.unseen", Waiting { entry: WaitingEntry { details: None, ..call().entry }, ..call() }),
        shape("operator.waiting", call()),
        shape("operator.waiting.together", read()),
        shape("operator.reads_until_answer", reads()),
        shape(
            "operator.waiting_together",
            WaitingTogether {
                calls: vec![id::<RequestId>("req", 1), id::<RequestId>("req", 2)],
                shown: PAGE.to_owned(),
                shown_digest: Digest::of(PAGE.as_bytes()),
                until_answer: Some(reads()),
            },
        ),
        shape("operator.new_answer", answer(Some(2), None)),
        shape("operator.new_answer.text", answer(None, Some("staging"))),
    ];
    let decisions = every!(Decision {
        "operator.decision.approve": Decision::Approve(_) => Decision::Approve(Digest::of(PAGE.as_bytes()));
        "operator.decision.approve_until_answer": Decision::ApproveUntilAnswer(_)
            => Decision::ApproveUntilAnswer(Digest::of(PAGE.as_bytes()));
        "operator.decision.approve_together": Decision::ApproveTogether(_)
            => Decision::ApproveTogether(Digest::of(PAGE.as_bytes()));
        "operator.decision.reject_together": Decision::RejectTogether(_)
            => Decision::RejectTogether("not now".to_owned());
        "operator.decision.reject": Decision::Reject(_) => Decision::Reject("not now".to_owned());
        "operator.decision.answer": Decision::Answer(_) => Decision::Answer(answer(Some(2), None));
    });
    shapes.into_iter().chain(decisions).collect()
}
