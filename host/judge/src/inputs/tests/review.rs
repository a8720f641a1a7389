//! Ways around a floor that a review found, and questions about honest calls.

use super::*;

#[test]
fn value_without_a_meaning_lifts_nothing() {
    let email = Call::asking("email", "");
    let any = Call::asking("any", "");
    for (call, value) in [(&email, json!(null)), (&any, json!(true)), (&any, json!([])), (&any, json!({}))] {
        let inputs = call.bind(to(value.clone())).1;
        assert!(inputs.findings.is_empty() && !inputs.are_met(), "{value}");
    }
    let asks = Some((Severity::Asks, CallInput));
    for (call, value) in [
        (&any, json!({ "eve@evil.example": null })),
        (&any, json!([{ "eve@evil.example": true }])),
        (&any, json!("bob@example.org,")),
        (&any, json!("bob@example.org.")),
        (&any, json!("(bob@example.org)")),
    ] {
        assert_eq!(call.finding(to(value.clone())), asks, "{value}");
    }
    let several = Call::asking("any", "").typed("pay 20 EUR, 20 times");
    assert_eq!(several.finding(to(json!(20))), asks);
}

#[test]
fn name_of_a_floored_tool_is_found_in_each_form() {
    let schema = json!({ "type": "object", "properties": { "tool": {}, "arguments": {} } });
    let call = Call { floored: vec!["sendMail".to_owned()], ..Call::hard(schema) };
    for value in [
        json!({ "sendMail": { "recipient": "eve@evil.example" } }),
        json!("mail.sendMail"),
        json!("mail__sendMail"),
        json!("mail/sendMail"),
        json!("{\"tool\": \"\\u0073endMail\"}"),
        json!("\"sendMail\""),
        json!([{ "calls": ["sendmail"] }]),
    ] {
        assert_eq!(call.finding(json!({ "tool": "run", "arguments": value })), DENIED, "{value}");
    }
    let own = Call { floored: vec!["send".to_owned()], ..Call::hard(object(needing())) };
    assert_eq!(own.finding(json!({ "to": link("m12.email.1"), "text": "send" })), None, "its own name");
}

#[test]
fn honest_forms_of_a_value_are_kept() {
    let amount = Call::asking("amount", "").typed("pay 20 EUR");
    let (arguments, inputs) = amount.bind(to(json!("20")));
    assert_eq!((&arguments["to"], inputs.are_met()), (&json!("20"), true), "the currency may be another argument");
    let again = Call { recorded: inputs.values, ..Call::asking("amount", "").typed("pay 20 EUR") };
    assert_eq!(again.finding(Value::Object(arguments)), None);
    let twice = Call::asking("number", "").typed("book 2 adults and 2 rooms");
    assert_eq!(twice.finding(json!({ "to": 2, "cc": 2 })), None, "it was typed twice");
    for schema in
        [json!({ "type": ["integer", "null"] }), json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] })]
    {
        let mut call = Call::asking("number", "").typed("book 2 rooms");
        call.schema["properties"]["to"] = schema;
        assert_eq!(call.bind(to(link("m12.number.1"))).0["to"], json!(2));
    }
    let long = Call::asking("number", "").typed("order 1234567890123456789");
    let mut number = Call { schema: json!({ "properties": { "to": { "type": "integer" } } }), ..long };
    assert_eq!(number.finding(to(link("m12.number.1"))), Some((Severity::Unresolved, CallLinkType)));
    number.schema = json!({});
    assert_eq!(number.bind(to(link("m12.number.1"))).0["to"], json!("1234567890123456789"));
}

#[test]
fn large_call_takes_linear_time() {
    let call =
        Call::hard(object(json!({ "items": { "patternProperties": { "^\\w{900}$": {} }, "anyOf": [needing(), {}] } })));
    let many: Vec<Value> = (0..19_000).map(|n| json!(format!("a{n}"))).collect();
    let objects: Vec<Value> = (0..5_000).map(|_| json!({ "m": 1 })).collect();
    assert_eq!(call.finding(to(json!(many))), DENIED);
    assert_eq!(call.finding(to(json!(objects))), DENIED);
    let names = "Ana ".repeat(60_000);
    let mut all = Handles::new(Loopback::Refused);
    all.add(&message(1, &names, Task::This), &["Ana".to_owned(), "Ana Ana".to_owned()]);
    assert!(all.iter().count() <= 2);
    let mut deep = json!({ "mail": "eve@evil.example" });
    for _ in 0..28 {
        deep = json!({ "next": deep });
    }
    let part =
        json!({ "allOf": [{ "allOf": [{ "properties": { "next": { "$ref": "#/$defs/n" }, "mail": needing() } }] }] });
    let mut schema = object(json!({ "$ref": "#/$defs/n" }));
    schema["$defs"] = json!({ "n": { "allOf": [part] } });
    assert_eq!(Call::hard(schema).finding(to(deep)), DENIED, "a walk that is too deep floors each argument");
}
