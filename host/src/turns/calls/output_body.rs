//! The body of an output: the text of a model, and the calls that it wants.

use ironclaw_contract::ids::CallId;
use ironclaw_model::Cut;
use serde::{Deserialize, Serialize};

/// The body of an output item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputBody {
    /// The text of the model.
    pub text: String,
    /// The calls that it wants.
    pub calls: Vec<Call>,
    /// The reason why the text is not the whole answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

impl OutputBody {
    /// Returns the text for a person: with a mark, if it is not the whole answer.
    pub fn shown(self) -> String {
        self.text + self.cut.map_or("", Cut::mark)
    }
}

/// A call in the body of an output. The arguments are exactly the canonical bytes that were hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its id, made by the host.
    pub call_id: CallId,
    /// The tool, as the model named it.
    pub tool: String,
    pub arguments: String,
}
