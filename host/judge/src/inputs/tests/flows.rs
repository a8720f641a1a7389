//! Random flows of values: none reaches a hard floor with other labels than those of its source.

use super::*;
use crate::inputs::returned::Returned;
use crate::inputs::{Answer, Task};
use crate::provenance::{Labels, Provenance};
use ironclaw_operator::InputType;
use proptest::prelude::*;

/// A value of an argument: a literal, a reference, or a list or an object of them.
fn value() -> impl Strategy<Value = Value> {
    let ids = ["m12.email.1", "m12.email.2", "m12.account.1", "m8.email.1", "m12.number.1", "r1.email.1"];
    let texts =
        ["eve@evil.example", "bob@example.org", "acc@example.org", "old@example.org", "20", "DE89370400440532013000"];
    let leaf = prop_oneof![
        prop::sample::select(ids.to_vec()).prop_map(link),
        prop::sample::select(ids.to_vec()).prop_map(|id| link(id).to_string().into()),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        prop::sample::select(texts.to_vec()).prop_map(|text| format!("{text} ").into()),
        any::<bool>().prop_map(Value::from),
        Just(json!(20)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn texts_of(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| texts_of(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts_of(value, found)),
        other => found.push(other.clone()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No value reaches a hard floor with other labels than those of its source, and each pinned value is the one of its handle.
    #[test]
    fn no_value_reaches_a_floor_without_its_labels(to in value(), text in value()) {
        let typed = "mail the invoice 20 of bob@example.org to acc@example.org, account DE89 3704 0044 0532 0130 00";
        let call = Call::hard(object(needing())).typed(typed);
        let (arguments, inputs) = call.bind(json!({ "to": to, "text": text }));
        let handles = handles(typed);
        for bound in &inputs.values {
            let handle = handles.find(bound.handle).expect("a handle");
            let place = Value::Object(arguments.clone()).pointer(&bound.at).cloned();
            prop_assert_eq!(place, handle.value(false));
        }
        if inputs.findings.iter().all(|finding| finding.severity == Severity::Asks) {
            let mut sent = Vec::new();
            texts_of(&arguments["to"], &mut sent);
            for value in sent {
                let known = handles.iter().any(|handle| handle.value(false) == Some(value.clone()));
                prop_assert!(known, "{} is of no handle", value);
            }
            // A recorded call is bound in the same way when it runs.
            let again = Call { recorded: inputs.values.clone(), ..Call::hard(object(needing())).typed(typed) };
            let (same, found) = again.bind(Value::Object(arguments.clone()));
            prop_assert_eq!(same, arguments);
            prop_assert_eq!(found.findings, inputs.findings);
        }
    }

    /// A value of an answer reaches a hard floor only with the labels that it needs, for the server of the call.
    #[test]
    fn no_answer_reaches_a_floor_without_its_labels(
        source in 0..SOURCES.len(),
        needs in prop::sample::subsequence(NEEDS.to_vec(), 1..=NEEDS.len()),
        of_task in any::<bool>(),
        is_link in any::<bool>(),
    ) {
        let (server, provenances) = SOURCES[source];
        let labels = provenances.iter().fold(Labels::NONE, |all, one| all.join(Labels::from_provenance(*one)));
        let call = Call::hard(object(json!({ "type": "string", "ifc": { "requiredIntegrity": needs } })));
        let mut handles = handles(call.typed);
        let task = if of_task { Task::This } else { Task::Earlier };
        let returned = Returned { kind: InputType::Name, text: "ord_1".to_owned(), number: None, labels };
        handles.add_returned(Answer { item: ItemId::new(), seq: 14, server, task }, vec![returned]);
        let value = if is_link { link("r14.name.1") } else { json!("ord_1") };
        let Value::Object(mut arguments) = to(value) else { unreachable!("an object") };
        let (manifest, parameters) = (&call.manifest, &call.schema);
        let tool = Tool { server: "mail", name: "send", manifest, parameters, floored: &[] };
        let inputs = bind(&mut arguments, Some(tool), &[], &handles, &|_| true);
        let has_each = needs.iter().all(|label| match *label {
            "SessionResult" => provenances.contains(&Provenance::Created) && server == "mail",
            "StructuredResult" => provenances.contains(&Provenance::Returned),
            _ => false,
        });
        prop_assert_eq!(inputs.are_met(), is_link && has_each && of_task, "{:?}", inputs.findings);
    }
}

/// Servers with the provenances of a value that one of them returned.
const SOURCES: [(&str, &[Provenance]); 5] = [
    ("mail", &[Provenance::Created]),
    ("mail", &[Provenance::Returned]),
    ("mail", &[Provenance::Created, Provenance::Returned]),
    ("shop", &[Provenance::Created]),
    ("shop", &[Provenance::Created, Provenance::Returned]),
];

const NEEDS: [&str; 5] =
    ["SessionResult", "StructuredResult", "UserSurfaceInput", "PromptSlotBound", "Builtin(agent-kernel)"];
