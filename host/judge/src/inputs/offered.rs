//! The schema of a tool for a model, where control fields take references.
//!
//! Never says that a field takes less than the tool does: a model may pass the value itself, and the host answers what to pass.

use super::leaves::LINK;
use crate::manifest::{Manifest, Taken};
use ironclaw_operator::InputType;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Returns the schema with a reference beside the values of each control field that names a type, or that takes references alone.
pub fn with_references<'a>(manifest: &Manifest, schema: &'a Value) -> Cow<'a, Value> {
    if !manifest.takes_references() {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    for (name, property) in schema["properties"].as_object_mut().into_iter().flatten() {
        let Some(taken) = manifest.taken_by(name, "").into_iter().next() else { continue };
        let own = property["description"].as_str().map_or_else(String::new, |own| format!("{own} "));
        let taken = format!("{own}Pass a value{} as {{\"{LINK}\": its id}}.", in_words(taken));
        let link = json!({
            "type": "object", "properties": { LINK: { "type": "string" } }, "required": [LINK], "additionalProperties": false,
        });
        *property = json!({ "description": taken, "anyOf": [link, property.take()] });
    }
    Cow::Owned(schema)
}

/// Returns the type and the source of a value.
fn in_words(taken: Taken<'_>) -> String {
    let of_type = match taken.kind {
        InputType::Any => String::new(),
        kind => format!(" of type {kind}"),
    };
    let source = match (taken.needs.needs_created(), taken.needs.needs_returned()) {
        (true, _) => "that this server made in this conversation",
        (false, true) => "that a server returned with an id",
        (false, false) => "that the person typed",
    };
    format!("{of_type} {source}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::server::{Tools, tool_manifests};

    #[test]
    fn field_with_a_type_or_a_hard_floor_takes_a_reference() {
        let needing = json!({ "type": "string", "ifc": { "requiredIntegrity": ["UserSurfaceInput"] } });
        let schema = json!({ "type": "object", "properties": { "to": { "type": "string", "description": "The receiver." }, "text": {} } });
        let entry = |schema: &Value| [json!({ "name": "send", "inputSchema": schema })];
        let strict = &Tools::strictest("mail", &entry(&schema)).manifests["send"];
        assert_eq!(*with_references(strict, &schema), schema, "no type says what to pass");
        let typed = "[[tool]]\nname = 'send'\nclass = 'send'\nreach = 'outside'\neffect = 'sends'\n\
                     arguments.to = { rule = 'floor', type = 'email' }\narguments.text = { rule = 'content' }\n";
        let typed = &tool_manifests("mail", &entry(&schema), Some(typed)).expect("a manifest").manifests["send"];
        let offered = with_references(typed, &schema);
        let words = "The receiver. Pass a value of type email that the person typed as {\"@link\": its id}.";
        assert_eq!(offered["properties"]["to"]["description"], words);
        assert_eq!(offered["properties"]["to"]["anyOf"][1], schema["properties"]["to"]);
        assert_eq!(offered["properties"]["text"], schema["properties"]["text"]);
        let hard = json!({ "type": "object", "properties": { "to": needing } });
        let manifest = &Tools::strictest("mail", &entry(&hard)).manifests["send"];
        assert!(with_references(manifest, &hard)["properties"]["to"]["anyOf"].is_array());
    }
}
