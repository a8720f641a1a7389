//! `schedule_manage`: the schedules that the agent asked for on behalf of the person of its turn.

use crate::registry::tools::declared::{Argument, Declared, one_of, text};
use crate::registry::tools::place::{Place, RecordTool};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "schedule_manage";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Lists the schedules that you asked for, or pauses, resumes or removes one. Ask for a new one with schedule_task.",
        held: Held::EnabledUnnamed,
        place: Place::Record(RecordTool::ManageSchedules),
        class: Class::Write,
        also: &[],
        reach: Reach::Contained,
        reversible: false,
        effect: "{verb} of its schedule {id}",
        arguments: vec![
            Argument::free("verb", one_of(&["list", "pause", "resume", "remove"], "What to do.")).required(),
            Argument::free("id", text("The schedule, by its id or name; for all but list.")),
        ],
    };
    declared.into()
}
