//! `search_files`: lines of files of the workspace.

use crate::registry::tools::declared::{Argument, Declared, count, path, words};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "search_files";
/// Most results of one call.
const HITS_MAX: u32 = 200;

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Finds lines in files.",
        held: Held::ByDefault,
        place: Place::Jail,
        class: Class::Read,
        also: &[],
        reach: Reach::Contained,
        reversible: true,
        effect: "searches its workspace for {pattern}",
        arguments: vec![
            Argument::free("pattern", words("Regular expression.")).required(),
            Argument::free("path", path()),
            Argument::free("max", count(HITS_MAX, "Most lines.")),
        ],
    };
    declared.into()
}
