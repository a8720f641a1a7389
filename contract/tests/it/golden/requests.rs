//! Golden samples of approval requests and of the inbox.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, ChangeId, ItemId, MessageId, QuestionId, RequestId, SessionId, TurnId};
use ironclaw_contract::seam::seal::Label;
use ironclaw_operator::Principal;
use ironclaw_operator::{
    Allowance, AllowanceDraft, AllowanceOffer, AllowancePage, AllowanceStatus, ArgumentSource, Bound, CallRequest,
    CallRequests, CallState, Class, Decider, DenialCode, EntryId, EntryType, Inbox, InboxEntry, MessageCall,
    NewAllowance, NewAnswer, NewRequestReset, PushDiff, QuestionStatus, QuestionWhy, RequestReason, RequestReset,
    RequestStatus, ValueOrigin, ValueSource,
};
use serde_json::json;

pub(super) fn bound() -> Bound {
    Bound::new("requests of agent clerk for ana wait", 5, 5, "decide on them")
        .until("2026-01-02T00:00:00.000Z")
        .setting("approval.requests_waiting_max")
}

pub(super) fn call() -> MessageCall {
    MessageCall {
        bound: None,
        id: id::<CallId>("call", 1),
        tool: "http_fetch".to_owned(),
        class: Some(Class::Send),
        status: CallState::Asked,
        code: Some(DenialCode::CallScope),
        request: Some(id::<RequestId>("req", 1)),
        file: None,
    }
}

fn question_why() -> QuestionWhy {
    QuestionWhy {
        id: id::<QuestionId>("qst", 1),
        agent: "clerk".to_owned(),
        person: "ana".to_owned(),
        session_id: id::<SessionId>("ses", 1),
        message_id: id::<MessageId>("msg", 1),
        turn_id: id::<TurnId>("trn", 1),
        call_id: id::<CallId>("call", 1),
        status: QuestionStatus::Cancelled,
        created_at: "2026-11-18T08:00:00.000Z".to_owned(),
        expires_at: "2026-11-19T08:00:00.000Z".to_owned(),
        ended_at: Some("2026-11-18T09:00:00.000Z".to_owned()),
        ended_by: Some("ana".to_owned()),
        reason: Some("later".to_owned()),
        answer: Some(id::<MessageId>("msg", 2)),
        summary: "The question was cancelled.".to_owned(),
    }
}

fn allowance() -> Allowance {
    Allowance {
        id: 1,
        status: AllowanceStatus::Active,
        person: "ana".to_owned(),
        agent: "clerk".to_owned(),
        principal: Principal::Person,
        tool: "http_fetch".to_owned(),
        manifest: Digest::of(b"manifest"),
        fields: json!({ "method": "POST", "url": "https://api.example/notes" }),
        absent: vec!["headers".to_owned()],
        anything: vec!["body".to_owned()],
        lifts: vec![DenialCode::CallScope, DenialCode::CallOrigin],
        count: 5,
        used: 2,
        created_at: "2026-01-01T00:00:00.000Z".to_owned(),
        expires_at: "2026-01-08T00:00:00.000Z".to_owned(),
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    let reason = RequestReason {
        reason: DenialCode::CallOutward,
        meaning: "The call sends a value out that no person typed.".to_owned(),
        decider: Decider::Principal,
        arguments: vec!["body".to_owned()],
    };
    let origin = ArgumentSource {
        argument: "url".to_owned(),
        origin: ValueOrigin {
            source: ValueSource::Typed,
            labels: vec![Label::UserSurfaceInput],
            item: Some(id::<ItemId>("itm", 1)),
            handle: Some("m12.url.1".to_owned()),
        },
    };
    let entry = InboxEntry {
        id: EntryId::Call(id::<RequestId>("req", 1)),
        entry_type: EntryType::Call,
        agent: Some("clerk".to_owned()),
        status: "pending".to_owned(),
        effect: "This host runs http_fetch (class send).".to_owned(),
        arguments: Some(json!({ "url": "https://api.example/" })),
        origins: vec![origin.clone()],
        reasons: vec![reason.clone()],
        shown_digest: Digest::of(b"page"),
        created_at: "2026-01-01T00:00:00.000Z".to_owned(),
        expires_at: "2026-01-02T00:00:00.000Z".to_owned(),
        told: vec!["chat".to_owned()],
        yours: true,
        may_reject: true,
        session_id: None,
        question: None,
        options: None,
        free_text: None,
    };
    let change = InboxEntry {
        id: EntryId::Change(id::<ChangeId>("chg", 1)),
        entry_type: EntryType::Change,
        agent: None,
        effect: "mcp_register".to_owned(),
        arguments: None,
        origins: Vec::new(),
        reasons: Vec::new(),
        told: Vec::new(),
        ..entry.clone()
    };
    let question = InboxEntry {
        id: EntryId::Question(id::<QuestionId>("qst", 1)),
        entry_type: EntryType::Question,
        status: "waiting".to_owned(),
        effect: "Agent \"clerk\" asks \"ana\" a question.".to_owned(),
        session_id: Some(id::<SessionId>("ses", 1)),
        question: Some("Which environment?".to_owned()),
        options: Some(vec!["staging".to_owned(), "production".to_owned()]),
        free_text: Some(false),
        ..change.clone()
    };
    let diff =
        PushDiff { digest: Digest::of(b"diff"), text: "  + | added\n".to_owned(), next: Some(4000), left_off: 0 };
    let request = CallRequest {
        id: id::<RequestId>("req", 1),
        agent: "clerk".to_owned(),
        status: RequestStatus::Rejected,
        call_id: id::<CallId>("call", 1),
        tool: "http_fetch".to_owned(),
        class: Class::Send,
        session_id: id::<SessionId>("ses", 1),
        turn_id: id::<TurnId>("trn", 1),
        message_id: id::<MessageId>("msg", 1),
        requested_by: "ana".to_owned(),
        effect: entry.effect.clone(),
        arguments: entry.arguments.clone(),
        origins: vec![origin.clone()],
        reasons: vec![reason.clone()],
        shown: "page".to_owned(),
        shown_digest: Digest::of(b"page"),
        created_at: entry.created_at.clone(),
        expires_at: entry.expires_at.clone(),
        told: entry.told.clone(),
        yours: false,
        outcome: Some("not today".to_owned()),
        position: 1,
        of: 2,
    };
    let draft = AllowanceDraft {
        agent: "clerk".to_owned(),
        tool: "http_fetch".to_owned(),
        fields: json!({ "method": "POST", "url": "https://api.example/notes" }),
        count: 5,
        until: "7d".to_owned(),
    };
    let page = AllowancePage {
        shown: "page".to_owned(),
        shown_digest: Digest::of(b"page"),
        until: "2026-01-08T00:00:00.000Z".to_owned(),
        compared: 3,
        permitted: 2,
    };
    let offer = AllowanceOffer {
        draft: draft.clone(),
        messages: 3,
        days: 3,
        since: Some("2026-01-01T00:00:00.000Z".to_owned()),
        compared: 4,
        unread: 1,
        permitted: 3,
    };
    vec![
        shape("operator.allowance_draft", draft.clone()),
        shape("operator.allowance_page", page),
        shape("operator.allowance_offer", offer),
        shape("operator.new_allowance", NewAllowance { draft, shown: Digest::of(b"page") }),
        shape("operator.allowance", allowance()),
        shape("operator.message_call", call()),
        shape("operator.request_reason", reason),
        shape("operator.value_origin", origin.origin.clone()),
        shape("operator.argument_source", origin),
        shape("operator.entry_id", entry.id),
        shape("operator.entry_id.change", change.id),
        shape("operator.inbox", Inbox { entries: vec![entry.clone()], more: true }),
        shape("operator.call_requests", CallRequests { requests: vec![request.clone()], more: false }),
        shape("operator.new_request_reset", NewRequestReset { person: Some("ana".to_owned()) }),
        shape("operator.new_request_reset.bare", NewRequestReset::default()),
        shape(
            "operator.request_reset",
            RequestReset { agent: "clerk".to_owned(), person: Some("ana".to_owned()), requests: 6 },
        ),
        shape("operator.bound", bound()),
        shape("operator.bound.bare", Bound::new("schedules of one person", 1000, 1000, "remove some")),
        shape("operator.inbox_entry", entry),
        shape("operator.inbox_entry.change", change),
        shape("operator.entry_id.question", question.id),
        shape("operator.inbox_entry.question", question),
        shape("operator.question_why", question_why()),
        shape("operator.new_answer", NewAnswer { option: Some(2), text: None }),
        shape("operator.new_answer.text", NewAnswer { option: None, text: Some("staging".to_owned()) }),
        shape("operator.call_request", request),
        shape("operator.push_diff", diff.clone()),
        shape("operator.push_diff.end", PushDiff { next: None, left_off: 7, ..diff }),
    ]
}
