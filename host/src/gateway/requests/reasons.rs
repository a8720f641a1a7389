//! The reasons of a request, as the record has them, and the origins of its values.
//!
//! Pure. See [`ironclaw_judge::call::Reason`].

use crate::registry::tools::catalogue::Terms;
use ironclaw_judge::call::Reason;
use ironclaw_judge::inputs::{ArgumentOrigin, OutputOf};
use ironclaw_operator::{ArgumentSource, Decider, DenialCode, RequestReason, ValueOrigin, ValueSource};
use ironclaw_store::tables::requests::Row;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A reason why a call needs people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredReason {
    /// The code of the stage that found it.
    pub code: DenialCode,
    /// True if people with the roles of the policy remove it, and false if the person of the turn does.
    pub by_policy: bool,
    /// The arguments that it concerns.
    pub arguments: Vec<String>,
}

impl From<&Reason> for StoredReason {
    fn from(reason: &Reason) -> Self {
        let by_policy = reason.decider() == Decider::Policy;
        Self { code: reason.code, by_policy, arguments: reason.arguments.clone() }
    }
}

impl StoredReason {
    /// Returns whether this approved reason covers a reason of a later judgement.
    pub fn covers(&self, reason: &Reason) -> bool {
        self.code == reason.code && reason.arguments.iter().all(|argument| self.arguments.contains(argument))
    }

    /// Returns the view for the API.
    pub fn view(&self) -> RequestReason {
        RequestReason {
            reason: self.code,
            meaning: self.code.meaning().to_owned(),
            decider: if self.by_policy { Decider::Policy } else { Decider::Principal },
            arguments: self.arguments.clone(),
        }
    }
}

/// Returns the codes of the reasons of a request; none of a row that this version did not write.
pub fn codes(row: &Row) -> Vec<DenialCode> {
    codes_in(&row.reasons)
}

fn codes_in(reasons: &str) -> Vec<DenialCode> {
    let reasons: Vec<StoredReason> = serde_json::from_str(reasons).unwrap_or_default();
    reasons.into_iter().map(|reason| reason.code).collect()
}

/// Returns whether recorded reasons have one for a grant.
pub(super) fn has_grant_reason(reasons: &str) -> bool {
    codes_in(reasons).into_iter().any(is_for_grant)
}

/// Returns whether a reason with this code needs a grant of a host, or a decision of people in its place.
pub const fn is_for_grant(code: DenialCode) -> bool {
    matches!(
        code,
        DenialCode::EgressNewHost
            | DenialCode::EgressNewMethod
            | DenialCode::EgressNewPath
            | DenialCode::EgressCredential
            | DenialCode::EgressUpload
    )
}

/// Returns the origins of the values that leave with a call.
pub fn origins(terms: &Terms, arguments: &Map<String, Value>, of: OutputOf<'_>) -> Vec<ArgumentOrigin> {
    let is_outward = |name: &str| terms.manifest.arguments.get(name).is_some_and(|argument| argument.outward);
    // A server gets every argument of a call.
    let leaves = |name: &str| terms.of_server.is_some() || is_outward(name);
    ArgumentOrigin::list(arguments, leaves, of)
}

/// Returns the view of an origin for the API.
pub fn origin_view(origin: &ArgumentOrigin) -> ArgumentSource {
    let source = match (origin.typed, origin.handle) {
        (true, _) => ValueSource::Typed,
        (false, Some(_)) => ValueSource::Returned,
        (false, None) => ValueSource::Model,
    };
    let ArgumentOrigin { argument, labels, item, handle, .. } = origin.clone();
    ArgumentSource {
        argument,
        origin: ValueOrigin { source, labels: labels.list(), item, handle: handle.map(|handle| handle.to_string()) },
    }
}
