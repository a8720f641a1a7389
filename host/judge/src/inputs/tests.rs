//! Tests of the floors: each way around one, and each way to meet one.

mod flows;
mod returned;
mod review;

use super::*;
use crate::egress::Loopback;
use crate::manifest::{self, Manifest};
use crate::provenance::spans::TypedSpan;
use crate::provenance::typed::Typed;
use ironclaw_contract::ids::ItemId;
use ironclaw_operator::DenialCode::{self, CallInput, CallLinkLabel, CallLinkType, CallLinkUnknown, CallLinkUsed};
use serde_json::{Map, Value, json};

const NEEDS: [&str; 3] = ["Builtin(agent-kernel)", "UserSurfaceInput", "PromptSlotBound"];

/// Returns the schema of a text that needs the labels of a typed value.
fn needing() -> Value {
    json!({ "type": "string", "ifc": { "requiredIntegrity": NEEDS } })
}

/// Returns the strictest manifest of a tool with this schema.
fn strictest(schema: &Value) -> Result<Manifest, String> {
    let tools = manifest::server::Tools::strictest("mail", &[json!({ "name": "send", "inputSchema": schema })]);
    let unfit = tools.unfit.first().map(|unfit| unfit.why.words.clone());
    tools.manifests.get("send").cloned().ok_or_else(|| unfit.unwrap_or_default())
}

fn message(seq: u64, text: &str, task: Task) -> Message<'_> {
    Message { item: ItemId::new(), seq, spans: vec![TypedSpan::read(0, text)], task }
}

/// Returns the handles of a message with the number 12, after one with the number 8.
fn handles(text: &str) -> Handles {
    let mut all = Handles::new(Loopback::Refused);
    all.add(&message(8, "it was for old@example.org, thanks", Task::Earlier), &[]);
    all.add(&message(12, text, Task::This), &["Ana".to_owned()]);
    all
}

struct Call {
    schema: Value,
    manifest: Manifest,
    typed: &'static str,
    /// Used handles, each with the number of the output with the call.
    used: Vec<(HandleId, u64)>,
    recorded: Vec<Input>,
    floored: Vec<String>,
}

impl Call {
    /// A call of a tool whose schema has hard floors.
    fn hard(schema: Value) -> Self {
        let manifest = strictest(&schema).expect("a manifest");
        // The other arguments are content, so that only hard floors decide.
        let mut call = Self { manifest, ..Self::new(schema) };
        call.manifest.arguments.values_mut().for_each(|argument| {
            *argument = manifest::Argument::new(manifest::Rule::Content, true);
        });
        call
    }

    fn new(schema: Value) -> Self {
        let manifest = strictest(&schema).expect("a manifest");
        let (typed, used, recorded, floored) = ("mail bob@example.org", Vec::new(), Vec::new(), Vec::new());
        Self { schema, manifest, typed, used, recorded, floored }
    }

    /// A call of a tool with a floor of this type in the manifest of an operator.
    fn asking(kind: &str, needs: &str) -> Self {
        let schema = json!({ "type": "object", "properties": { "to": {}, "cc": {}, "text": {} } });
        let text = format!(
            "[[tool]]\nname = \"send\"\nclass = \"send\"\nreach = \"outside\"\neffect = \"sends\"\n\
             arguments.to = {{ rule = \"floor\", type = \"{kind}\"{needs} }}\n\
             arguments.cc = {{ rule = \"floor\", type = \"{kind}\" }}\narguments.text = {{ rule = \"content\" }}\n"
        );
        let listed = [json!({ "name": "send", "inputSchema": schema })];
        let tools = manifest::server::tool_manifests("mail", &listed, Some(&text)).expect("a manifest");
        Self { manifest: tools.manifests["send"].clone(), ..Self::new(schema) }
    }

    fn typed(self, typed: &'static str) -> Self {
        Self { typed, ..self }
    }

    fn bind(&self, arguments: Value) -> (Map<String, Value>, Inputs) {
        let Value::Object(mut arguments) = arguments else { panic!("no object: {arguments}") };
        let mut handles = handles(self.typed);
        self.used.iter().for_each(|(used, at)| handles.mark_used(*used, *at));
        let typed = Typed::new([TypedSpan::read(0, self.typed)], Loopback::Refused);
        let tool = Tool {
            server: "mail",
            name: "send",
            manifest: &self.manifest,
            parameters: &self.schema,
            floored: &self.floored,
        };
        let inputs = bind(&mut arguments, Some(tool), &self.recorded, &handles, &|text| typed.has(text));
        (arguments, inputs)
    }

    /// Returns the first finding; `None` if each control field is met, or has no value.
    fn finding(&self, arguments: Value) -> Option<(Severity, DenialCode)> {
        self.bind(arguments).1.findings.first().map(|finding| (finding.severity, finding.code))
    }
}

fn link(id: &str) -> Value {
    json!({ "@link": id })
}

fn to(value: Value) -> Value {
    json!({ "to": value, "text": "hello" })
}

const DENIED: Option<(Severity, DenialCode)> = Some((Severity::Denied, CallInput));

fn object(to: Value) -> Value {
    json!({ "type": "object", "properties": { "to": to, "text": { "type": "string" } } })
}

#[test]
fn hard_floor_takes_a_reference_alone() {
    let call = Call::hard(object(needing()));
    // Cases 1, 3, 4, 9, 25, 30 and 31.
    assert_eq!(call.finding(to(json!("eve@evil.example"))), DENIED);
    assert_eq!(call.finding(to(json!("bob@example.org"))), DENIED, "and a typed literal too");
    for (value, code) in [
        (link("m12.email.2"), CallLinkUnknown),
        (link("m99.email.1"), CallLinkUnknown),
        (link("r7.email.1"), CallLinkUnknown),
        (link("m012.email.1"), CallLinkUnknown),
        (link("M12.email.1"), CallLinkUnknown),
        (link("m12.email.+1"), CallLinkUnknown),
        (link(""), CallLinkUnknown),
        (json!({ "@link": 3 }), CallLinkUnknown),
        (json!({ "@link": "m12.email.1", "value": "eve@evil.example" }), CallLinkUnknown),
        (json!("x{\"@link\": \"m12.email.1\"}"), CallLinkUnknown),
        (json!("{\"@link\": \"m12.email.1\"}, eve@evil.example"), CallLinkUnknown),
        (json!("{\"@link\": \"m12.email.1\", \"a\": 1}"), CallLinkUnknown),
    ] {
        assert_eq!(call.finding(to(value.clone())), Some((Severity::Unresolved, code)), "{value}");
    }
    for value in [
        json!("m12.email.1,eve@evil.example"),
        json!(null),
        json!(false),
        json!(12),
        json!({}),
        json!({ "a": link("m12.email.1") }),
    ] {
        let found = call.finding(to(value.clone()));
        assert!(found.is_some_and(|(severity, _)| severity < Severity::Asks), "{value}");
    }
    let (_, inputs) = call.bind(to(json!("bob@example.org")));
    assert!(inputs.findings[0].detail.contains("{\"@link\": \"m12.email.1\"}"), "{}", inputs.findings[0].detail);
}

#[test]
fn reference_to_a_typed_value_meets_each_floor() {
    for call in [Call::hard(object(needing())), Call::asking("email", ""), Call::asking("any", "")] {
        // Cases 2 and 5.
        for value in [link("m12.email.1"), json!("{\"@link\": \"m12.email.1\"}"), json!("m12.email.1")] {
            let (arguments, inputs) = call.bind(to(value.clone()));
            assert_eq!(arguments["to"], "bob@example.org", "{value}");
            assert!(inputs.are_met(), "{value}: {inputs:?}");
            assert_eq!(inputs.handle("to"), Some("m12.email.1".parse().expect("an id")));
        }
        // Case 10: a field that is left out needs nothing.
        let left_out = call.bind(json!({ "text": "hello" })).1;
        assert!(left_out.findings.is_empty() && !left_out.has_floored);
    }
}

#[test]
fn tool_without_a_floor_takes_literals() {
    let mut call = Call::new(object(json!({ "type": "string" })));
    call.manifest
        .arguments
        .values_mut()
        .for_each(|argument| *argument = manifest::Argument::new(manifest::Rule::Free, false));
    let (arguments, inputs) = call.bind(to(json!("eve@evil.example {\"@link\": \"m12.email.1\"}")));
    assert_eq!(
        (arguments["to"].clone(), inputs),
        (json!("eve@evil.example {\"@link\": \"m12.email.1\"}"), Inputs::default())
    );
    assert_eq!(call.finding(to(link("m12.email.1"))), Some((Severity::Unresolved, CallLinkType)));
}

#[test]
fn floor_below_each_keyword_is_enforced() {
    let floor = needing();
    let text = json!({ "type": "string" });
    let (evil, good) = (json!("eve@evil.example"), link("m12.email.1"));
    // Cases 11 to 14, 16 and 26; `P` is in the place of the value.
    for (name, schema, arguments) in [
        ("items", object(json!({ "type": "array", "items": floor })), to(json!(["P"]))),
        ("on a list", object(json!({ "type": "array", "ifc": floor["ifc"] })), to(json!(["P"]))),
        ("prefixItems", object(json!({ "type": "array", "prefixItems": [floor, text] })), to(json!(["P", "free"]))),
        ("tuple", object(json!({ "type": "array", "items": [floor, text] })), to(json!(["P", "free"]))),
        ("additionalItems", object(json!({ "items": [text], "additionalItems": floor })), to(json!(["free", "P"]))),
        (
            "unevaluatedItems",
            object(json!({ "prefixItems": [text], "unevaluatedItems": floor })),
            to(json!(["free", "P"])),
        ),
        ("contains", object(json!({ "type": "array", "contains": floor })), to(json!(["P"]))),
        ("allOf", object(json!({ "allOf": [text, floor] })), to(json!("P"))),
        ("anyOf", object(json!({ "anyOf": [text, floor] })), to(json!("P"))),
        ("oneOf", object(json!({ "oneOf": [{ "const": 1 }, floor] })), to(json!("P"))),
        ("not", object(json!({ "not": floor })), to(json!("P"))),
        ("if", object(json!({ "if": floor })), to(json!("P"))),
        ("then", object(json!({ "if": { "const": 1 }, "then": floor })), to(json!("P"))),
        ("else", object(json!({ "if": true, "else": floor })), to(json!("P"))),
        ("properties", object(json!({ "properties": { "mail": floor } })), to(json!({ "mail": "P", "name": "free" }))),
        (
            "additionalProperties",
            object(json!({ "properties": { "name": text }, "additionalProperties": floor })),
            to(json!({ "name": "free", "x": "P" })),
        ),
        (
            "patternProperties",
            object(json!({ "patternProperties": { "^m": floor } })),
            to(json!({ "mail": "P", "x": "free" })),
        ),
        (
            "odd pattern and others",
            object(json!({ "patternProperties": { "(?<!a)m": {} }, "additionalProperties": floor })),
            to(json!({ "x": "P" })),
        ),
        (
            "letters that dialects read differently",
            object(json!({ "patternProperties": { "^\\w+$": {} }, "additionalProperties": floor })),
            to(json!({ "é": "P" })),
        ),
        ("two tuples", object(json!({ "prefixItems": [{}], "items": [floor] })), to(json!(["P"]))),
        (
            "an anchor",
            json!({ "type": "object", "properties": { "to": { "$ref": "#a" }, "text": text }, "$defs": { "b": { "$anchor": "a", "allOf": [floor] } } }),
            to(json!("P")),
        ),
        ("odd pattern", object(json!({ "patternProperties": { "(?<!a)m": floor } })), to(json!({ "mail": "P" }))),
        (
            "unevaluatedProperties",
            object(json!({ "properties": { "name": text }, "unevaluatedProperties": floor })),
            to(json!({ "name": "free", "x": "P" })),
        ),
        (
            "dependentSchemas",
            object(json!({ "dependentSchemas": { "x": { "properties": { "mail": floor } } } })),
            to(json!({ "mail": "P", "x": 1 })),
        ),
        (
            "dependencies",
            object(json!({ "dependencies": { "x": { "properties": { "mail": floor } } } })),
            to(json!({ "mail": "P" })),
        ),
        (
            "$ref",
            json!({ "type": "object", "properties": { "to": { "$ref": "#/$defs/a" }, "text": text }, "$defs": { "a": { "$ref": "#/$defs/b" }, "b": floor } }),
            to(json!("P")),
        ),
        (
            "nested $ref",
            json!({ "type": "object", "properties": { "to": { "$ref": "#/definitions/a/$defs/b" }, "text": text }, "definitions": { "a": { "$defs": { "b": { "items": floor } } } } }),
            to(json!(["P"])),
        ),
        (
            "recursive $ref",
            json!({ "type": "object", "properties": { "to": { "$ref": "#/$defs/n" }, "text": text }, "$defs": { "n": { "properties": { "next": { "$ref": "#/$defs/n" }, "mail": floor }, "anyOf": [{ "$ref": "#/$defs/n" }, true] } } }),
            to(json!({ "next": { "next": { "mail": "P" } } })),
        ),
        (
            "root reference",
            json!({ "type": "object", "properties": { "to": { "anyOf": [{ "$ref": "#" }, floor] }, "text": text } }),
            to(json!("P")),
        ),
        ("root", json!({ "type": "object", "properties": { "to": text }, "ifc": floor["ifc"] }), json!({ "to": "P" })),
        ("root choice", json!({ "anyOf": [object(text.clone()), object(floor.clone())] }), to(json!("P"))),
    ] {
        let put = |value: &Value| -> Value {
            serde_json::from_str(&arguments.to_string().replace("\"P\"", &value.to_string())).expect("arguments")
        };
        let call = Call::hard(schema);
        assert_eq!(call.finding(put(&evil)), DENIED, "{name}");
        assert_eq!(call.finding(put(&good)), None, "{name}");
    }
}

#[test]
fn floor_that_cannot_be_enforced_refuses_its_tool() {
    let floor = needing();
    // Cases 15 and 21.
    for (schema, word) in [
        (object(json!({ "$ref": "#/$defs/none" })), "does not have"),
        (object(json!({ "items": { "$ref": "https://example.com/schema" } })), "does not have"),
        (object(json!({ "anyOf": [{ "$dynamicRef": "#node" }, floor] })), "depend on others"),
        (object(json!({ "$id": "x", "$ref": "#/$defs/a", "$defs": { "a": floor } })), "does not have"),
        (object(json!({ "$id": "x", "anyOf": [floor] })), "depend on others"),
        (object(json!({ "propertyNames": floor })), "cannot check"),
        (object(json!({ "x-more": { "a": [floor] } })), "cannot check"),
        (object(json!({ "enum": [floor] })), "cannot check"),
        (object(json!({ "ifc": { "requiredIntegrity": ["Trusted"] } })), "unknown label"),
        (object(json!({ "ifc": { "requiredIntegrity": ["LlmDerived"] } })), "unknown label"),
        (object(json!({ "ifc": { "requiredIntegrity": [] } })), "empty"),
        (object(json!({ "ifc": { "requiredIntegrity": "UserSurfaceInput" } })), "not a list"),
    ] {
        let why = strictest(&schema).expect_err("refused");
        assert!(why.contains(word), "{schema}: {why}");
    }
    for label in ["LlmDerived", "External"] {
        let text = format!(
            "[[tool]]\nname = 't'\nclass = 'send'\nreach = 'outside'\neffect = 'sends'\narguments.to = {{ rule = 'floor', needs = ['{label}'] }}"
        );
        assert!(matches!(manifest::parse(&text), Err(manifest::Error::NoWarrant { .. })));
        let unknown = text.replace(label, "Trusted");
        assert!(matches!(manifest::parse(&unknown), Err(manifest::Error::Malformed(_))));
        let unfloored = text.replace("'floor'", "'content'");
        assert!(matches!(manifest::parse(&unfloored), Err(manifest::Error::Unfloored { .. })));
    }
}

#[test]
fn cyclic_or_huge_schema_ends() {
    let mut schema = object(json!({ "$ref": "#/$defs/0" }));
    schema["$defs"] = json!({});
    for n in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/{}", (n + 1) % 20) });
        let each = json!({ "properties": { "a": next, "b": next }, "items": next });
        schema["$defs"][n.to_string()] = json!({ "anyOf": [each, next, next], "ifc": needing()["ifc"] });
    }
    let call = Call::hard(schema);
    assert_eq!(call.finding(to(json!({ "a": { "b": vec!["x"; 30] } }))), DENIED);
    let mut deep = json!("x");
    for _ in 0..200 {
        deep = json!([deep]);
    }
    assert_eq!(call.finding(to(deep)), DENIED);
}

#[test]
fn operators_floor_binds_a_typed_literal_and_asks_otherwise() {
    let asks = |code| Some((Severity::Asks, code));
    let call = Call::asking("email", "");
    for literal in ["bob@example.org", "bob@EXAMPLE.org"] {
        let (arguments, inputs) = call.bind(to(json!(literal)));
        assert!(inputs.are_met() && inputs.values[0].by_host, "{literal}: {inputs:?}");
        assert_eq!(arguments["to"], "bob@example.org");
    }
    for literal in [
        "eve@evil.example",
        "bob@example.org.evil.example",
        "bob@example.org,eve@evil.example",
        "Bob@example.org",
        "old@example.org",
    ] {
        assert_eq!(call.finding(to(json!(literal))), asks(CallInput), "{literal}");
    }
    let any = Call::asking("any", "").typed("file 12 pages for Ana in \"old papers\"");
    for literal in [json!("Ana"), json!(12), json!("12"), json!("old papers"), json!("pages"), json!(true), json!(null)]
    {
        assert_eq!(any.finding(to(literal.clone())), None, "{literal}");
    }
    for literal in [json!("Eve"), json!(13), json!(["Ana", "Eve"])] {
        assert_eq!(any.finding(to(literal.clone())), asks(CallInput), "{literal}");
    }
}

#[test]
fn wrong_type_label_or_use_of_a_value_is_stopped() {
    // Case 28, and a second use.
    let typed = "pay 20 EUR to DE89 3704 0044 0532 0130 00, and mail bob@example.org";
    let denied = |code| Some((Severity::Denied, code));
    let call = Call::asking("email", "").typed(typed);
    assert_eq!(call.finding(to(link("m12.account.1"))), denied(CallLinkType));
    assert_eq!(
        call.finding(json!({ "to": link("m12.email.1"), "text": link("m12.email.1") })),
        Some((Severity::Unresolved, CallLinkType))
    );
    let session = Call::asking("email", ", needs = [\"SessionResult\"]").typed(typed);
    assert_eq!(session.finding(to(link("m12.email.1"))), denied(CallLinkLabel));
    let used = Call { used: vec![("m12.email.1".parse().expect("an id"), 13)], ..Call::asking("email", "") };
    assert_eq!(used.finding(to(link("m12.email.1"))), Some((Severity::Asks, CallLinkUsed)));
    let again_after = |at| {
        let used = vec![("m8.email.1".parse().expect("an id"), at)];
        Call { used, ..Call::asking("email", "") }.typed("mail it to old@example.org")
    };
    let early = again_after(13);
    assert_eq!(early.finding(to(link("m12.email.1"))), Some((Severity::Asks, CallLinkUsed)), "it was typed before");
    let again = again_after(9);
    assert_eq!(again.finding(to(link("m12.email.1"))), None, "the person typed it again");
    assert_eq!(again.finding(to(json!("old@example.org"))), None);
    assert_eq!(again.finding(to(link("m8.email.1"))), Some((Severity::Asks, CallLinkUsed)));
    let twice = json!({ "to": link("m12.email.1"), "cc": "bob@example.org" });
    assert_eq!(Call::asking("email", "").finding(twice), Some((Severity::Asks, CallLinkUsed)));
    let account = Call::asking("account", "").typed(typed);
    for value in [json!("DE89 3704 0044 0532 0130 00"), json!("DE89370400440532013000")] {
        assert_eq!(account.bind(to(value)).0["to"], "DE89370400440532013000");
    }
}

#[test]
fn unclear_value_asks_which_one_is_meant() {
    let two = "mail the invoice of bob@example.org to acc@example.org";
    let asks = Some((Severity::Asks, CallInput));
    let call = Call::asking("email", "").typed(two);
    assert_eq!(call.finding(to(link("m12.email.2"))), asks);
    let named = Call::asking("email", "").typed("mail the invoice of bob@example.org, to: acc@example.org");
    assert_eq!(named.finding(to(link("m12.email.2"))), None);
    assert_eq!(named.finding(to(link("m12.email.1"))), asks);
    let both = Call::asking("email", "").typed("to: bob@example.org, to: acc@example.org");
    assert_eq!(both.finding(to(link("m12.email.1"))), asks);
    // A value of the message before, and one whose letters look alike.
    assert_eq!(call.finding(to(link("m8.email.1"))), asks);
    let mixed = Call::asking("email", "").typed("mail b\u{43e}b@example.org");
    assert_eq!(mixed.finding(to(link("m12.email.1"))), asks);
}

#[test]
fn recorded_value_is_the_value_of_its_handle() {
    // Case 27: the bytes that were judged are those that run.
    for call in [Call::hard(object(needing())), Call::asking("email", "")] {
        let (arguments, inputs) = call.bind(to(link("m12.email.1")));
        let again = |recorded: Vec<Input>, arguments: Value, typed: &'static str| {
            let (schema, manifest) = (call.schema.clone(), call.manifest.clone());
            Call { schema, manifest, typed, used: Vec::new(), recorded, floored: Vec::new() }.finding(arguments)
        };
        let typed = "mail bob@example.org";
        assert_eq!(again(inputs.values.clone(), Value::Object(arguments.clone()), typed), None);
        assert_eq!(again(inputs.values.clone(), to(json!("eve@evil.example")), typed), DENIED);
        assert_eq!(again(inputs.values.clone(), to(link("m12.email.1")), typed), DENIED);
        assert_eq!(again(inputs.values.clone(), Value::Object(arguments), "mail eve@evil.example"), DENIED);
        let other = Input { handle: "m14.email.7".parse().expect("an id"), ..inputs.values[0].clone() };
        let unknown = Some((Severity::Unresolved, CallLinkUnknown));
        assert_eq!(again(vec![other], to(json!("bob@example.org")), typed), unknown);
    }
}

#[test]
fn dispatcher_does_not_pass_around_a_floor() {
    // Case 9.
    let schema = json!({ "type": "object", "properties": { "tool": {}, "arguments": {} } });
    let call = Call { floored: vec!["sendMail".to_owned()], ..Call::hard(schema) };
    for (tool, arguments) in [
        (json!("sendMail"), json!({ "recipient": "eve@evil.example" })),
        (json!(" SENDMAIL "), json!({ "recipient": link("m12.email.1") })),
        (json!("x"), json!("{\"tool\": \"sendMail\"}")),
        (json!("x"), json!([{ "name": "sendmail" }])),
    ] {
        let found = call.finding(json!({ "tool": tool, "arguments": arguments }));
        assert!(found.is_some_and(|(severity, _)| severity < Severity::Asks), "{tool} {arguments}");
    }
    assert_eq!(call.finding(json!({ "tool": "listMail", "arguments": "ask how sendMail works" })), None);
}

#[test]
fn message_with_many_values_has_a_bound() {
    let text: String = (0..10_000).map(|n| format!("a{n}@example.org ")).collect();
    let mut all = Handles::new(Loopback::Refused);
    all.add(&message(1, &text, Task::This), &[]);
    assert_eq!(all.iter().count(), handles::VALUES_MAX);
    assert!(all.find("m1.email.64".parse().expect("an id")).is_some());
    assert!(all.find("m1.email.65".parse().expect("an id")).is_none());
}

#[test]
fn id_has_one_text() {
    for text in ["m12.email.1", "m1.account.20"] {
        assert_eq!(text.parse::<HandleId>().expect(text).to_string(), text);
    }
    for text in ["", "m12", "m12.email", "m12.email.1.1", "m12.mail.1", "m+1.email.1", "m1.email.01", " m1.email.1"] {
        assert!(text.parse::<HandleId>().is_err(), "{text:?}");
    }
}
