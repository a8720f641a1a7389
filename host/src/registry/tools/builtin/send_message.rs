//! `send_message`: a message to a destination. The host writes `recipient` and `thread` before the judgement: the approved address behind
//! the name. The execution compares them.

use crate::registry::tools::declared::{Argument, Declared, by_host, words};
use crate::registry::tools::place::{OutsideTool, Place};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "send_message";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Sends a message to one of your destinations, beside your answer in this conversation.",
        held: Held::Automatic("a destination"),
        place: Place::Outside(OutsideTool::SendMessage),
        class: Class::Send,
        also: &[],
        reach: Reach::Outside,
        reversible: false,
        effect: "sends a message to {to}, which is {recipient}: {text}",
        arguments: vec![
            Argument::floor("to", words("Name of the destination.")).outward().required(),
            Argument::content("text", words("The message.")).outward().required(),
            Argument::floor("recipient", by_host("string", "The address.")),
            Argument::floor("thread", by_host("string", "The thread of the address.")),
        ],
    };
    declared.into()
}
