//! `send_file`: a file for a destination or the conversation. The host copies it when the call is made, and writes its facts and the
//! address before the judgement. The execution sends the copy.

use crate::registry::tools::declared::{Argument, Declared, by_host, path, words};
use crate::registry::tools::place::{OutsideTool, Place};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;

pub const NAME: &str = "send_file";

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Sends a file of the workspace into this conversation, or to one of your destinations. The host copies it now; a \
            person decides about the copy.",
        held: Held::EnabledUnnamed,
        place: Place::Outside(OutsideTool::SendFile),
        class: Class::Send,
        also: &[],
        reach: Reach::Outside,
        reversible: false,
        effect: "sends the file {name} of type {type} with {size} bytes and the digest {digest} to {recipient}: {text}",
        arguments: vec![
            Argument::free("path", path()).required(),
            Argument::floor("to", words("Name of the destination; this conversation if absent.")).outward(),
            Argument::content("text", words("Words beside the file.")).outward(),
            Argument::floor("recipient", by_host("string", "The address.")),
            Argument::floor("thread", by_host("string", "The thread of the address.")),
            Argument::content("name", by_host("string", "The name of the file.")).outward(),
            Argument::free("type", by_host("string", "Its type.")),
            Argument::free("size", by_host("integer", "Its size.")),
            Argument::content("digest", by_host("string", "Its digest.")).outward(),
        ],
    };
    declared.into()
}
