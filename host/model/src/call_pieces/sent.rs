//! One call, or a piece of one, in the JSON of a server.
//!
//! Never runs a call without its arguments: it takes them from each field in which servers send them. See [`super::CallPieces`].

use super::Piece;
use serde_json::Value;
use std::borrow::Cow;

/// The fields with arguments, by their order.
const ARGUMENTS: [&str; 4] = ["arguments", "input", "parameters", "args"];

/// A call, or a piece of one.
#[derive(Debug)]
pub struct SentCall<'a> {
    id: Cow<'a, str>,
    tool: &'a str,
    arguments: Cow<'a, str>,
}

impl<'a> SentCall<'a> {
    /// Reads a call and its function, which may be one object.
    pub fn read(call: &'a Value, function: &'a Value) -> Self {
        let id = match &call["id"] {
            Value::String(id) => id.as_str().into(),
            Value::Number(id) => format!("{id}").into(),
            _ => "".into(),
        };
        let fields = ARGUMENTS.iter().filter_map(|name| Some((*name, function.get(*name)?)));
        let mut texts = fields.map(|(name, given)| text(name, given)).filter(|text| !text.is_empty());
        let arguments = texts.next().unwrap_or_default();
        Self { id, tool: function["name"].as_str().unwrap_or_default(), arguments }
    }

    /// Returns it as a piece of the call with this number.
    pub fn piece(&self, index: Option<u64>, begins: bool) -> Piece<'_> {
        Piece { index, id: &self.id, tool: self.tool, arguments: &self.arguments, begins }
    }
}

/// Returns arguments as a text. They are an object at servers that follow the API loosely.
fn text<'a>(name: &str, given: &'a Value) -> Cow<'a, str> {
    match given {
        Value::Null => "".into(),
        Value::String(text) => text.as_str().into(),
        // At the beginning of a stream of Messages the input is empty; it arrives in pieces.
        Value::Object(fields) if fields.is_empty() && name != "arguments" => "".into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_read_from_each_usual_field() {
        let a = json!({ "path": "a" });
        for function in [
            json!({ "name": "w", "arguments": a }),
            json!({ "name": "w", "arguments": a.to_string() }),
            json!({ "name": "w", "arguments": "", "parameters": a, "description": "evil", "strict": true }),
            json!({ "name": "w", "arguments": null, "parameters": a.to_string() }),
            json!({ "name": "w", "input": a }),
            json!({ "name": "w", "args": a }),
            json!({ "name": "w", "arguments": a, "parameters": { "path": "b" } }),
        ] {
            let sent = SentCall::read(&function, &function);
            let piece = sent.piece(None, true);
            assert_eq!((piece.tool, piece.arguments), ("w", a.to_string().as_str()), "{function}");
        }
        for function in
            [json!({ "name": "w" }), json!({ "name": "w", "input": {} }), json!({ "name": "w", "arguments": null })]
        {
            assert_eq!(SentCall::read(&function, &function).piece(None, true).arguments, "", "{function}");
        }
    }
}
