//! The reasons of a request, and the origins of its values.
//!
//! Pure. See [`ironclaw_judge::call::Reason`].

use crate::registry::tools::catalogue::Terms;
use ironclaw_judge::inputs::{ArgumentOrigin, OutputOf};
use ironclaw_operator::{ArgumentSource, DenialCode, ValueOrigin, ValueSource};
use ironclaw_store::tables::waiting::requests::Row;
use serde_json::{Map, Value};

/// Returns the codes of the reasons of a request.
pub fn codes(row: &Row) -> Vec<DenialCode> {
    row.own.reasons.iter().map(|reason| reason.code).collect()
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
