//! `remember`: a note in the memory of the agent.

use crate::registry::tools::declared::{Argument, Declared};
use crate::registry::tools::place::{Place, RecordTool};
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::json;

pub const NAME: &str = "remember";
/// Bytes of one note of the memory: a page. A longer text belongs in a file.
pub const REMEMBERED_BYTES_MAX: usize = 4 * 1024;

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Keeps a note for later conversations with anyone.",
        held: Held::ByDefault,
        place: Place::Record(RecordTool::Remember),
        class: Class::Write,
        also: &[],
        reach: Reach::Contained,
        reversible: false,
        effect: "keeps a note: {text}",
        arguments: vec![
            Argument::content(
                "text",
                json!({
                    "type": "string",
                    "minLength": 1,
                    "maxLength": REMEMBERED_BYTES_MAX,
                    "description": "The note, complete in itself.",
                }),
            )
            .required(),
        ],
    };
    declared.into()
}
