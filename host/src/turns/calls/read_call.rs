//! A call that a model wants, with its arguments read once.
//!
//! Never judges it: see [`super::judge`].

use super::canonical_text;
use super::output_body::Call;
use crate::registry::tools;
use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use ironclaw_judge::inputs::{Input, write_references};
use ironclaw_model::WantedCall;
use serde_json::{Map, Value};

/// A call before its judgement. The host writes into its arguments what it alone knows, such as the commits of a push.
#[derive(Debug, Clone)]
pub struct ReadCall {
    pub tool: String,
    /// The object of its arguments, or the reason why there is none.
    pub(super) arguments: Result<Map<String, Value>, String>,
    /// Of a recorded call: the values that were bound to handles.
    pub(super) inputs: Vec<Input>,
}

impl ReadCall {
    /// Reads the arguments of a call as strict JSON.
    pub fn read(call: WantedCall) -> Self {
        let arguments = match canonical::parse(call.arguments.as_bytes(), Limits::bytes(ARGUMENTS_BYTES_MAX)) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(_) => Err("they are not a JSON object".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        Self { tool: call.tool, arguments, inputs: Vec::new() }
    }

    /// Reads a recorded call. Its values stay bound to the same handles.
    pub fn recorded(call: Call) -> Self {
        let Call { tool, arguments, inputs, .. } = call;
        Self { inputs, ..Self::read(WantedCall { tool, arguments }) }
    }

    /// Returns the call with the same values, which are bound to no handle.
    #[must_use]
    pub fn unbound(&self) -> Self {
        Self { inputs: Vec::new(), ..self.clone() }
    }

    /// Returns the arguments; `None` if they are no object, for which the judgement refuses the call.
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
        self.arguments.as_ref().ok()
    }

    /// Returns the arguments, to write into them.
    ///
    /// # Errors
    /// The reason why they are no object; the text may quote the model.
    pub fn arguments_mut(&mut self) -> Result<&mut Map<String, Value>, &str> {
        self.arguments.as_mut().map_err(|why| &**why)
    }

    /// Removes the arguments that the host alone writes, such as the address of a destination. Returns their names.
    pub fn remove_host_arguments(&mut self) -> Vec<String> {
        match &mut self.arguments {
            Ok(arguments) => remove_host_arguments(&self.tool, arguments),
            Err(_) => Vec::new(),
        }
    }
}

/// Removes the arguments of a tool that the host alone writes, and returns their names.
pub(super) fn remove_host_arguments(tool: &str, arguments: &mut Map<String, Value>) -> Vec<String> {
    let of_host = tools::find(tool).into_iter().flat_map(tools::Tool::host_arguments);
    of_host.filter(|name| arguments.remove(*name).is_some()).map(str::to_owned).collect()
}

/// Returns the arguments of a recorded call as its model wrote them: without those of the host, and with references in place of the values
/// that it took by reference.
pub fn as_written(call: &Call) -> String {
    let has_none = tools::find(&call.tool).is_none_or(|tool| tool.host_arguments().next().is_none());
    if has_none && call.inputs.iter().all(|bound| bound.by_host) {
        return call.arguments.clone();
    }
    let Ok(Value::Object(mut read)) = canonical::parse(call.arguments.as_bytes(), Limits::bytes(ARGUMENTS_BYTES_MAX))
    else {
        return call.arguments.clone();
    };
    let before = read.clone();
    remove_host_arguments(&call.tool, &mut read);
    write_references(&mut read, &call.inputs);
    if read == before { call.arguments.clone() } else { canonical_text::text(&read) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::CallId;

    #[test]
    fn argument_of_the_host_is_left_out_of_each_tool() {
        for (tool, given, left, names) in [
            (
                "send_message",
                r#"{"recipient":"owner","text":"hi","to":"me"}"#,
                r#"{"text":"hi","to":"me"}"#,
                &["recipient"][..],
            ),
            ("send_message", r#"{"thread":null,"recipient":1,"to":"me"}"#, r#"{"to":"me"}"#, &["recipient", "thread"]),
            ("send_file", r#"{"path":"a","digest":"0","size":9}"#, r#"{"path":"a"}"#, &["digest", "size"]),
            ("git_push", r#"{"branch":"main","commits":"x","over":"y"}"#, r#"{"branch":"main"}"#, &["commits", "over"]),
            // Nothing of the host.
            ("send_message", r#"{ "to": "me" }"#, r#"{ "to": "me" }"#, &[]),
            ("write_file", r#"{"recipient":"a"}"#, r#"{"recipient":"a"}"#, &[]),
            ("no_tool", r#"{"recipient":"a"}"#, r#"{"recipient":"a"}"#, &[]),
            // Refused later.
            ("send_message", r#"{"recipient":1,"recipient":2}"#, r#"{"recipient":1,"recipient":2}"#, &[]),
            ("send_message", "[]", "[]", &[]),
        ] {
            let mut wanted = ReadCall::read(WantedCall { tool: tool.to_owned(), arguments: given.to_owned() });
            let mut found = wanted.remove_host_arguments();
            found.sort();
            assert_eq!(found, names, "{given}");
            let read = |text: &str| serde_json::from_str::<Map<String, Value>>(text).ok();
            let is_read = wanted.arguments().is_some();
            assert_eq!(wanted.arguments().cloned(), read(left).filter(|_| is_read), "{given}");
            let inputs = Vec::new();
            let call = Call { call_id: CallId::new(), tool: tool.to_owned(), arguments: given.to_owned(), inputs };
            assert_eq!(as_written(&call), left);
        }
    }
}
