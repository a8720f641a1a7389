//! The body of an output: the text of a model, and the calls that it wants.

use ironclaw_contract::ids::CallId;
use ironclaw_judge::inputs::Input;
use ironclaw_model::{Attached, Cut};
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
    /// The state that its provider attached, for this provider alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
    /// True if the text is, or ends with, a call of a tool that its server did not read; nothing ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_written_call: bool,
}

/// The line of the host below a text with a call, for the person.
pub const WRITTEN_CALL_MARK: &str = "\n[The model wrote a call of a tool as text, and nothing ran. Give the agent another model, or let \
     the server of this model read calls: `--jinja` for llama.cpp, `--enable-auto-tool-choice` for vLLM.]";

/// The remark in place of such a text, for the model: later answers would follow its example.
pub const WRITTEN_CALL_REMARK: &str =
    "your answer is left out here: it had a call of a tool as text, and nothing ran. Use the interface for calls.";

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
    /// Makes the body of an output with nothing beside its text and its calls.
    pub const fn new(text: String, calls: Vec<Call>) -> Self {
        Self { text, calls, cut: None, left_out: Vec::new(), attached: None, has_written_call: false }
    }

    /// Returns the text for a person: with a mark, if it is not the whole answer.
    pub fn shown(self) -> String {
        let written = if self.has_written_call { WRITTEN_CALL_MARK } else { "" };
        self.text + written + self.cut.map_or("", Cut::mark)
    }

    /// Returns the bytes that count in a context: those of the text and of the state. An empty text is no answer.
    pub fn context_bytes(&self) -> u64 {
        let state = self.attached.as_ref().map_or(0, |attached| attached.state.len());
        let is_empty = self.text.is_empty() && self.calls.is_empty();
        (self.text.len() + if is_empty { 0 } else { state }) as u64
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
    /// The values among them that were typed by a person, with their handles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::canonical::{self, Digest};

    #[test]
    fn bodies_of_earlier_versions_still_open() {
        for text in [r#"{"calls":[],"text":"a"}"#, r#"{"calls":[],"cut":"length","text":"a"}"#] {
            let body: OutputBody = serde_json::from_str(text).expect(text);
            assert_eq!((body.attached.as_ref(), body.has_written_call), (None, false));
            assert_eq!(canonical::to_string(&body), text, "and it is written in the same way");
        }
    }

    #[test]
    fn state_counts_in_a_context_beside_words_or_calls() {
        let attached = Some(Attached { endpoint: Digest::of(b"a"), state: "{}".to_owned() });
        let with =
            |text: &str| OutputBody { attached: attached.clone(), ..OutputBody::new(text.to_owned(), Vec::new()) };
        assert_eq!((with("abc").context_bytes(), with("").context_bytes()), (5, 0));
        let body: OutputBody = serde_json::from_str(&canonical::to_string(&with("abc"))).expect("a body");
        assert_eq!(body.attached, attached);
    }

    #[test]
    fn a_written_call_is_shown_with_the_remedy() {
        let body = OutputBody { has_written_call: true, ..OutputBody::new("<tool_call>".to_owned(), Vec::new()) };
        assert_eq!(body.shown(), format!("<tool_call>{WRITTEN_CALL_MARK}"));
    }
}
