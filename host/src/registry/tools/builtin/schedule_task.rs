//! `schedule_task`: a request for a schedule.

use crate::registry::tools::declared::{Argument, Declared, text, words};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_contract::seam::limits::ENTRIES_MAX;
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::json;

pub const NAME: &str = "schedule_task";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Asks for a schedule: you get the prompt at one time (run_at), repeatedly (recurrence), or both. A person decides.",
        held: Held::Enabled,
        place: Place::Row,
        class: Class::Write,
        also: &[],
        reach: Reach::Action,
        reversible: false,
        effect: "schedules {prompt}",
        arguments: vec![
            Argument::content("prompt", words("The prompt that you get, complete in itself.")).required(),
            Argument::free(
                "run_at",
                text("One time, or with recurrence the first time: RFC 3339, or a local time of the zone."),
            ),
            Argument::free("recurrence", text("hourly, daily, 90m, 2d or a cron expression of five fields.")),
            Argument::free("zone", text("Time zone, such as Europe/Berlin.")),
            Argument::free(
                "may",
                json!({
                    "type": "array",
                    "maxItems": ENTRIES_MAX,
                    "items": { "type": "string", "minLength": 1 },
                    "description": "Tools and classes (write, send, exec) that a run needs beside reading.",
                }),
            ),
        ],
    };
    declared.into()
}
