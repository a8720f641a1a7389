//! One sample of every shape about proposed changes. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::ids::ChangeId;
use ironclaw_contract::seam::change::{ChangeKind, Payload};
use ironclaw_operator::{NewChange, SubmittedChange, WaitingStatus};
use serde_json::json;

pub(super) fn shapes() -> Vec<Shape> {
    let new = NewChange {
        kind: ChangeKind::Persona,
        agent: Some("clerk".to_owned()),
        payload: Payload::try_from(json!({"instructions": "Be kind."})).expect("an object"),
        reason: "it is too curt".to_owned(),
    };
    let submitted = SubmittedChange {
        id: id::<ChangeId>("chg", 1),
        status: WaitingStatus::Pending,
        again: true,
        yours: true,
        waits_for: "an owner or admin of this host".to_owned(),
    };
    vec![
        shape("operator.new_change", new.clone()),
        shape("operator.new_change.bare", NewChange { agent: None, ..new }),
        shape("operator.submitted_change", submitted),
    ]
}
