//! `read_file`: a text file of the workspace.

use crate::registry::tools::declared::{Argument, Declared, path};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::json;

pub const NAME: &str = "read_file";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Reads a text file.",
        held: Held::ByDefault,
        place: Place::Jail,
        class: Class::Read,
        also: &[],
        reach: Reach::Contained,
        reversible: true,
        effect: "reads {path} in its workspace",
        arguments: vec![
            Argument::free("path", path()).required(),
            Argument::free("offset", json!({ "type": "integer", "minimum": 0, "description": "Bytes to skip." })),
            Argument::free("limit", json!({ "type": "integer", "minimum": 1, "description": "Most bytes." })),
        ],
    };
    declared.into()
}
