//! `read_skill`: a text of a verified skill, which people approved.

use crate::registry::tools::declared::{Argument, Declared, words};
use crate::registry::tools::place::{Place, RecordTool};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "read_skill";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Reads a text of one of your skills: SKILL.md, or a file of references that it names.",
        held: Held::Automatic("a skill"),
        place: Place::Record(RecordTool::ReadSkill),
        class: Class::Read,
        also: &[],
        reach: Reach::Contained,
        reversible: true,
        effect: "reads {path} of the skill {skill}",
        arguments: vec![
            Argument::free("skill", words("Name of the skill.")).required(),
            Argument::free("path", words("The file; SKILL.md if absent.")),
        ],
    };
    declared.into()
}
