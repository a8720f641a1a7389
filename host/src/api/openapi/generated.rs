//! The document, generated from the list of routes.

use super::super::handler::Reply;
use super::super::paths::routes;
use super::super::routes::Route;
use super::super::shapes::{Named, ResponseType, Shapes};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Returns the document of these routes.
fn document(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    let mut failure = Shapes::default();
    collect(&mut schemas, &failure_shape(&mut failure).components);
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| Value::Object(Map::new()));
        path[method(route)] = operation(route);
        collect(&mut schemas, &route.entry.shapes.components);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "IronClaw",
            "summary": "The operator's API of a host",
            "description": "Served on a unix socket, and on a loopback port when `api.listen` opens one. Every request carries the token of a person, except for the paths whose `x-role` is `anybody`; `x-role` is the least role that a path needs.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "`ict_` and 64 hex characters" } },
            "schemas": schemas,
        },
    })
}

fn failure_shape(shapes: &mut Shapes) -> &Shapes {
    <Reply<ironclaw_operator::Failure> as ResponseType>::note(shapes);
    shapes
}

fn collect(schemas: &mut Map<String, Value>, found: &[(String, impl Serialize)]) {
    for (name, schema) in found {
        schemas.insert(name.clone(), plain(schema));
    }
}

fn plain(schema: &impl Serialize) -> Value {
    serde_json::to_value(schema).expect("a schema is plain data")
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = route
        .path
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if let Some(query) = &route.entry.shapes.query {
        let query = plain(query);
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            parameters.push(json!({ "name": name, "in": "query", "required": false, "schema": schema }));
        }
    }
    let (status, kind, shapes) = route.entry.shapes.answer.as_ref().expect("every handler gives something");
    let answer = match shapes.as_slice() {
        [one] => reference(one),
        several => json!({ "oneOf": several.iter().map(reference).collect::<Vec<_>>() }),
    };
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.entry.about,
        "x-role": route.needs.map_or("anybody", |needs| needs.name()),
        "responses": {
            status.as_str(): { "description": "Done", "content": { *kind: { "schema": answer } } },
            "default": {
                "description": "A refusal or a failure, with its reason",
                "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Failure" } } },
            },
        },
    });
    if route.needs.is_none() {
        operation["security"] = json!([]);
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some((kind, body)) = &route.entry.shapes.body {
        operation["requestBody"] = json!({ "required": true, "content": { *kind: { "schema": reference(body) } } });
    }
    operation
}

/// Returns a reference to a component, or the schema itself if it is none.
fn reference(named: &Named) -> Value {
    let one = match named.is_component() {
        true => json!({ "$ref": format!("#/components/schemas/{}", named.name) }),
        false => plain(&named.schema),
    };
    if named.list { json!({ "type": "array", "items": one }) } else { one }
}

/// Returns the method of a route in lower case.
fn method(route: &Route) -> String {
    format!("{:?}", route.entry.method).to_ascii_lowercase()
}

/// Returns the id of an operation, such as `get_agents_agent_history` for `GET /v1/agents/{agent}/history`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/v1").replace(['{', '}'], "");
    let words = path.split(['/', '.']).filter(|word| !word.is_empty());
    std::iter::once(method(route)).chain(words.map(str::to_owned)).collect::<Vec<_>>().join("_")
}

#[test]
fn every_reference_resolves_and_operation_has_role_and_answer() {
    let document = document(&routes());
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let text = document.to_string();
    for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(schemas.contains_key(name), "{name} is referred to and not there");
    }
    let mut ids = std::collections::BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            assert!(operation["x-role"].is_string() && operation["summary"].is_string(), "{method} {path}");
            assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}: its id is another's");
            for (_, answer) in operation["responses"].as_object().expect("responses") {
                let content = answer["content"].as_object().expect("content");
                assert!(content.values().all(|kind| kind["schema"] != json!({})), "{method} {path}: {content:?}");
            }
        }
    }
}

#[test]
fn document_matches_the_routes() {
    let now = format!("{}\n", serde_json::to_string_pretty(&document(&routes())).expect("JSON"));
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &now).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let at = committed.lines().zip(now.lines()).position(|(old, new)| old != new);
    assert!(
        committed == now,
        "docs/openapi.json is out of date from line {:?} on; IRONCLAW_GOLDEN=write rewrites it",
        at.map(|at| at + 1)
    );
}
