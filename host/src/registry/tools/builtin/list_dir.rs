//! `list_dir`: the names in a directory of the workspace.

use crate::registry::tools::declared::{Argument, Declared, path};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "list_dir";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Lists a directory.",
        held: Held::ByDefault,
        place: Place::Jail,
        class: Class::Read,
        also: &[],
        reach: Reach::Contained,
        reversible: true,
        effect: "lists {path} in its workspace",
        arguments: vec![Argument::free("path", path())],
    };
    declared.into()
}
