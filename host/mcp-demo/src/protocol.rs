//! The messages of MCP that the server knows: `initialize`, `ping`, `tools/list` and `tools/call`.
//!
//! Revisions 2025-06-18 and 2025-11-25. Sends no request and no notification. See [`crate::tools`].

use crate::tools::{Failure, Tools};
use serde_json::{Map, Value, json};

/// The revisions of the protocol, the newest first.
const REVISIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// Codes of JSON-RPC.
const NO_JSON: i64 = -32700;
const NO_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const WRONG_PARAMETERS: i64 = -32602;

/// A refusal of a request: a code of JSON-RPC and a sentence.
type Refusal = (i64, String);

/// The server: its tools, and no state of a connection.
#[derive(Debug)]
pub struct Server {
    tools: Tools,
}

impl Server {
    /// Creates a server with these tools.
    pub fn new(tools: Tools) -> Self {
        Self { tools }
    }

    /// Returns the answer to a line; `None` for a notification and for an answer of the client.
    pub fn answer(&self, line: &[u8]) -> Option<Value> {
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => return Some(refused(&Value::Null, (NO_JSON, format!("the line is no JSON: {error}")))),
        };
        let Some(message) = message.as_object().filter(|message| message.get("jsonrpc") == Some(&json!("2.0"))) else {
            return Some(refused(&Value::Null, (NO_REQUEST, "the line is no message of JSON-RPC 2.0".to_owned())));
        };
        let id = message.get("id");
        let method = message.get("method").and_then(Value::as_str);
        match (id, method) {
            (Some(id), Some(method)) if id.is_string() || id.is_number() => {
                let parameters = message.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
                Some(match self.result(method, parameters) {
                    Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    Err(refusal) => refused(id, refusal),
                })
            }
            (None, Some(_)) => None,
            (Some(_), None) if message.contains_key("result") || message.contains_key("error") => None,
            _ => Some(refused(&Value::Null, (NO_REQUEST, "the message has no id or no method".to_owned()))),
        }
    }

    fn result(&self, method: &str, parameters: Map<String, Value>) -> Result<Value, Refusal> {
        match method {
            "initialize" => Ok(initialized(&parameters)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": Tools::listed() })),
            "tools/call" => self.call(parameters),
            _ => Err((NO_METHOD, format!("there is no method {method:?}"))),
        }
    }

    fn call(&self, mut parameters: Map<String, Value>) -> Result<Value, Refusal> {
        let wrong = |what: &str| (WRONG_PARAMETERS, what.to_owned());
        let Some(Value::String(name)) = parameters.remove("name") else { return Err(wrong("`name` is missing")) };
        let arguments = match parameters.remove("arguments") {
            None => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(wrong("`arguments` is not an object")),
        };
        let (text, is_error) = match self.tools.call(&name, &arguments) {
            Ok(text) => (text, false),
            Err(Failure::Unknown) => return Err((WRONG_PARAMETERS, format!("there is no tool {name:?}"))),
            Err(Failure::Refused(why)) => (why, true),
        };
        Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
    }
}

/// Returns the result of `initialize`: the revision of the client if the server knows it, else its newest.
fn initialized(parameters: &Map<String, Value>) -> Value {
    let wanted = parameters.get("protocolVersion").and_then(Value::as_str);
    let revision = REVISIONS.into_iter().find(|revision| Some(*revision) == wanted).unwrap_or(REVISIONS[0]);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Files of one directory, a counter, and a mailbox that sends nothing.",
    })
}

fn refused(id: &Value, (code, message): Refusal) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::state::State;

    fn answer(message: &Value) -> Option<Value> {
        let tools = Tools { files: Directory::new("/nonexistent".into()), state: State::new("/nonexistent".into()) };
        Server::new(tools).answer(message.to_string().as_bytes())
    }

    fn request(method: &str, params: Value) -> Value {
        answer(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })).expect("an answer")
    }

    #[test]
    fn initialize_agrees_on_a_known_revision() {
        for (wanted, agreed) in
            [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2025-11-25")]
        {
            let result = &request("initialize", json!({ "protocolVersion": wanted }))["result"];
            assert_eq!(result["protocolVersion"], agreed, "{wanted}");
            assert_eq!(result["capabilities"], json!({ "tools": {} }));
        }
    }

    #[test]
    fn wrong_message_has_its_code() {
        for (message, code) in [
            (json!([]), NO_REQUEST),
            (json!({ "id": 1, "method": "ping" }), NO_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }), NO_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1 }), NO_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover" }), NO_METHOD),
        ] {
            assert_eq!(answer(&message).expect("an answer")["error"]["code"], code, "{message}");
        }
        for params in [json!({}), json!({ "name": "no_tool" }), json!({ "name": "count", "arguments": [] })] {
            assert_eq!(request("tools/call", params.clone())["error"]["code"], WRONG_PARAMETERS, "{params}");
        }
    }

    #[test]
    fn notification_and_answer_of_the_client_get_no_answer() {
        assert_eq!(answer(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" })), None);
        assert_eq!(answer(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })), None);
    }

    #[test]
    fn failed_call_is_an_error_in_its_result() {
        let result = request("tools/call", json!({ "name": "read_file", "arguments": { "name": "a" } }));
        assert_eq!(result["result"]["isError"], true, "{result}");
        assert_eq!((&result["id"], &result["result"]["content"][0]["type"]), (&json!(7), &json!("text")));
    }
}
