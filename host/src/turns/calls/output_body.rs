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
    /// The arguments of its calls that the host writes, and that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// Arguments that a model wrote, and that only the host writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub call_id: CallId,
    /// Their names.
    pub arguments: Vec<String>,
}

impl LeftOut {
    /// Returns the list of the calls with such arguments; `arguments` has the names for each call.
    pub fn list(calls: &[Call], arguments: Vec<Vec<String>>) -> Vec<Self> {
        let each = calls.iter().map(|call| call.call_id).zip(arguments);
        each.filter(|(_, arguments)| !arguments.is_empty())
            .map(|(call_id, arguments)| Self { call_id, arguments })
            .collect()
    }

    /// Returns the remark for the model.
    pub fn remark(&self) -> String {
        format!("only the host writes {}; what you wrote there was left out.", self.arguments.join(", "))
    }
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
