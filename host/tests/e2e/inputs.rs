//! Tests of control fields: a value that names the receiver or the object of a call comes from what a person typed, or the call asks or is refused.
//!
//! They use the real programs, a model server that makes the calls which the test gives it, and an MCP server whose schemas need labels.

mod adaptive;
mod cases;
mod demo;
mod returned;
mod runs;
mod weak_model;

use super::mcp::{add, ready};
use super::requests::delivered;
use super::streaming;
use crate::support::client::Raw;
use crate::support::host_fixture::TestHost;
use crate::support::listed_mcp::{Listed, ListedServers};
use crate::support::model_server::{Act, Seen, Server};
use crate::support::site::PEOPLE_AWAY;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The schema of a text that needs the labels of a typed value.
fn needing() -> Value {
    json!({ "type": "string", "ifc": { "requiredIntegrity": ["Builtin(agent-kernel)", "UserSurfaceInput", "PromptSlotBound"] } })
}

/// The tools of the server `mail` with their schemas. `T` is a free text, and `F` a text with a hard floor.
fn listing() -> Vec<String> {
    let (text, floor) = (json!({ "type": "string" }), needing());
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let tools = [
        ("sendMail", object(json!({ "recipient": floor, "cc": floor, "body": text }))),
        ("pay", object(json!({ "payee": text, "amount": { "type": "number" }, "reason": text }))),
        ("note", object(json!({ "to": text }))),
        ("brief", object(json!({ "about": text }))),
        ("invoke", object(json!({ "tool": text, "arguments": {} }))),
        ("items", object(json!({ "to": { "type": "array", "items": floor } }))),
        ("tuple", object(json!({ "to": { "type": "array", "prefixItems": [floor, text] } }))),
        (
            "choice",
            json!({ "type": "object", "$defs": { "a": { "oneOf": [{ "const": 0 }, { "allOf": [floor] }] } },
                    "properties": { "to": { "anyOf": [text, { "$ref": "#/$defs/a" }] } } }),
        ),
        (
            "nested",
            json!({ "type": "object", "$defs": { "a": { "$defs": { "b": floor }, "$ref": "#/$defs/a/$defs/b" } },
                    "properties": { "to": { "$ref": "#/$defs/a" } } }),
        ),
        (
            "looping",
            json!({ "type": "object", "$defs": { "n": { "properties": { "next": { "$ref": "#/$defs/n" }, "mail": floor } } },
                    "properties": { "to": { "$ref": "#/$defs/n" } } }),
        ),
        ("extra", object(json!({ "to": { "type": "object", "additionalProperties": floor } }))),
        ("pattern", object(json!({ "to": { "type": "object", "patternProperties": { "^m": floor } } }))),
        ("condition", object(json!({ "to": { "if": { "const": 1 }, "then": text, "else": floor } }))),
        ("left", object(json!({ "to": { "type": "object", "unevaluatedProperties": floor } }))),
        ("box", object(json!({ "to": { "type": "object", "ifc": floor["ifc"] } }))),
        ("broken", object(json!({ "to": { "$ref": "#/$defs/none" } }))),
        ("unknown", object(json!({ "to": { "ifc": { "requiredIntegrity": ["Trusted"] } } }))),
    ];
    tools
        .map(|(name, schema)| json!({ "name": name, "description": "A tool.", "inputSchema": schema }).to_string())
        .to_vec()
}

/// The manifests of its tools: the schema alone decides, but for `pay`, whose operator set floors.
fn manifests() -> String {
    let mut text = String::new();
    let mut tool = |name: &str, class: &str, arguments: &[(&str, &str)]| {
        text.push_str(&format!(
            "[[tool]]\nname = \"{name}\"\nclass = \"{class}\"\nreach = \"outside\"\neffect = \"acts\"\n"
        ));
        for (argument, rule) in arguments {
            text.push_str(&format!("arguments.{argument} = {{ {rule} }}\n"));
        }
    };
    const CONTENT: &str = "rule = \"content\", outward = true";
    tool("sendMail", "send", &[("recipient", CONTENT), ("cc", CONTENT), ("body", CONTENT)]);
    let (account, amount) = ("rule = \"floor\", type = \"account\"", "rule = \"floor\", type = \"amount\"");
    tool("pay", "send", &[("payee", account), ("amount", amount), ("reason", CONTENT)]);
    tool("brief", "read", &[("about", "rule = \"free\"")]);
    tool("note", "send", &[("to", "rule = \"content\"")]);
    tool("invoke", "send", &[("tool", CONTENT), ("arguments", CONTENT)]);
    for name in ["items", "tuple", "choice", "nested", "looping", "extra", "pattern", "condition", "left", "box"] {
        tool(name, "send", &[("to", "rule = \"content\"")]);
    }
    text
}

/// The calls that a model makes next, each with its arguments.
type Calls = VecDeque<(String, Value)>;

/// A host whose model makes the calls of a list, one for each request, and then answers with the last result.
struct Office {
    host: TestHost,
    servers: ListedServers,
    model: Server,
    calls: Arc<Mutex<Calls>>,
}

impl Office {
    fn new() -> Self {
        let calls = Arc::new(Mutex::new(Calls::new()));
        let wanted = Arc::clone(&calls);
        let model = Server::start(move |seen: &Seen| match wanted.lock().expect("calls").pop_front() {
            Some((tool, arguments)) => Act::Call(String::new(), vec![(tool, with_ids(seen, &arguments))]),
            None => Act::Say(seen.results().pop().unwrap_or_else(|| "Nothing.".to_owned())),
        });
        let host = streaming::new_host(PEOPLE_AWAY, &model, "openai", &[]);
        let servers = ListedServers::start();
        let url = servers.list("mail", Listed::page(&listing()));
        ready(&host, "mail", &["--url", &url], Some(&manifests()));
        Self { host, servers, model, calls }
    }

    /// Sends a message of the owner to an agent. Returns the calls of its turn, and the answer.
    fn ask(&self, agent: &str, thread: &str, text: &str, calls: &[(&str, Value)]) -> (Vec<Value>, String) {
        let full = |tool: &str| if tool.contains("__") { tool.to_owned() } else { format!("mail__{tool}") };
        *self.calls.lock().expect("calls") =
            calls.iter().map(|(tool, arguments)| (full(tool), arguments.clone())).collect();
        let raw = Raw::of(&self.host);
        let message = json!({ "thread": thread, "text": text });
        let (status, recorded) = raw.ask("POST", &format!("/v1/agents/{agent}/messages"), &message.to_string());
        assert_eq!(status, 202, "{recorded}");
        let id = recorded["message_id"].as_str().expect("an id");
        delivered(&raw, id);
        let message = raw.get(&format!("/v1/messages/{id}")).1;
        let calls = message["calls"].as_array().cloned().unwrap_or_default();
        (calls, message["reply"].as_str().unwrap_or_default().to_owned())
    }

    /// Makes one call at a message in a conversation of its own. Returns its status, its code, and the answer. A request is rejected.
    fn one(&self, thread: &str, text: &str, tool: &str, arguments: Value) -> (String, Option<String>, String) {
        let (calls, answer) = self.ask("a", thread, text, &[(tool, arguments)]);
        let call = calls.last().unwrap_or_else(|| panic!("no call: {answer}"));
        self.reject(call);
        let code = call["code"].as_str().map(str::to_owned);
        (call["status"].as_str().expect("a status").to_owned(), code, answer)
    }

    /// Rejects the request of a call, so that the next one has room.
    fn reject(&self, call: &Value) {
        if let Some(request) = call["request"].as_str() {
            let raw = Raw::of(&self.host);
            assert_eq!(raw.ask("POST", &format!("/v1/waiting/{request}/decision"), r#"{"reject":""}"#).0, 200);
        }
    }
}

/// Puts the newest id of the prompt in place of each `$TYPE.NUMBER`, as a model does that copies the line behind a message.
fn with_ids(seen: &Seen, arguments: &Value) -> Value {
    let prompt = seen.body["messages"].to_string();
    let id = |short: &str| {
        let end = format!(".{short} is ");
        let at = prompt.rfind(&end).unwrap_or_else(|| panic!("no {short} in {prompt}"));
        let begin = prompt[..at].rfind(' ').expect("an id");
        format!("{}.{short}", &prompt[begin + 1..at])
    };
    match arguments {
        Value::String(text) if text.starts_with('$') && !text.starts_with("${") => id(&text[1..]).into(),
        Value::String(text) => match text.split_once("${") {
            Some((before, rest)) => {
                let (short, after) = rest.split_once('}').expect("an end");
                format!("{before}{}{after}", id(short)).into()
            }
            None => arguments.clone(),
        },
        Value::Array(values) => values.iter().map(|value| with_ids(seen, value)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), with_ids(seen, value))).collect(),
        other => other.clone(),
    }
}

fn link(id: &str) -> Value {
    json!({ "@link": id })
}
