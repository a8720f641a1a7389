//! `recall`: notes of the memory of the agent.

use crate::registry::tools::declared::{Argument, Declared, count, words};
use crate::registry::tools::place::{Place, RecordTool};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "recall";
/// Most notes of one call.
pub const RECALLED_MAX: usize = 20;

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Finds notes by words, best first.",
        held: Held::ByDefault,
        place: Place::Record(RecordTool::Recall),
        class: Class::Read,
        also: &[],
        reach: Reach::Contained,
        reversible: true,
        effect: "looks for notes about {query}",
        arguments: vec![
            Argument::free("query", words("Words.")).required(),
            Argument::free("max", count(RECALLED_MAX, "Most notes.")),
        ],
    };
    declared.into()
}
