//! Golden samples of the calls of a message, of bounds and of allowances. See `waiting` for what waits for people.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, RequestId};
use ironclaw_operator::{
    Allowance, AllowanceDraft, AllowanceOffer, AllowancePage, AllowanceStatus, Bound, CallState, Class, DenialCode,
    MessageCall, NewAllowance, NewRequestReset, Principal, PushDiff, RequestReset,
};
use serde_json::json;
use std::collections::BTreeMap;

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

fn allowance() -> Allowance {
    Allowance {
        id: 1,
        status: AllowanceStatus::Active,
        person: "ana".to_owned(),
        agent: "clerk".to_owned(),
        principal: Principal::Person,
        tools: BTreeMap::from([("http_fetch".to_owned(), Digest::of(b"manifest"))]),
        until_answer_to: None,
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
    let diff =
        PushDiff { digest: Digest::of(b"diff"), text: "  + | added\n".to_owned(), next: Some(4000), left_off: 0 };
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
        shape("operator.new_request_reset", NewRequestReset { person: Some("ana".to_owned()) }),
        shape("operator.new_request_reset.bare", NewRequestReset::default()),
        shape(
            "operator.request_reset",
            RequestReset { agent: "clerk".to_owned(), person: Some("ana".to_owned()), requests: 6 },
        ),
        shape("operator.bound", bound()),
        shape("operator.bound.bare", Bound::new("schedules of one person", 1000, 1000, "remove some")),
        shape("operator.push_diff", diff.clone()),
        shape("operator.push_diff.end", PushDiff { next: None, left_off: 7, ..diff }),
    ]
}
