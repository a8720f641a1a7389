//! `find_tools`: tools of MCP servers by loose words.

use crate::registry::tools::declared::{Argument, Declared, count, words};
use crate::registry::tools::find::FOUND_MAX;
use crate::registry::tools::place::{Place, RecordTool};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "find_tools";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Finds your tools of MCP servers by words about what you need, the best first, with their arguments. Then call \
            the tool by its name.",
        held: Held::Automatic("many tools of MCP servers"),
        place: Place::Record(RecordTool::FindTools),
        class: Class::Read,
        also: &[],
        reach: Reach::Contained,
        reversible: false,
        effect: "looks for tools of MCP servers about {query}",
        arguments: vec![
            Argument::free("query", words("Words, such as: send letter.")).required(),
            Argument::free("max", count(FOUND_MAX, "Most tools.")),
        ],
    };
    declared.into()
}
