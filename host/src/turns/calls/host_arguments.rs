//! The arguments that the host alone writes into a call, such as the address of a destination.
//!
//! A model does not see them, and what it writes there is left out, with a remark. See [`crate::registry::tools`] for their names.

use super::canonical_text;
use crate::registry::tools;
use ironclaw_contract::canonical::{self, Limits};
use ironclaw_contract::seam::limits::ARGUMENTS_BYTES_MAX;
use ironclaw_model::WantedCall;
use serde_json::Value;

/// Removes these arguments from a call that a model wants. Returns their names. Arguments that are no strict JSON stay, and are refused
/// later.
pub fn remove(wanted: &mut WantedCall) -> Vec<String> {
    let (arguments, names) = split(&wanted.tool, &wanted.arguments);
    if let Some(arguments) = arguments {
        wanted.arguments = arguments;
    }
    names
}

/// Returns the arguments of a recorded call as its model wrote them.
pub fn without(tool: &str, arguments: &str) -> String {
    split(tool, arguments).0.unwrap_or_else(|| arguments.to_owned())
}

/// Returns the other arguments, if there are some of the host, and the names of these.
fn split(tool: &str, arguments: &str) -> (Option<String>, Vec<String>) {
    let of_host: Vec<&str> = tools::find(tool).into_iter().flat_map(tools::Tool::host_arguments).collect();
    if of_host.is_empty() {
        return (None, Vec::new());
    }
    let Ok(Value::Object(mut read)) = canonical::parse(arguments.as_bytes(), Limits::bytes(ARGUMENTS_BYTES_MAX)) else {
        return (None, Vec::new());
    };
    let found: Vec<String> =
        of_host.into_iter().filter(|name| read.remove(*name).is_some()).map(str::to_owned).collect();
    ((!found.is_empty()).then(|| canonical_text::text(&read)), found)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut wanted = WantedCall { tool: tool.to_owned(), arguments: given.to_owned() };
            let mut found = remove(&mut wanted);
            found.sort();
            assert_eq!((wanted.arguments.as_str(), found), (left, names.iter().map(|&name| name.to_owned()).collect()));
            assert_eq!(without(tool, given), left);
        }
    }
}
