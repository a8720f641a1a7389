//! `network_command`: a command that reaches granted hosts.

use super::run_command::{COMMAND_SECONDS_MAX, seconds};
use crate::registry::tools::declared::{Argument, Declared, words};
use crate::registry::tools::place::{OutsideTool, Place};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "network_command";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Runs a shell command as run_command does, and lets it reach the hosts that people granted to your commands. \
            Programs use their usual addresses, by the proxy that https_proxy names. Use run_command for all else: a person may have to \
            approve each network_command.",
        held: Held::Automatic("run_command and a host that is granted for commands"),
        place: Place::Outside(OutsideTool::NetworkCommand),
        class: Class::Exec,
        also: &[Class::Send],
        reach: Reach::Outside,
        reversible: false,
        effect: "runs {command} in a jail with the workspace, from which it reaches the hosts that are granted for commands",
        arguments: vec![
            Argument::floor("command", words("The command for /bin/sh -c.")).outward().required(),
            Argument::free("timeout_seconds", seconds(COMMAND_SECONDS_MAX)),
        ],
    };
    declared.into()
}
