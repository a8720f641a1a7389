//! One sample of every shape about changes and deciders. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::{ChangeKind, Payload};
use ironclaw_operator::{
    Approvals, Change, ChangeOrigin, ChangeStatus, ChangeSummary, ChangedAgent, Changes, Decision, NewChange,
    Rejection, Requester, RequesterId, RequesterKind, SubmittedChange,
};
use serde_json::{Value, json};

pub(super) fn shapes() -> Vec<Shape> {
    let (change, person) = (id::<ChangeId>("chg", 1), id::<PersonId>("per", 1));
    let agent = ChangedAgent { id: id::<AgentId>("agt", 1), name: "clerk".to_owned() };
    let by_agent = Requester {
        kind: RequesterKind::Agent,
        id: RequesterId::Agent(agent.id),
        name: agent.name.clone(),
        on_behalf_of: Some(person),
    };
    let by_person = Requester {
        kind: RequesterKind::Person,
        id: RequesterId::Person(person),
        name: "Olga".to_owned(),
        on_behalf_of: None,
    };
    let origin = ChangeOrigin {
        session: id::<SessionId>("ses", 1),
        turn: id::<TurnId>("trn", 1),
        message: Some(id::<MessageId>("msg", 1)),
        call: id::<CallId>("call", 1),
    };
    let waits = Approvals { by: Vec::new(), needed: 1 };
    let (created, expires) = ("2026-11-18T08:00:00.000Z".to_owned(), "2026-11-25T08:00:00.000Z".to_owned());
    let shown = "EFFECT\n".to_owned();
    let waiting = Change {
        id: change,
        kind: ChangeKind::Persona,
        agent: Some(agent.clone()),
        status: ChangeStatus::Pending,
        before: json!({"instructions": "Be brief."}),
        after: json!({"instructions": "Be kind."}),
        requested_by: by_agent.clone(),
        origin: Some(origin.clone()),
        reason: "you asked me to be kinder".to_owned(),
        shown_digest: Digest::of(shown.as_bytes()),
        decided_by: None,
        decided_at: None,
        applied_at: None,
        outcome: None,
        shown: shown.clone(),
        approvals: waits.clone(),
        created_at: created.clone(),
        expires_at: expires.clone(),
    };
    let applied = Change {
        kind: ChangeKind::CreateAgent,
        agent: None,
        status: ChangeStatus::Applied,
        before: Value::Null,
        after: json!({"name": "scribe"}),
        requested_by: by_person,
        origin: None,
        decided_by: Some(person),
        decided_at: Some("2026-11-18T08:05:00.000Z".to_owned()),
        applied_at: Some("2026-11-18T08:05:00.000Z".to_owned()),
        outcome: Some("agent scribe was made".to_owned()),
        approvals: Approvals { by: vec![person], needed: 1 },
        ..waiting.clone()
    };
    let summary = ChangeSummary {
        id: change,
        kind: ChangeKind::Persona,
        agent: Some(agent.clone()),
        status: ChangeStatus::Pending,
        requested_by: by_agent.clone(),
        created_at: created,
        expires_at: expires,
        approvals: waits.clone(),
        yours: false,
        may_reject: true,
    };
    let payload = Payload::try_from(json!({"instructions": "Be kind."})).expect("an object");
    let new = NewChange {
        kind: ChangeKind::Persona,
        agent: Some("clerk".to_owned()),
        payload,
        reason: "it is too curt".to_owned(),
    };
    vec![
        shape("operator.change", waiting),
        shape("operator.change.applied", applied),
        shape("operator.changed_agent", agent),
        shape("operator.requester", by_agent),
        shape("operator.change_origin", origin),
        shape("operator.approvals", waits),
        shape("operator.changes", Changes { changes: vec![summary.clone()], more: true }),
        shape("operator.change_summary", summary),
        shape("operator.new_change", new.clone()),
        shape("operator.new_change.bare", NewChange { agent: None, ..new }),
        shape(
            "operator.submitted_change",
            SubmittedChange {
                id: change,
                status: ChangeStatus::Pending,
                again: true,
                yours: true,
                waits_for: "an owner or admin of this host".to_owned(),
            },
        ),
        shape("operator.decision", Decision { shown: Digest::of(shown.as_bytes()) }),
        shape("operator.rejection", Rejection { reason: "not now".to_owned() }),
    ]
}
