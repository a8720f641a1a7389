//! The arguments of an explained call: those of the request with what the host adds, or an example.
//!
//! Judges nothing. An example is the shortest call of the tool that the agent could make.

use crate::registry::tools::catalogue::{Catalogue, Source};
use crate::registry::tools::{HTTP_FETCH, SEND_FILE, SEND_MESSAGE};
use crate::registry::{Agent, Identity, Person, destinations, egress};
use crate::turns::calls::write_file;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::seam::change::Egress;
use ironclaw_operator::SentFile;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use serde_json::{Map, Value, json};

/// Returns the arguments of a call, as JSON text. A call that sends a file gets the facts of an empty copy.
pub fn completed(
    tx: &ReadTx<'_>,
    agent: &Agent,
    person: &Person,
    catalogue: &Catalogue,
    tool: &str,
    given: Option<String>,
) -> Result<String, Error> {
    let text = match given {
        Some(text) => text,
        None => canonical::to_string(&Value::Object(example(tx, agent, catalogue, tool)?)),
    };
    if tool != SEND_FILE {
        return Ok(text);
    }
    let Ok(Value::Object(mut arguments)) = serde_json::from_str(&text) else { return Ok(text) };
    let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let file = SentFile { name, media_type: "text/plain".to_owned(), bytes: 0, digest: Digest::of(b"") };
    write_file(&mut arguments, &file, Some(Identity::own(person.id).to_string()), "");
    Ok(canonical::to_string(&Value::Object(arguments)))
}

fn example(
    tx: &ReadTx<'_>,
    agent: &Agent,
    catalogue: &Catalogue,
    tool: &str,
) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let made = match tool {
        HTTP_FETCH => {
            let granted = egress::egress_of(tx, agent.id)?.into_iter().map(|grant| grant.granted);
            granted.map(|granted| request(&granted)).find(|made| !made.is_null())
        }
        SEND_MESSAGE => {
            let to = destinations::list_for_agent(tx, agent.id)?.into_iter().next().map(|held| held.name);
            Some(json!({ "to": to.unwrap_or_else(|| "NAME".to_owned()), "text": "TEXT" }))
        }
        SEND_FILE => Some(json!({ "path": "report.txt" })),
        "schedule_task" => Some(json!({ "prompt": "TEXT", "recurrence": "daily" })),
        "request_capability_change" => {
            Some(json!({ "kind": "persona", "payload": { "instructions": "TEXT" }, "reason": "TEXT" }))
        }
        _ => None,
    };
    if let Some(Value::Object(made)) = made {
        return Ok(made);
    }
    if tool == HTTP_FETCH {
        return Ok(Map::from_iter([("url".to_owned(), json!("https://example.org/"))]));
    }
    let schema = match catalogue.find(tool) {
        Some(Source::BuiltIn(tool)) => &tool.parameters,
        Some(Source::Server(tool)) => &tool.parameters,
        None => return Ok(Map::new()),
    };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(required.map(|name| (name.to_owned(), value(&schema["properties"][name], name))).collect())
}

/// Returns the arguments of a request that a grant covers; null for a tunnel, which has none.
fn request(granted: &Egress) -> Value {
    let Some(method) = granted.methods.iter().find(|method| *method == "GET").or(granted.methods.first()) else {
        return Value::Null;
    };
    let port = granted.port.map(|port| format!(":{port}")).unwrap_or_default();
    let path = granted.paths.first().map_or_else(|| "/".to_owned(), |path| filled(path));
    // Only a host of this machine has no TLS.
    let is_local = ["127.0.0.1", "localhost", "[::1]"].contains(&granted.host.as_str());
    let scheme = if is_local { "http" } else { "https" };
    json!({ "method": method, "url": format!("{scheme}://{}{port}{path}", granted.host) })
}

/// Returns a path with the name of each slot in its place.
fn filled(template: &str) -> String {
    template.replace("?}", "}").replace(['{', '}'], "")
}

/// Returns a value of a schema.
fn value(schema: &Value, name: &str) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|words| words.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some(_) | None => json!(name.to_uppercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_a_grant_is_a_request_that_it_covers() {
        let granted = Egress {
            host: "api.example".to_owned(),
            port: Some(8443),
            methods: vec!["POST".to_owned(), "GET".to_owned()],
            paths: vec!["/notes/{id}?page={page?}".to_owned()],
            secret: None,
            upload_bytes_max: None,
            commands: None,
        };
        assert_eq!(request(&granted), json!({ "method": "GET", "url": "https://api.example:8443/notes/id?page=page" }));
        assert_eq!(request(&Egress { methods: Vec::new(), ..granted }), Value::Null);
    }

    #[test]
    fn example_has_a_value_of_each_type() {
        for (schema, expected) in [
            (json!({ "type": "string" }), json!("PATH")),
            (json!({ "type": "string", "enum": ["list", "pause"] }), json!("list")),
            (json!({ "type": "integer" }), json!(1)),
            (json!({ "type": "boolean" }), json!(false)),
            (json!({ "type": "array" }), json!([])),
            (json!({ "type": "object" }), json!({})),
            (json!({}), json!("PATH")),
        ] {
            assert_eq!(value(&schema, "path"), expected, "{schema}");
        }
    }
}
