//! `request_capability_change`: a request for any kind of change of the agent.

use super::skill_install;
use crate::registry::tools::declared::{Argument, Declared, reason};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::json;

pub const NAME: &str = "request_capability_change";

pub(super) fn tool() -> Tool {
    let kinds: Vec<_> = ChangeKind::for_agents().map(ChangeKind::name).chain([skill_install::NAME]).collect();
    let declared = Declared {
        name: NAME,
        description: "Proposes a change of you. A person decides.",
        held: Held::ByDefault,
        place: Place::Row,
        class: Class::Ask,
        also: &[],
        reach: Reach::Action,
        reversible: false,
        effect: "asks for a change of kind {kind}",
        arguments: vec![
            Argument::free("kind", json!({ "type": "string", "enum": kinds })).required(),
            Argument::free("payload", json!({ "type": ["object", "array"], "description": payloads() })).required(),
            Argument::free("reason", reason()).required(),
        ],
    };
    declared.into()
}

/// Returns the fields of a kind's payload for a model; `?` marks an optional one. `None` for a kind that no agent may propose.
///
/// Without the quotes of JSON, because a quote in a description costs two characters of each request.
pub const fn payload(kind: ChangeKind) -> Option<&'static str> {
    Some(match kind {
        ChangeKind::Persona => "{instructions}",
        ChangeKind::EnabledTools => "{add?,remove?:[names]}|[all names]",
        ChangeKind::Packages => "{apt,npm:[all names]}",
        ChangeKind::Wiring => "{channel,engage:all|pattern|none,pattern?}",
        ChangeKind::Permissions => {
            "{access?:everyone|members,grant?:[{identity,role:admin|member}],revoke?:[identities]}"
        }
        ChangeKind::Mounts => "[all {source,target?,read_only?}]",
        ChangeKind::CreateAgent => "{name,persona?,enabled_tools?,members?,wirings?}",
        ChangeKind::McpAccess => "{server,tools?}",
        ChangeKind::McpRegister => "{name,url,headers?:[{name,secret}]} or {name,command}",
        ChangeKind::Egress => "{host,methods,paths?}",
        ChangeKind::Destinations => "{name,channel,address}|{name,agent}",
        ChangeKind::McpConfirm
        | ChangeKind::Settings
        | ChangeKind::Schedule
        | ChangeKind::Groups
        | ChangeKind::Skills => return None,
    })
}

/// Returns the descriptions of the payloads of all kinds.
fn payloads() -> String {
    let told = ChangeKind::ALL.iter().filter_map(|kind| payload(*kind).map(|payload| format!("{kind} {payload}")));
    told.chain([format!("{} {{skill,version}}", skill_install::NAME)]).collect::<Vec<_>>().join("; ")
}
