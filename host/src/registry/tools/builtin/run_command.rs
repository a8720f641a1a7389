//! `run_command`: a command in the jail, with the programs of the machine.

use crate::registry::tools::declared::{Argument, Declared, words};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::{Value, json};

pub const NAME: &str = "run_command";
/// Most seconds of a command.
pub const COMMAND_SECONDS_MAX: u32 = 120;

/// Seconds of a command without a limit of its own.
const SECONDS_USUAL: u32 = 30;

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Runs a shell command in the workspace with the programs in /usr, and returns its output and exit code. \
            There is no network; nothing outlives the call; /tmp is small and nothing in the workspace can be executed \
            directly, so name the interpreter: sh x.sh, python3 x.py.",
        held: Held::Enabled,
        place: Place::Jail,
        class: Class::Exec,
        also: &[],
        reach: Reach::Contained,
        reversible: false,
        effect: "runs {command} in its jail",
        arguments: vec![
            Argument::free("command", words("The command for /bin/sh -c.")).required(),
            Argument::free("timeout_seconds", seconds(SECONDS_USUAL)),
        ],
    };
    declared.into()
}

/// Returns the schema of the time limit of a command.
pub(super) fn seconds(usual: u32) -> Value {
    json!({
        "type": "integer",
        "minimum": 1,
        "maximum": COMMAND_SECONDS_MAX,
        "description": format!("Time limit in seconds; {usual} if absent."),
    })
}
