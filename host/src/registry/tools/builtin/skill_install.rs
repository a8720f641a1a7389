//! `skill_install`: a request for a skill by its name.

use crate::registry::tools::declared::{Argument, Declared, object, reason, words};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::Value;

pub const NAME: &str = "skill_install";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Proposes to install a skill by name. A person sees its content and decides.",
        held: Held::EnabledUnnamed,
        place: Place::Row,
        class: Class::Ask,
        also: &[],
        reach: Reach::Action,
        reversible: false,
        effect: "asks for the skill {payload}",
        arguments: vec![Argument::free("payload", payload()).required(), Argument::free("reason", reason())],
    };
    declared.into()
}

fn payload() -> Value {
    let mut skill =
        object([("skill", true, words("Name of the skill.")), ("version", true, words("Its version, or latest."))]);
    skill["description"] = "The skill. The host looks up its content itself.".into();
    skill
}
