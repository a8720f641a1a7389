//! `ask_user_question`: a question to the person of the turn.

use crate::registry::tools::declared::{Argument, Declared, words};
use crate::registry::tools::place::Place;
use crate::registry::tools::tool::{Held, Tool};
use ironclaw_judge::Class;
use ironclaw_judge::manifest::Reach;
use serde_json::json;

pub const NAME: &str = "ask_user_question";
/// Most options of a question.
pub const QUESTION_OPTIONS_MAX: usize = 8;

pub(super) fn tool() -> Tool {
    let declared = Declared {
        name: NAME,
        description: "Asks the person a question when you cannot go on without their choice. The answer comes as a later message.",
        held: Held::EnabledUnnamed,
        place: Place::Row,
        class: Class::Ask,
        also: &[],
        reach: Reach::Action,
        reversible: false,
        effect: "asks the person {question}",
        arguments: vec![
            Argument::free("question", words("The question.")).required(),
            Argument::free(
                "options",
                json!({
                    "type": "array",
                    "maxItems": QUESTION_OPTIONS_MAX,
                    "items": { "type": "string", "minLength": 1 },
                    "description": "Short answers to choose from.",
                }),
            ),
            Argument::free(
                "allow_freeform",
                json!({
                    "type": "boolean",
                    "description": "True if the person may type another answer.",
                }),
            ),
        ],
    };
    declared.into()
}
