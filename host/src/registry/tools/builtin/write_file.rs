//! `write_file`: a text file of the workspace, written whole or longer.

use crate::registry::tools::declared::{Argument, Declared, path};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::json;

pub const NAME: &str = "write_file";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Writes a text file, with the directories above it.",
        held: Held::ByDefault,
        place: Place::Jail,
        class: Class::Write,
        also: &[],
        reach: Reach::Contained,
        reversible: true,
        effect: "writes {path} in its workspace",
        arguments: vec![
            Argument::free("path", path()).required(),
            Argument::content("content", json!({ "type": "string" })).required(),
            Argument::free("append", json!({ "type": "boolean", "description": "Add to the end." })),
        ],
    };
    declared.into()
}
